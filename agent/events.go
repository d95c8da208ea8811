package agent

import (
	"context"
	"time"

	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/server"
	"github.com/podkeeper/podkeeper/server/events"
)

// EventConfig says how many events are kept: see events.Config. Its Node is set
// from the agent's.
type EventConfig = events.Config

// record keeps an event. Whoever hands it over has written its line in the log.
func (p *parts) record(e pod.Event) {
	p.counters.Event(e)
	p.events.Record(e, time.Now())
}

// say keeps an event, and writes it to the log.
func (p *parts) say(e pod.Event) {
	pod.LogEvents(p.log)(e)
	p.record(e)
}

// happened answers clients: see server.Answers.
func (p *parts) happened(ctx context.Context, after uint64) (server.Events, error) {
	items, revision, err := p.events.List(ctx, after, time.Now)
	return server.Events{Revision: revision, Items: items}, err
}
