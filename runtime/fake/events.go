package fake

import (
	"context"
	"sync"
	"time"

	"github.com/podkeeper/podkeeper/runtime"
)

// subscriber is one event stream.
type subscriber struct {
	rootDir string
	mu      sync.Mutex
	queue   []string
	// more has one slot: the queue is not empty.
	more chan struct{}
}

func (s *subscriber) deliver(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = append(s.queue, id)
	select {
	case s.more <- struct{}{}:
	default:
	}
}

func (s *subscriber) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := s.queue
	s.queue = nil
	return ids
}

// publish sends an event to the streams of those whose container it is. Each
// event has a fate of its own: it may be lost, come twice, or overtake another.
func (e *Engine) publish(verb string, c *container) {
	id := c.ID
	for s := range e.subscribers {
		if _, ok := runtime.Owned(s.rootDir, c.Name, c.Labels); ok {
			e.Fate.Deliver(s.rootDir+" "+verb+" "+c.Name, func() { s.deliver(id) })
		}
	}
}

// Watch implements runtime.Runtime.
func (c *Client) Watch(ctx context.Context, ready func(), changed chan<- string) error {
	s := &subscriber{rootDir: c.rootDir, more: make(chan struct{}, 1)}
	var broken <-chan struct{}
	err := c.do(ctx, "watch", c.rootDir, time.Millisecond, 5*time.Millisecond, func() error {
		c.engine.subscribers[s] = true
		broken = c.engine.broken
		return nil
	})
	defer c.engine.unsubscribe(s)
	if err != nil {
		return err
	}
	ready()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-c.fence:
			return errFenced
		case <-broken:
			return errBroken
		case <-s.more:
		}
		for _, id := range s.take() {
			select {
			case changed <- id:
			case <-ctx.Done():
				return ctx.Err()
			case <-c.fence:
				return errFenced
			}
		}
	}
}

func (e *Engine) unsubscribe(s *subscriber) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.subscribers, s)
}
