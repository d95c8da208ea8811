package agent

import (
	"context"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// tellSystemd says when the agent is ready, and then, as long as the loop makes
// progress, feeds the watchdog. Without systemd it only waits for ctx.
func (p *parts) tellSystemd(ctx context.Context) error {
	snap, err := p.loop.Snapshot(ctx, 0)
	for err == nil && !snap.Ready {
		snap, err = p.loop.Snapshot(ctx, max(snap.Revision, 1))
	}
	if err != nil {
		return nil // the agent is stopping
	}
	p.notify(daemon.SdNotifyReady)
	interval, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		p.log.Warn("the watchdog of systemd cannot be read and is not fed", "err", err)
	}
	if interval == 0 {
		<-ctx.Done()
		p.notify(daemon.SdNotifyStopping)
		return nil
	}
	tick := time.NewTicker(interval / 3)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			// The loop answers this between two rounds: an answer is progress.
			if _, err := p.loop.Snapshot(ctx, 0); err == nil {
				p.notify(daemon.SdNotifyWatchdog)
			}
		case <-ctx.Done():
			p.notify(daemon.SdNotifyStopping)
			return nil
		}
	}
}

func (p *parts) notify(state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		p.log.Warn("systemd cannot be told of the agent's state", "state", state, "err", err)
	}
}
