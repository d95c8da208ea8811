package main

import (
	"context"
	"time"

	"github.com/podkeeper/podkeeper/server"
)

// reconnectEvery is how often an agent that went away is tried again.
const reconnectEvery = time.Second

// follow calls each with the agent's state, now and after every change, until
// each says that it is done. An agent that stops answering later is waited for:
// pods outlive it, so what is told of them goes on when it is back.
func (c *cli) follow(ctx context.Context, l location, each func(server.State) (done bool, err error)) error {
	client := server.NewClient(l.socket)
	var after uint64
	answered, away := false, false
	for {
		state, err := client.State(ctx, after)
		switch {
		case err == nil:
			if away {
				c.err.printf("The agent is back.\n")
			}
			answered, away, after = true, false, state.Revision
			if done, err := each(state); done || err != nil {
				return err
			}
			continue
		case ctx.Err() != nil:
			return ctx.Err()
		case !answered:
			return askError(l, err)
		case !away:
			c.err.printf("The agent has stopped answering; waiting for it.\n")
			away = true
		}
		after = 0 // another agent counts anew
		if err := pause(ctx, reconnectEvery); err != nil {
			return err
		}
	}
}

// pause waits, and returns the context's error where that ends first.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
