package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/podkeeper/podkeeper/agent"
)

// evictSettings are the flags about what the node may run short of.
type evictSettings struct {
	hard, soft, softGrace, reclaim []string
	transition                     time.Duration
	podGrace                       int
	lowDisk                        int
}

// defaultHard are the kubelet's thresholds.
func defaultHard() []string {
	return []string{"memory.available<100Mi", "nodefs.available<10%", "nodefs.inodesFree<5%", "imagefs.available<15%", "imagefs.inodesFree<5%"}
}

func (e *evictSettings) flags(f *pflag.FlagSet) {
	f.StringSliceVar(&e.hard, "eviction-hard", defaultHard(),
		"the `THRESHOLDS` signal<amount at which pods are evicted at once; \"\" for none")
	f.StringSliceVar(&e.soft, "eviction-soft", nil, "the `THRESHOLDS` at which pods are evicted when they were met for the grace period")
	f.StringSliceVar(&e.softGrace, "eviction-soft-grace-period", nil, "the `PERIODS` signal=duration for soft thresholds")
	f.StringSliceVar(&e.reclaim, "eviction-minimum-reclaim", nil, "the `AMOUNTS` signal=amount that are to be left beyond a threshold once pods were evicted for it")
	f.DurationVar(&e.transition, "eviction-pressure-transition-period", 5*time.Minute, "how long the node counts as under pressure after it last was")
	f.IntVar(&e.podGrace, "eviction-max-pod-grace-period", 0, "how many seconds a pod gets at most to end by a soft threshold")
	f.IntVar(&e.lowDisk, "low-diskspace-threshold-mb", 256, "how many MB are to be left on the filesystem of the root dir and of the images for a pod to be admitted; 0 for any")
}

// eviction returns what the flags say; check takes what is wrong with one.
func (e *evictSettings) eviction(check func(flag string, err error)) agent.EvictionConfig {
	entries := func(flag, sign string, list []string) map[string]string {
		out := make(map[string]string)
		for _, text := range list {
			name, value, ok := strings.Cut(text, sign)
			name = strings.TrimSpace(name)
			_, twice := out[name]
			switch {
			case strings.TrimSpace(text) == "":
			case !ok:
				check(flag, fmt.Errorf("%q: want a signal and a value, with %q between", text, sign))
			case twice:
				check(flag, fmt.Errorf("%s: given twice", name))
			default:
				out[name] = value
			}
		}
		return out
	}
	text := agent.EvictionText{
		Hard: entries("eviction-hard", "<", e.hard), Soft: entries("eviction-soft", "<", e.soft),
		SoftGrace: entries("eviction-soft-grace-period", "=", e.softGrace), Reclaim: entries("eviction-minimum-reclaim", "=", e.reclaim),
	}
	policy := agent.EvictionPolicy{Transition: e.transition, SoftGrace: time.Duration(e.podGrace) * time.Second, LowDisk: int64(e.lowDisk) << 20}
	policy.Thresholds = text.Thresholds(check)
	check("eviction-pressure-transition-period", notNegative(e.transition))
	if e.podGrace < 0 {
		check("eviction-max-pod-grace-period", fmt.Errorf("%d: want 0 or more", e.podGrace))
	}
	if e.lowDisk < 0 {
		check("low-diskspace-threshold-mb", fmt.Errorf("%d: want 0 or more", e.lowDisk))
	}
	return agent.EvictionConfig{Policy: policy}
}
