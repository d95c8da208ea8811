package docker

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/filters"

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
	defer cancel()
	unanswered := time.AfterFunc(min(inspectTimeout, r.cfg.CallTimeout), cancel)
	stream, err := r.events(ctx, e)
	if !unanswered.Stop() {
		err = context.DeadlineExceeded
	}
	if err != nil {
		return r.streamEnded(parent, e, err)
	}
	defer stream.Close()
	ready()
	for decoder := json.NewDecoder(stream); ; {
		var message events.Message
		if err := decoder.Decode(&message); err != nil {
			return r.streamEnded(parent, e, err)
		}
		if !r.concerns(message) {
			continue
		}
		select {
		case changed <- message.Actor.ID:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// events asks for the stream without the library's help: that does not tell whether
// the engine has granted it.
func (r *Runtime) events(ctx context.Context, e *engine) (io.ReadCloser, error) {
	asked := r.ownerFilter()
	asked.Add("type", string(events.ContainerEventType))
	for _, action := range watched {
		asked.Add("event", string(action))
	}
	filters, err := filters.ToJSON(asked)
	if err != nil {
		return nil, err
	}
	// The engine answers before it subscribes. With an instant before the call
	// it also hands out what happened in between.
	now := time.Now()
	query := url.Values{"filters": {filters}, "since": {fmt.Sprintf("%d.%09d", now.Unix(), now.Nanosecond())}}
	to := e.address.JoinPath("v"+e.ClientVersion(), "events")
	to.RawQuery = query.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, to.String(), nil)
	if err != nil {
		return nil, err
	}
	answer, err := e.HTTPClient().Do(request)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		answer.Body.Close()
		return nil, unavailable(fmt.Errorf("the engine answers %s", answer.Status))
	}
	return answer.Body, nil
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
