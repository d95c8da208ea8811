package sources_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/sources"
)

var (
	folderM = pod.SourceID{Kind: pod.FileSource, Name: "/m"}
	folderN = pod.SourceID{Kind: pod.FileSource, Name: "/n"}
	page    = pod.SourceID{Kind: pod.HTTPSource, Name: "http://h/p"}
)

// supply is what a source says whose origins hold those lines.
func supply(id pod.SourceID, origins map[string]string) sources.Supply {
	s := sources.Supply{Source: pod.Source{ID: id, Spoken: true, Present: true}}
	for name, text := range origins {
		for _, d := range parse([]byte(text), pod.Origin{Source: id, Name: name}).Documents {
			if d.Pod != nil {
				s.Pods = append(s.Pods, d.Pod)
			} else {
				s.Objects = append(s.Objects, d.Object)
			}
		}
	}
	return s
}

// claims tells who claims what: "web" -> "/m/a.yaml:1 app:1".
func claims(set pod.Set) map[string][]string {
	out := map[string][]string{}
	for k, pods := range set.Claims {
		for _, p := range pods {
			out[k.Name] = append(out[k.Name], fmt.Sprintf("%s:%d %s", p.Origin, p.Line, p.Object.Spec.Containers[0].Image))
		}
	}
	for k, objects := range set.Objects {
		for _, o := range objects {
			out[k.String()] = append(out[k.String()], fmt.Sprintf("%s:%d %s", o.Origin, o.Line, o.Data["k"].Reveal()))
		}
	}
	return out
}

func TestMerge(t *testing.T) {
	set := sources.Merge([]pod.SourceID{page, folderN, folderM}, map[pod.SourceID]sources.Supply{
		folderM: supply(folderM, map[string]string{"/m/b.yaml": "web x:2\nweb x:3\nsecret web=2", "/m/a.yaml": "# x\nweb x:1\nb x:1\nsecret web=1\nsecret web=5"}),
		page:    supply(page, map[string]string{"http://h/p": "web x:4\nsecret web=4\nsecret b=4"}),
	})
	want := map[string][]string{
		"web": {"/m/a.yaml:2 x:1", "/m/b.yaml:1 x:2", "http://h/p:1 x:4"},
		"b":   {"/m/a.yaml:3 x:1"},

		"Secret default/web": {"/m/a.yaml:4 1", "/m/b.yaml:3 2", "http://h/p:2 4"},
		"Secret default/b":   {"http://h/p:3 4"},
	}
	if diff := cmp.Diff(want, claims(set)); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
	wantSources := []pod.Source{{ID: page, Spoken: true, Present: true}, {ID: folderN}, {ID: folderM, Spoken: true, Present: true}}
	if diff := cmp.Diff(wantSources, set.Sources); diff != "" {
		t.Errorf("law 1: a source that sent nothing has not spoken (-want +got):\n%s", diff)
	}
}

func TestMergeIsIndependentOfOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		supplies := map[pod.SourceID]sources.Supply{}
		ids := []pod.SourceID{folderM, folderN, page}
		for _, id := range ids {
			origins := map[string]string{}
			for _, name := range []string{"a", "b"} {
				text := ""
				for line := range rapid.IntRange(0, 3).Draw(t, "lines") {
					text += fmt.Sprintf("p%d x:%d\n", rapid.IntRange(0, 2).Draw(t, "pod"), line)
				}
				origins["/"+name] = text
			}
			supplies[id] = supply(id, origins)
		}
		want := claims(sources.Merge(ids, supplies))
		for id, s := range supplies {
			s.Pods = rapid.Permutation(s.Pods).Draw(t, "pods of "+id.Name)
			supplies[id] = s
		}
		got := claims(sources.Merge(rapid.Permutation(ids).Draw(t, "order"), supplies))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("claims depend on order:\n%s", diff)
		}
	})
}

// told is a source that sends what it is told.
type told struct {
	id    pod.SourceID
	sends chan sources.Supply
	err   error
	ended bool
}

func (s *told) ID() pod.SourceID { return s.id }

func (s *told) Run(ctx context.Context, out chan<- sources.Supply) error {
	defer func() { s.ended = true }()
	for {
		select {
		case supply, ok := <-s.sends:
			if !ok {
				return s.err
			}
			select {
			case out <- supply:
			case <-ctx.Done():
				return nil
			}
		case <-ctx.Done():
			time.Sleep(time.Second) // it takes a while to end
			return nil
		}
	}
}

func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, p := &told{id: folderM, sends: make(chan sources.Supply)}, &told{id: page, sends: make(chan sources.Supply)}
		ctx, cancel := context.WithCancel(t.Context())
		out, done := make(chan pod.Set), make(chan error)
		go func() { done <- sources.Run(ctx, []sources.Source{m, p}, out) }()

		first := <-out
		if diff := cmp.Diff([]pod.Source{{ID: folderM}, {ID: page}}, first.Sources); diff != "" {
			t.Errorf("the first set, sent at once, says that nobody has spoken:\n%s", diff)
		}
		m.sends <- supply(folderM, map[string]string{"/m/a.yaml": "web x:1"})
		if got := claims(<-out); !slices.Equal(got["web"], []string{"/m/a.yaml:1 x:1"}) {
			t.Errorf("claims = %v", got)
		}
		// A reader that is slow gets the newest state only.
		for i := range 5 {
			m.sends <- supply(folderM, map[string]string{"/m/a.yaml": fmt.Sprintf("web x:%d", i)})
		}
		p.sends <- supply(page, map[string]string{"http://h/p": "b x:1"})
		synctest.Wait()
		want := map[string][]string{"web": {"/m/a.yaml:1 x:4"}, "b": {"http://h/p:1 x:1"}}
		if diff := cmp.Diff(want, claims(<-out)); diff != "" {
			t.Errorf("claims (-want +got):\n%s", diff)
		}
		select {
		case s := <-out:
			t.Errorf("sent again without a change: %v", claims(s))
		case <-time.After(time.Hour):
		}
		cancel()
		if err := <-done; err != nil || !m.ended || !p.ended {
			t.Errorf("Run = %v; sources ended: %v, %v", err, m.ended, p.ended)
		}
	})
}

func TestRunEndsWithASourceThatGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failure := errors.New("no more")
		m, p := &told{id: folderM, sends: make(chan sources.Supply), err: failure}, &told{id: page, sends: make(chan sources.Supply)}
		done := make(chan error)
		go func() { done <- sources.Run(t.Context(), []sources.Source{m, p}, make(chan pod.Set)) }()
		close(m.sends)
		if err := <-done; !errors.Is(err, failure) || !p.ended {
			t.Errorf("Run = %v, the other ended: %v", err, p.ended)
		}
	})
}

func TestRunRefusesASourceTwice(t *testing.T) {
	m := &told{id: folderM}
	if err := sources.Run(t.Context(), []sources.Source{m, m}, nil); err == nil {
		t.Error("the same folder twice is accepted")
	}
}
