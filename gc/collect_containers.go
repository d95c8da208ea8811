package gc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/podkeeper/podkeeper/pod"
)

// ContainerConfig is what the collector of dead containers works with and on.
type ContainerConfig struct {
	Policy Policy
	// Inventory returns every dead container of ours.
	Inventory func(context.Context) ([]Dead, error)
	// Remove removes one; one that is gone is success.
	Remove func(ctx context.Context, id string) error
	// Links is called after each pass, to take away log links that lead nowhere.
	Links func(context.Context) error
	// Claims is called after each pass, to take away the folders of claims that are
	// gone and asked for that.
	Claims func(context.Context) error
	// Period is how often it looks; 0 is once a minute.
	Period time.Duration
	Event  pod.Sink
	Log    *slog.Logger
}

// ContainerCollector removes dead containers, and calls the other passes. It can be
// asked from several goroutines; it makes one pass at a time.
type ContainerCollector struct {
	ContainerConfig
	turn chan struct{} // holds one token while a pass is made
	// seen is when each dead container was first seen; failed, whether the last pass
	// did. Both are of whoever has the turn.
	seen   map[string]time.Time
	failed bool
}

// NewContainerCollector returns one that Run has look.
func NewContainerCollector(cfg ContainerConfig) *ContainerCollector {
	return &ContainerCollector{ContainerConfig: cfg, turn: make(chan struct{}, 1)}
}

// Run looks once a period until ctx ends.
func (c *ContainerCollector) Run(ctx context.Context) error {
	tick := time.NewTicker(cmp.Or(c.Period, time.Minute))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			c.pass(ctx, c.Policy, "")
			if err := c.Links(ctx); err != nil && ctx.Err() == nil {
				c.Log.Warn("log links that lead nowhere cannot be removed", "err", err)
			}
			if err := c.Claims(ctx); err != nil && ctx.Err() == nil {
				c.Log.Warn("folders of claims cannot be looked after", "err", err)
			}
		}
	}
}

// Reclaim removes every dead container that may go and is not younger than the
// minimum age, however few there are: the disk is needed for something else. It
// waits for a pass that is under way.
func (c *ContainerCollector) Reclaim(ctx context.Context) Freed {
	return c.pass(ctx, Policy{MinAge: c.Policy.MinAge}, underPressure)
}

// underPressure is why things go that would stay otherwise.
const underPressure = "disk pressure"

// pass removes what the policy says, for that reason; "" is the policy's own.
func (c *ContainerCollector) pass(ctx context.Context, policy Policy, why string) (freed Freed) {
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return freed
	}
	dead, err := c.Inventory(ctx)
	errs := []error{err}
	if err == nil {
		c.look(dead, time.Now())
	}
	for _, d := range SelectContainers(dead, policy, time.Now()) {
		if err := c.Remove(ctx, d.ID); err != nil {
			errs = append(errs, fmt.Errorf("attempt %d of container %s of %s: %w", d.Attempt, d.Name, d.UID, err))
			continue
		}
		freed.Count++
		c.Log.Info("dead container removed", "uid", d.UID, "container", d.Name, "attempt", d.Attempt, "reason", cmp.Or(why, d.Why))
	}
	if ctx.Err() == nil { // else the agent is stopping
		c.say(errors.Join(errs...))
	}
	return freed
}

// look notes when each was first seen dead.
func (c *ContainerCollector) look(dead []Dead, now time.Time) {
	before := c.seen
	c.seen = make(map[string]time.Time, len(dead))
	for i, d := range dead {
		first, ok := before[d.ID]
		if !ok {
			first = now
		}
		c.seen[d.ID], dead[i].FirstSeen = first, first
	}
}

func (c *ContainerCollector) say(err error) {
	if err != nil && !c.failed {
		c.Event(pod.Event{Type: pod.EventWarning, Reason: pod.ContainerGCFailed, Message: fmt.Sprintf("dead containers cannot be collected: %v", err)})
	}
	c.failed = err != nil
}
