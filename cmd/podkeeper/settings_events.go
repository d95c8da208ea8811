package main

import (
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/podkeeper/podkeeper/agent"
)

// eventSettings are the flags about what is kept of what happened.
type eventSettings struct {
	eventTTL  time.Duration
	maxEvents int
}

func (e *eventSettings) flags(f *pflag.FlagSet) {
	f.DurationVar(&e.eventTTL, "event-ttl", time.Hour, "how long an event is kept after it happened last")
	f.IntVar(&e.maxEvents, "max-events", 1000, "how many events are kept")
}

func (e *eventSettings) events(check func(flag string, err error)) agent.EventConfig {
	if e.eventTTL <= 0 {
		check("event-ttl", fmt.Errorf("%s: want more than 0", e.eventTTL))
	}
	if e.maxEvents < 1 {
		check("max-events", fmt.Errorf("%d: want 1 or more", e.maxEvents))
	}
	return agent.EventConfig{TTL: e.eventTTL, Max: e.maxEvents}
}
