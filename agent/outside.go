package agent

import (
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/podkeeper/podkeeper/node/cgroup"
)

// ProcessGroups are the cgroups of processes that are of no pod: see cgroup.Groups.
type ProcessGroups = cgroup.Groups

// outsidePeriod is how often processes of no pod are looked at.
const outsidePeriod = time.Minute

// sortOutside puts them where they belong, at once and then time and again, until ctx
// ends. What goes wrong is said once, until it changes.
func sortOutside(ctx context.Context, g ProcessGroups, log *slog.Logger) error {
	if g == (ProcessGroups{}) {
		return nil
	}
	var host cgroup.Host
	said := ""
	for {
		list, err := host.MachineProcesses("/proc")
		var moved []cgroup.Move
		if err == nil {
			moved, err = host.MoveOut(ctx, cgroup.SelectMoves(list, g, os.Getpid()))
		}
		for _, m := range moved {
			log.Info("process moved to its cgroup", "process", m.PID, "name", m.Name, "cgroup", m.To)
		}
		text := ""
		if err != nil && ctx.Err() == nil {
			text = err.Error()
		}
		if text != said && text != "" {
			log.Warn("processes cannot be moved to their cgroups", "err", text)
		}
		said = text
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(outsidePeriod):
		}
	}
}
