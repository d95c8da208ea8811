package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	yaml "sigs.k8s.io/yaml/goyaml.v3"

	"github.com/podkeeper/podkeeper/agent"
	"github.com/podkeeper/podkeeper/pod"
)

// shutdownSettings are the flags about what a shutdown of the machine waits for.
type shutdownSettings struct {
	period, critical time.Duration
	byPriority       []string
}

func (s *shutdownSettings) flags(f *pflag.FlagSet) {
	f.DurationVar(&s.period, "shutdown-grace-period", 0, "how long a shutdown of the machine waits for pods to end (needs systemd); 0 is not at all")
	f.DurationVar(&s.critical, "shutdown-grace-period-critical-pods", 0, "how much of that is for critical pods, which end after the others")
	f.StringSliceVar(&s.byPriority, "shutdown-grace-period-by-pod-priority", nil, "instead of those: `PRIORITY=PERIOD` of each group of pods that ends together, from that priority up")
}

// shutdown returns the groups by rising priority; check takes what is wrong with them.
func (s *shutdownSettings) shutdown(check func(flag string, err error)) []agent.ShutdownGroup {
	for flag, d := range map[string]time.Duration{"shutdown-grace-period": s.period, "shutdown-grace-period-critical-pods": s.critical} {
		if d < 0 || d > 0 && d < time.Second {
			check(flag, fmt.Errorf("%s: want 1s or more, or 0", d))
		}
	}
	if s.critical > s.period {
		check("shutdown-grace-period-critical-pods", fmt.Errorf("%s: it is a part of --shutdown-grace-period, %s", s.critical, s.period))
	}
	if len(s.byPriority) == 0 {
		if s.period == 0 {
			return nil
		}
		return []agent.ShutdownGroup{{Priority: 0, Grace: s.period - s.critical}, {Priority: pod.ClusterCritical, Grace: s.critical}}
	}
	const flag = "shutdown-grace-period-by-pod-priority"
	if s.period != 0 || s.critical != 0 {
		check(flag, errors.New("give it, or --shutdown-grace-period and --shutdown-grace-period-critical-pods"))
	}
	var groups []agent.ShutdownGroup
	for _, text := range s.byPriority {
		group, err := parseShutdownGroup(text)
		if err == nil && slices.ContainsFunc(groups, func(g agent.ShutdownGroup) bool { return g.Priority == group.Priority }) {
			err = fmt.Errorf("%q: that priority is given twice", text)
		}
		if err != nil {
			check(flag, err)
		}
		groups = append(groups, group)
	}
	slices.SortFunc(groups, func(a, b agent.ShutdownGroup) int { return cmp.Compare(a.Priority, b.Priority) })
	return groups
}

func parseShutdownGroup(text string) (agent.ShutdownGroup, error) {
	number, period, _ := strings.Cut(text, "=")
	priority, bad := strconv.ParseInt(number, 10, 32)
	grace, err := time.ParseDuration(period)
	if bad != nil || err != nil || grace < 0 {
		return agent.ShutdownGroup{}, fmt.Errorf("%q: want a priority and a period, such as 1000=20s", text)
	}
	return agent.ShutdownGroup{Priority: int32(priority), Grace: grace}, nil
}

// readShutdownGroups reads shutdownGracePeriodByPodPriority.
func readShutdownGroups(n *yaml.Node) ([]string, error) {
	var list []struct {
		Priority *int32 `yaml:"priority"`
		Seconds  *int64 `yaml:"shutdownGracePeriodSeconds"`
	}
	if n.Decode(&list) != nil {
		return nil, errors.New("want a list of priority and shutdownGracePeriodSeconds")
	}
	var out []string
	for _, g := range list {
		if g.Priority == nil || g.Seconds == nil {
			return nil, errors.New("want a priority and shutdownGracePeriodSeconds in each")
		}
		out = append(out, fmt.Sprintf("%d=%ds", *g.Priority, *g.Seconds))
	}
	return out, nil
}
