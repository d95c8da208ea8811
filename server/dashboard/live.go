package dashboard

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/podkeeper/podkeeper/server"
)

const (
	// settle is how long changes that come in a row are gathered.
	settle = 250 * time.Millisecond
	// retry is how often an agent that went away is tried again.
	retry = time.Second
	// usageEvery is how often it is asked what pods use.
	usageEvery = 5 * time.Second
	// nodeEvery is how often it is asked for the node's conditions.
	nodeEvery = 15 * time.Second
	// beat is how often a client is told something even if there is nothing: it
	// knows then that the page is still served, and this side that it is there.
	beat = 10 * time.Second
	// writeWithin is how long a client may take for a message.
	writeWithin = 30 * time.Second
)

// message is one line of what is told; what it leaves out is as before.
type message struct {
	// Now lets ages be right where the browser's clock is not.
	Now int64 `json:"now"`
	// Away says that the agent does not answer, and why. Once it does again a
	// whole state follows.
	Away string `json:"away,omitempty"`

	State  *stateChange `json:"state,omitempty"`
	Events *eventChange `json:"events,omitempty"`
	Usage  *usageView   `json:"usage,omitempty"`
	// NoUsage says why there is none.
	NoUsage string       `json:"noUsage,omitempty"`
	Machine *machineView `json:"machine,omitempty"`
}

// stateChange has the pods that are new or other than before, and those that are gone.
type stateChange struct {
	// Whole: forget what was told before.
	Whole   bool              `json:"whole,omitempty"`
	Node    nodeView          `json:"node"`
	Sources json.RawMessage   `json:"sources,omitempty"` // if they changed
	Pods    []json.RawMessage `json:"pods,omitempty"`
	Gone    []string          `json:"gone,omitempty"`
}

type eventChange struct {
	Whole bool        `json:"whole,omitempty"`
	Items []eventView `json:"items"`
}

// live tells a client what there is and everything that changes, a JSON object a
// line, until it goes away.
func (p *page) live(w http.ResponseWriter, r *http.Request) error {
	ctx, cancel := context.WithCancel(r.Context())
	messages := make(chan message)
	var g errgroup.Group
	defer func() {
		cancel()
		_ = g.Wait() // its functions return none
	}()
	tell := func(m message) {
		select {
		case messages <- m:
		case <-ctx.Done():
		}
	}
	g.Go(func() error { p.tellState(ctx, tell); return nil })
	g.Go(func() error { p.tellEvents(ctx, tell); return nil })
	if p.Usage != nil {
		g.Go(func() error { p.tellUsage(ctx, tell); return nil })
	}
	if p.Node != nil {
		g.Go(func() error { p.tellMachine(ctx, tell); return nil })
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	out := newWriter(w)
	ticker := time.NewTicker(beat)
	defer ticker.Stop()
	for {
		var m message
		select {
		case <-ctx.Done():
			return nil
		case m = <-messages:
		case <-ticker.C:
		}
		m.Now = time.Now().UnixMilli()
		line, err := json.Marshal(m)
		if err != nil {
			return err
		}
		if _, err := out.Write(append(line, '\n')); err != nil {
			return nil // it went away
		}
	}
}

func (p *page) tellState(ctx context.Context, tell func(message)) {
	var before told
	var after uint64
	for ctx.Err() == nil {
		s, err := p.State(ctx, after)
		if err != nil {
			tell(message{Away: err.Error()})
			before, after = told{}, 0 // another agent counts anew
			pause(ctx, retry)
			continue
		}
		change, now, err := p.change(before, s)
		if err != nil {
			tell(message{Away: err.Error()})
			return
		}
		tell(message{State: change})
		before, after = now, s.Revision
		pause(ctx, settle)
	}
}

// told is what a client knows.
type told struct {
	pods    map[string][]byte // by ID; nil where it knows nothing yet
	sources []byte
}

// change returns what differs from before.
func (p *page) change(before told, s server.State) (*stateChange, told, error) {
	change := &stateChange{Whole: before.pods == nil, Node: viewNode(s, p.offered())}
	sources, err := json.Marshal(viewSources(s))
	if err != nil {
		return nil, before, err
	}
	now := told{pods: make(map[string][]byte, len(s.Pods)), sources: sources}
	if !bytes.Equal(sources, before.sources) {
		change.Sources = sources
	}
	for _, one := range s.Pods {
		if one.Pod == nil {
			continue
		}
		view := viewPod(one, p.Line(one))
		data, err := json.Marshal(view)
		if err != nil {
			return nil, before, err
		}
		now.pods[view.ID] = data
		if !bytes.Equal(data, before.pods[view.ID]) {
			change.Pods = append(change.Pods, data)
		}
	}
	for id := range before.pods {
		if _, still := now.pods[id]; !still {
			change.Gone = append(change.Gone, id)
		}
	}
	return change, now, nil
}

// offered are the actions that the page has buttons for.
func (p *page) offered() []string {
	if p.Act == nil {
		return nil
	}
	return p.Actions
}

// tellEvents does not say when the agent is away: tellState does.
func (p *page) tellEvents(ctx context.Context, tell func(message)) {
	var after uint64
	for ctx.Err() == nil {
		found, err := p.Events(ctx, after)
		if err != nil {
			after = 0
			pause(ctx, retry)
			continue
		}
		change := &eventChange{Whole: after == 0, Items: []eventView{}}
		for _, e := range found.Items {
			change.Items = append(change.Items, viewEvent(e))
		}
		tell(message{Events: change})
		after = found.Revision
		pause(ctx, settle)
	}
}

func (p *page) tellUsage(ctx context.Context, tell func(message)) {
	for ctx.Err() == nil {
		found, err := p.Usage(ctx)
		if err != nil {
			tell(message{NoUsage: err.Error()})
		} else {
			view := viewUsage(found)
			tell(message{Usage: &view})
		}
		pause(ctx, usageEvery)
	}
}

// tellMachine leaves it at what was told last while there is no answer.
func (p *page) tellMachine(ctx context.Context, tell func(message)) {
	for ctx.Err() == nil {
		if node, err := p.Node(ctx); err == nil {
			view := viewMachine(node)
			tell(message{Machine: &view})
		}
		pause(ctx, nodeEvery)
	}
}

// pause waits, unless ctx ends first.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// writer sends what is written at once, and fails where the client takes too long.
type writer struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

func newWriter(w http.ResponseWriter) writer { return writer{w, http.NewResponseController(w)} }

func (w writer) Write(b []byte) (int, error) {
	// Not all writers have deadlines: those of tests don't.
	_ = w.control.SetWriteDeadline(time.Now().Add(writeWithin))
	n, err := w.w.Write(b)
	if err == nil {
		err = w.control.Flush()
	}
	return n, err
}
