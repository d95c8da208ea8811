package sources

import (
	"context"
	"fmt"
	"sync"

	"github.com/podkeeper/podkeeper/manifests"
	"github.com/podkeeper/podkeeper/pod"
)

// Supply is the whole state of one source: what it has to say of itself, and
// everything it supplies, last good versions included. Nobody changes it once
// sent.
type Supply struct {
	// Source.Read is as of the sending: later looks that found all as it was are
	// not sent.
	Source pod.Source
	// Pods has at most one pod of a key from each origin.
	Pods []*pod.Pod
	// Objects are those beside pods, in the same way.
	Objects []*pod.Object
}

// add takes in what an origin supplies.
func (s *Supply) add(docs []document) {
	for _, d := range docs {
		if d.pod != nil {
			s.Pods = append(s.Pods, d.pod)
		} else {
			s.Objects = append(s.Objects, d.object)
		}
	}
}

// Source is where pods come from.
type Source interface {
	// ID returns the same all its life.
	ID() pod.SourceID
	// Run sends the source's full state, first as soon as it has looked once,
	// then after each change; it may send where nothing changed. A failure of
	// what it looks at is part of the state, and retried. Run returns nil once ctx
	// is cancelled, when everything that it started has ended. It never closes
	// out.
	Run(ctx context.Context, out chan<- Supply) error
}

// ParseFunc decodes one file or body. It is called by one goroutine of each
// source at a time.
type ParseFunc func(data []byte, origin pod.Origin) manifests.Result

// Run runs all sources and sends their merged state: first at once, saying that
// nobody has spoken, then after each supply. States that a slow reader did not
// take are replaced by newer ones. It returns when ctx is cancelled (nil) or a
// source gave up (its error), after all sources have ended. It never closes out.
func Run(ctx context.Context, sources []Source, out chan<- pod.Set) error {
	var order []pod.SourceID
	known := map[pod.SourceID]bool{}
	for _, s := range sources {
		if known[s.ID()] {
			return fmt.Errorf("source %s is configured twice", s.ID())
		}
		known[s.ID()] = true
		order = append(order, s.ID())
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	in := make(chan Supply)
	var running sync.WaitGroup
	defer running.Wait()
	for _, s := range sources {
		running.Go(func() {
			if err := s.Run(ctx, in); err != nil && ctx.Err() == nil {
				cancel(&gaveUpError{s.ID(), err})
			}
		})
	}
	merge(ctx, order, in, out)
	cancel(nil)
	running.Wait()
	if failed, ok := context.Cause(ctx).(*gaveUpError); ok {
		return failed
	}
	return nil
}

type gaveUpError struct {
	id  pod.SourceID
	err error
}

func (e *gaveUpError) Error() string { return fmt.Sprintf("source %s: %v", e.id, e.err) }
func (e *gaveUpError) Unwrap() error { return e.err }

// merge passes on the merged state until ctx ends.
func merge(ctx context.Context, order []pod.SourceID, in <-chan Supply, out chan<- pod.Set) {
	supplies := map[pod.SourceID]Supply{}
	next := Merge(order, supplies)
	ready := out // nil while there is nothing new to send
	for {
		select {
		case s := <-in:
			supplies[s.Source.ID] = s
			next, ready = Merge(order, supplies), out
		case ready <- next:
			ready = nil
		case <-ctx.Done():
			return
		}
	}
}
