package kernel_test

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podkeeper/podkeeper/node/kernel"
)

func TestLacks(t *testing.T) {
	for name, c := range map[string]struct {
		have kernel.Controllers
		want []string
	}{
		"all of version 1":          {kernel.Controllers{Version: 1, Names: []string{"blkio", "cpu", "cpuacct", "cpuset", "memory"}}, nil},
		"all of version 2":          {kernel.Controllers{Version: 2, Names: []string{"cpu", "cpuset", "io", "memory", "pids"}}, nil},
		"version 1 without memory":  {kernel.Controllers{Version: 1, Names: []string{"cpu", "cpuacct", "cpuset"}}, []string{"memory"}},
		"version 2 without cpuset":  {kernel.Controllers{Version: 2, Names: []string{"cpu", "memory", "pids"}}, []string{"cpuset"}},
		"version 2 without pids":    {kernel.Controllers{Version: 2, Names: []string{"cpu", "cpuset", "memory"}}, []string{"pids"}},
		"version 1 without cpuacct": {kernel.Controllers{Version: 1, Names: []string{"cpu", "cpuset", "memory", "pids"}}, []string{"cpuacct"}},
		"none":                      {kernel.Controllers{Version: 2}, []string{"cpu", "pids", "cpuset", "memory"}},
	} {
		var got []string
		for _, l := range c.have.Lacks() {
			got = append(got, l.Controller)
			if l.Disables == "" {
				t.Errorf("%s: not said what %s disables", name, l.Controller)
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Without a controller there are no pod cgroups; without pod cgroups it is said
// what does not work.
func TestCheckControllers(t *testing.T) {
	c := kernel.Controllers{Version: 1, Names: []string{"cpu", "cpuacct", "cpuset"}}
	var log bytes.Buffer
	to := slog.New(slog.NewTextHandler(&log, nil))
	if err := kernel.CheckControllers(c, true, to); err == nil || !strings.Contains(err.Error(), "memory (without it: no memory limits") || !strings.Contains(err.Error(), "--cgroups-per-qos=false") {
		t.Errorf("with pod cgroups: %v, want memory and a way out named", err)
	}
	if err := kernel.CheckControllers(c, false, to); err != nil {
		t.Errorf("without pod cgroups: %v", err)
	}
	if !strings.Contains(log.String(), "controller=memory") {
		t.Errorf("log %q, want memory named", log.String())
	}
}

// On the machine that the tests run on.
func TestReadControllers(t *testing.T) {
	c, err := kernel.ReadControllers("/sys/fs/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	if c.Version != 1 && c.Version != 2 || !slices.Contains(c.Names, "cpu") || !slices.Contains(c.Names, "memory") {
		t.Errorf("got %+v", c)
	}
	if _, err := kernel.ReadControllers("/sys/fs/no-such"); err == nil {
		t.Error("no error where there is nothing")
	}
}
