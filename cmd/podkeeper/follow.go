package main

import (
	"context"
	"time"

	"github.com/podkeeper/podkeeper/server"
)

// reconnectEvery is how often an agent that went away is tried again.
const reconnectEvery = time.Second

// askState asks for what follow follows most often.
func askState(ctx context.Context, client *server.Client, after uint64) (server.State, uint64, error) {
	s, err := client.State(ctx, after)
	return s, s.Revision, err
}

// follow calls each with what the agent answers, now and after every change, until
// each says that it is done. An agent that stops answering later is waited for:
// pods outlive it, so what is told of them goes on when it is back.
func follow[T any](
	ctx context.Context, c *cli, l location,
	ask func(ctx context.Context, client *server.Client, after uint64) (found T, revision uint64, err error),
	each func(T) (done bool, err error),
) error {
	client := server.NewClient(l.socket)
	var after uint64
	answered, away := false, false
	for {
		found, revision, err := ask(ctx, client, after)
		switch {
		case err == nil:
			if away {
				c.err.printf("The agent is back.\n")
			}
			answered, away, after = true, false, revision
			if done, err := each(found); done || err != nil {
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
