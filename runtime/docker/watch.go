package docker

import (
	"context"
	"fmt"
	"time"

	"github.com/docker/docker/api/types/events"

	"github.com/podkeeper/podkeeper/runtime"
)

// watched are the events after which an inspect says something new. The engine
// filters: probes run by exec would make most of the stream otherwise.
var watched = []events.Action{
	events.ActionCreate, events.ActionStart, events.ActionDie, events.ActionOOM,
	events.ActionDestroy, events.ActionRename, events.ActionUpdate,
	events.ActionPause, events.ActionUnPause,
}

// Watch implements [runtime.Runtime]. It does not connect again.
func (r *Runtime) Watch(ctx context.Context, ready func(), changed chan<- string) error {
	e, err := r.engine(ctx)
	if err == nil {
		err = r.watch(ctx, e, ready, changed)
	}
	return fmt.Errorf("watch the engine's events: %w", err)
}

func (r *Runtime) watch(parent context.Context, e *engine, ready func(), changed chan<- string) error {
	ctx, cancel := context.WithCancel(parent)
	// The engine answers before it subscribes. With an instant before the call
	// it also hands out what happened in between.
	now := time.Now()
	options := events.ListOptions{
		Since:   fmt.Sprintf("%d.%09d", now.Unix(), now.Nanosecond()),
		Filters: r.ownerFilter(),
	}
	options.Filters.Add("type", string(events.ContainerEventType))
	for _, action := range watched {
		options.Filters.Add("event", string(action))
	}
	unanswered := time.AfterFunc(min(inspectTimeout, r.cfg.CallTimeout), cancel)
	messages, errs := e.Events(ctx, options)
	defer func() {
		cancel()
		for range errs { // until the client's reader has ended
		}
	}()
	if !unanswered.Stop() {
		return r.streamEnded(parent, e, context.DeadlineExceeded)
	}
	select {
	case err := <-errs:
		return r.streamEnded(parent, e, err)
	default:
		ready()
	}
	for {
		select {
		case message := <-messages:
			if !r.concerns(message) {
				continue
			}
			select {
			case changed <- message.Actor.ID:
			case <-ctx.Done():
				return ctx.Err()
			}
		case err := <-errs:
			return r.streamEnded(parent, e, err)
		}
	}
}

// streamEnded forgets the connection: the engine that comes back may be newer,
// and refuse the API version that was negotiated with this one.
func (r *Runtime) streamEnded(parent context.Context, e *engine, err error) error {
	if parent.Err() != nil {
		return parent.Err()
	}
	r.drop(e)
	return classify(err)
}

// concerns reports whether a container that is, or was, ours changed: a renamed
// one is not ours any more.
func (r *Runtime) concerns(message events.Message) bool {
	attributes := message.Actor.Attributes
	for _, name := range []string{attributes["name"], attributes["oldName"]} {
		if _, ok := runtime.Owned(r.cfg.RootDir, name, attributes); ok {
			return true
		}
	}
	return false
}
