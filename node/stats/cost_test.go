package stats_test

import (
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/podkeeper/podkeeper/node/stats"
)

// reads is how many times f reads something from the kernel, as the kernel counts it.
func reads(t *testing.T, f func()) int {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	count := func() (n int) {
		text, err := os.ReadFile("/proc/thread-self/io")
		check(t, err)
		_, rest, _ := strings.Cut(string(text), "syscr: ")
		_, err = fmt.Sscan(rest, &n)
		check(t, err)
		return n
	}
	before := count()
	f()
	return count() - before
}

// Each container costs the same files, however many there are.
func TestReadingCostsTheSameForEachContainer(t *testing.T) {
	id := fmt.Sprintf("podkeeper-cost-%d", os.Getpid())
	pid := inCgroup(t, id)
	r := stats.NewReader(slog.New(slog.DiscardHandler))
	pod := func(n int) stats.Target {
		target := stats.Target{UID: "u1", HostNetwork: true, Containers: make(map[string]stats.Process)}
		for i := range n {
			target.Containers[fmt.Sprint("c", i)] = stats.Process{ID: id, PID: pid}
		}
		return target
	}
	// No event tells when the kernel has counted something of the process.
	soon, tick := time.After(10*time.Second), time.NewTicker(10*time.Millisecond)
	defer tick.Stop()
	for r.Pod(pod(1)).Containers["c0"].WorkingSet == nil {
		select {
		case <-soon:
			t.Fatal("nothing is counted of the process")
		case <-tick.C:
		}
	}
	cost := func(n int) int { return reads(t, func() { r.Pod(pod(n)) }) }
	none, ten, thirty := cost(0), cost(10), cost(30)
	if each := (ten - none) / 10; each < 3 || each > 150 || ten-none != 10*each || thirty-none != 30*each {
		t.Errorf("%d reads for no container, %d for 10 and %d for 30", none, ten, thirty)
	}
}
