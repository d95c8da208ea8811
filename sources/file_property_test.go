package sources_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/podkeeper/podkeeper/sources"
	"github.com/podkeeper/podkeeper/sources/sourcestest"
)

// TestAnyHistoryEndsInWhatLiesThere changes a folder at random, loses hints,
// takes it away and restarts the agent. Law 1 holds in each supply, and once all
// is quiet the source says just what lies there.
func TestAnyHistoryEndsInWhatLiesThere(t *testing.T) {
	for seed := range uint64(150) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { history(t, rand.New(rand.NewPCG(seed, 1))) })
		})
	}
}

// model is what each file last said that was good; only a file that was removed
// or a good one that lacks a pod takes the pod away.
type model struct {
	content map[string]string
	good    map[string]map[string]string
}

func (m *model) write(name, content string) {
	m.content[name] = content
	res := parse([]byte(content), originOf(name))
	now := map[string]string{}
	for _, d := range res.Documents {
		if d.Pod != nil {
			now[d.Key.Name] = d.Pod.Object.Spec.Containers[0].Image
		}
	}
	if len(res.Problems) > 0 {
		for k, v := range m.good[name] {
			if _, ok := now[k]; !ok {
				now[k] = v
			}
		}
	}
	m.good[name] = now
}

func (m *model) remove(name string) {
	delete(m.content, name)
	delete(m.good, name)
}

func (m *model) pods() string {
	var out []string
	for name, keys := range m.good {
		for k, image := range keys {
			out = append(out, fmt.Sprintf("%s=%s (%s)", k, image, name))
		}
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

func history(t *testing.T, rnd *rand.Rand) {
	tree := world(nil)
	m := &model{content: map[string]string{}, good: map[string]map[string]string{}}
	store := &sourcestest.Store{}
	r := files(t, tree, store, nil)
	away := false
	settle := func() { r.pass(45 * time.Second) } // broken files are believed after a look and 10 s
	for range 12 {
		name := string("ab"[rnd.IntN(2)]) + ".yaml"
		path := "/m/" + name
		_, exists := m.content[name]
		switch op := rnd.IntN(10); {
		case away:
			tree.Rename("/away", "/m")
			away = false
		case op < 4:
			content := contents(name, rnd)
			switch rnd.IntN(3) {
			case 0:
				tree.WriteAtomic(path, content)
			case 1:
				tree.Write(path, content)
			case 2: // torn, and finished in time
				tree.Write(path, content[:rnd.IntN(len(content)+1)])
				time.Sleep(time.Duration(rnd.IntN(40)) * time.Millisecond)
				tree.Write(path, content)
			}
			m.write(name, content)
		case op == 4 && exists:
			tree.Remove(path)
			m.remove(name)
		case op == 5:
			tree.Deaf(rnd.IntN(2) == 0)
			continue
		case op == 6:
			tree.Rename("/m", "/away")
			away = true
		case op == 7:
			r.stop()
			r = files(t, tree, store, nil)
		default:
			r.pass(time.Duration(rnd.IntN(3000)) * time.Millisecond)
			continue
		}
		settle()
		if got, want := pods(r.last()), m.pods(); got != want {
			t.Fatalf("supplies %q, want %q; %s\n%s", got, want, state(r.last()), r.log)
		}
		checkState(t, r.last(), m, away)
	}
}

// contents keeps the pods of two files apart, since no conflict is meant.
func contents(name string, rnd *rand.Rand) string {
	var lines []string
	for i := range 3 {
		pod := fmt.Sprintf("%c%d", name[0], i)
		switch rnd.IntN(6) {
		case 0, 1, 2:
			lines = append(lines, fmt.Sprintf("%s x:%d", pod, rnd.IntN(3)))
		case 3:
			lines = append(lines, "bad "+pod)
		case 4:
			lines = append(lines, "# "+pod)
		}
	}
	return strings.Join(lines, "\n")
}

func checkState(t *testing.T, s sources.Supply, m *model, away bool) {
	t.Helper()
	if s.Source.Present == away {
		t.Fatalf("present %v while the folder is away: %v", s.Source.Present, away)
	}
	if away {
		return
	}
	if !s.Source.Spoken {
		t.Fatal("has not spoken")
	}
	var failed, want []string
	for _, o := range s.Source.Origins {
		if o.Failed() {
			failed = append(failed, strings.TrimPrefix(o.Origin.Name, "/m/"))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.content)) {
		if len(parse([]byte(m.content[name]), originOf(name)).Problems) > 0 {
			want = append(want, name)
		}
	}
	if !slices.Equal(failed, want) {
		t.Fatalf("failed %v, want %v", failed, want)
	}
}
