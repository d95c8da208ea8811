package agent

import (
	"context"
	"errors"
	"fmt"

	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/reconcile"
	"github.com/podkeeper/podkeeper/server"
)

// What is done to pods by hand: see server.Answers.

func (p *parts) restart(ctx context.Context, key pod.Key, container string) error {
	if container == "" {
		return handError(p.loop.Restart(ctx, key), key)
	}
	err := p.loop.RestartContainer(ctx, key, container)
	if errors.Is(err, reconcile.ErrNoContainer) {
		return fmt.Errorf("%w: pod %s has no container %q", server.ErrNoPod, key, container)
	}
	return handError(err, key)
}

func (p *parts) stop(ctx context.Context, key pod.Key) error {
	return handError(p.loop.Stop(ctx, key), key)
}

func (p *parts) start(ctx context.Context, key pod.Key) error {
	return handError(p.loop.Start(ctx, key), key)
}

func handError(err error, key pod.Key) error {
	if errors.Is(err, reconcile.ErrNoPod) {
		return fmt.Errorf("%w: nothing supplies pod %s", server.ErrNoPod, key)
	}
	return err
}
