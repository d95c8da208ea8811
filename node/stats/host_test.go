package stats_test

import (
	"bytes"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podkeeper/podkeeper/node/stats"
)

// The machine that runs this was started, has a swap or none, and runs this test.
func TestHost(t *testing.T) {
	var log bytes.Buffer
	r := stats.NewReader(slog.New(slog.NewTextHandler(&log, nil)))
	h := r.Host()
	if h.Booted.Year() < 2000 || h.Booted.After(time.Now()) {
		t.Errorf("started %v", h.Booted)
	}
	if h.Swap == nil || h.SwapFree == nil || *h.SwapFree > *h.Swap {
		t.Errorf("swap: %v, free %v", h.Swap, h.SwapFree)
	}
	all := h.All
	if all.Path != "/" || all.CPU == nil || *all.CPU <= 0 || all.MemoryUsage == nil || all.WorkingSet == nil || *all.WorkingSet > *all.MemoryUsage {
		t.Errorf("everything that runs: %+v", all)
	}
	if _, err := os.Stat("/proc/pressure/memory"); err == nil && all.MemoryPressure == nil {
		t.Error("the kernel counts stalls, and they are not known")
	}
	if log.Len() > 0 {
		t.Errorf("it complains:\n%s", &log)
	}
}

func TestACgroupThatIsNotThere(t *testing.T) {
	if c, ok := stats.NewReader(slog.New(slog.DiscardHandler)).Cgroup("/no/such/cgroup"); ok {
		t.Errorf("%+v", c)
	}
}

func TestBooted(t *testing.T) {
	for text, want := range map[string]time.Time{"cpu 1 2\nbtime 1700000000\nctxt 1\n": time.Unix(1700000000, 0), "cpu 1\n": {}, "btime x\n": {}} {
		got, err := stats.Booted(text)
		if (err != nil) != want.IsZero() || err == nil && !got.Equal(want) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

func TestMeminfo(t *testing.T) {
	for text, want := range map[string]*int64{"MemTotal: 1 kB\nSwapTotal:       4 kB\n": new(int64(4096)), "SwapTotal: 0 kB\n": new(int64(0)), "MemTotal: 1 kB\n": nil} {
		if diff := cmp.Diff(want, stats.Meminfo(text, "SwapTotal:")); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

func TestParsePressure(t *testing.T) {
	const text = "some avg10=0.50 avg60=1.25 avg300=2.00 total=3000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n"
	want := &stats.Pressure{Some: stats.Stall{Total: 3 * time.Millisecond, Avg10: 0.5, Avg60: 1.25, Avg300: 2}, Full: stats.Stall{Total: 7 * time.Microsecond}}
	got, err := stats.ParsePressure(text)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if got, err := stats.ParsePressure("nonsense\n"); err == nil {
		t.Errorf("nonsense is %+v", got)
	}
}
