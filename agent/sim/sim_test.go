package sim

import (
	"flag"
	"fmt"
	"log/slog"
	"os"
	goruntime "runtime"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

var (
	seedFlag  = flag.Uint64("seed", 0, "run this seed only, and print its trace with -v")
	seedsFlag = flag.Uint64("seeds", 200, "how many seeds to run")
	firstFlag = flag.Uint64("first", 1, "the first of them")
)

// steps is how many things the driver does in one scenario.
const steps = 25

type result struct {
	violations []violation
	trace      string
}

// simulate runs one seed.
func simulate(t *testing.T, seed uint64, l lies, log *slog.Logger) (res result) {
	synctest.Test(t, func(*testing.T) {
		w := newWorld(seed, seed%7 != 0, l, log)
		w.collects, w.keepLogs = true, time.Duration(seed%2)*time.Minute
		w.laws.room, w.goesDown = roomOf(seed), seed%5 < 2
		d := newDriver(w, seed)
		if d.play(steps) {
			d.calm()
			d.settle()
		}
		d.crash()
		res = result{d.laws.violations, d.trace()}
	})
	return res
}

// twicePlayed is how many of the seeds, the first, are run twice.
const twicePlayed = 200

// A world lives for a tenth of a second: collecting it less often is a third
// less work.
func TestMain(m *testing.M) {
	debug.SetGCPercent(1000)
	os.Exit(m.Run())
}

// Laws 1 to 7: whatever happens, no invariant breaks, and the node converges.
// And a seed that fails must fail again: two runs have the same trace.
func TestSeeds(t *testing.T) {
	if *seedFlag != 0 {
		res := simulate(t, *seedFlag, lies{}, logTo(t))
		if testing.Verbose() {
			t.Log("\n" + res.trace)
		}
		for _, v := range res.violations {
			t.Error(v)
		}
		return
	}
	var next atomic.Uint64
	for range goruntime.GOMAXPROCS(0) {
		t.Run("shard", func(t *testing.T) {
			t.Parallel()
			for {
				n := next.Add(1)
				if n > *seedsFlag {
					return
				}
				seed := *firstFlag + n - 1
				res := simulate(t, seed, lies{}, nil)
				if len(res.violations) > 0 {
					t.Errorf("%s\n%d violations in all; replay: go test ./agent/sim -run TestSeeds -v -seed %d", res.violations[0], len(res.violations), seed)
				}
				if n > twicePlayed {
					continue
				}
				if again := simulate(t, seed, lies{}, nil); again.trace != res.trace {
					t.Errorf("seed %d has two traces (-first +second):\n%s", seed, cmp.Diff(res.trace, again.trace))
				}
			}
		})
	}
}

// logTo prints what the agent says, by virtual time, where somebody looks.
func logTo(t *testing.T) *slog.Logger {
	if !testing.Verbose() {
		return nil
	}
	return slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

func (v violation) String() string { return fmt.Sprintf("%s: %s", v.law, v.what) }
