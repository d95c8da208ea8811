package oracle_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/podkeeper/podkeeper/tools/oracle"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var (
	pods  = flag.Int("pods", 2000, "how many generated pods to compare")
	seed  = flag.Uint64("seed", 0, "compare the pod of this seed only, if not 0")
	every = flag.Int("every", 5, "compare each so manieth pod of the sweep over all fields")
	from  = flag.Uint64("from", 1, "the first seed")
)

func TestGeneratedPodsAreJudgedAsUpstreamJudgesThem(t *testing.T) {
	if *seed != 0 {
		p := oracle.Generate(*seed)
		text, err := json.MarshalIndent(p, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s", text)
		compare(t, p, fmt.Sprintf("seed %d", *seed))
		return
	}
	seeds := make(chan uint64)
	var workers sync.WaitGroup
	var count tally
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for s := range seeds {
				p := oracle.Generate(s)
				count.add(compare(t, p, fmt.Sprintf("seed %d", s)))
			}
		})
	}
	for s := range uint64(*pods) {
		if t.Failed() {
			break
		}
		seeds <- *from + s
	}
	close(seeds)
	workers.Wait()
	count.check(t)
}

func TestEachFieldIsJudgedAsUpstreamJudgesIt(t *testing.T) {
	n := 0
	for p, what := range oracle.Sweep() {
		if n++; n%*every != 0 {
			continue
		}
		if compare(t, p, what); t.Failed() {
			t.FailNow()
		}
	}
	t.Logf("%d pods, of which 1 in %d was compared", n, *every)
}

// tally counts the verdicts, so that a generator that has gone bad is noticed:
// a comparison of pods that are all refused says little.
type tally struct {
	sync.Mutex
	all, valid int
	kinds      map[string]int
}

func (c *tally) add(theirs field.ErrorList) {
	c.Lock()
	defer c.Unlock()
	c.all++
	if len(theirs) == 0 {
		c.valid++
	}
	if c.kinds == nil {
		c.kinds = map[string]int{}
	}
	for _, e := range theirs {
		c.kinds[shape(e.Field)+" "+string(e.Type)]++
	}
}

func shape(path string) string {
	var b strings.Builder
	depth := 0
	for _, r := range path {
		switch r {
		case '[':
			depth++
		case ']':
			depth--
		}
		if depth == 0 {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func (c *tally) check(t *testing.T) {
	t.Logf("%d pods, %d valid, %d different kinds of error", c.all, c.valid, len(c.kinds))
	if c.all >= 1000 && (c.valid < c.all/5 || c.valid > c.all*4/5) {
		t.Errorf("%d of %d pods are valid: the generator should make both kinds often", c.valid, c.all)
	}
}

// compare reports how the two sides differ, and returns upstream's errors.
func compare(t *testing.T, p *v1.Pod, what string) field.ErrorList {
	t.Helper()
	result, err := oracle.Compare(p)
	switch {
	case err != nil:
		t.Errorf("%s: %v", what, err)
	case result.Diff != "":
		t.Errorf("%s: %s", what, result.Diff)
	}
	return result.Theirs
}

func FuzzOracle(f *testing.F) {
	for s := range uint64(20) {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s uint64) { compare(t, oracle.Generate(s), fmt.Sprintf("seed %d", s)) })
}

func FuzzManifest(f *testing.F) {
	for s := range uint64(50) {
		text, err := json.Marshal(oracle.Generate(s))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var p v1.Pod
		if json.Unmarshal(text, &p) == nil {
			compare(t, &p, string(text))
		}
	})
}
