package gc

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// EvictionText is an eviction policy as people write it: by signal.
type EvictionText struct {
	Hard, Soft, SoftGrace, Reclaim map[string]string
}

// The names of its parts, as the flags are called.
const (
	HardPart      = "eviction-hard"
	SoftPart      = "eviction-soft"
	SoftGracePart = "eviction-soft-grace-period"
	ReclaimPart   = "eviction-minimum-reclaim"
)

// Thresholds reads them. wrong is called with each problem and the part that it is
// in.
func (x EvictionText) Thresholds(wrong func(part string, err error)) []Threshold {
	graces := make(map[Signal]time.Duration)
	each(x.SoftGrace, func(s Signal, text string) (err error) {
		graces[s], err = time.ParseDuration(text)
		switch {
		case err != nil:
			return fmt.Errorf("%q: want a duration such as 90s", text)
		case graces[s] < 0:
			return fmt.Errorf("%s: want 0 or more", text)
		}
		return nil
	}, func(err error) { wrong(SoftGracePart, err) })
	reclaims := make(map[Signal]Amount)
	each(x.Reclaim, func(s Signal, text string) (err error) {
		reclaims[s], err = parseAmount(text)
		return err
	}, func(err error) { wrong(ReclaimPart, err) })
	var list []Threshold
	read := func(part string, texts map[string]string, soft bool) {
		each(texts, func(s Signal, text string) error {
			if text == "0%" || text == "100%" {
				return nil // how a kubelet's threshold is switched off
			}
			amount, err := parseAmount(text)
			grace, given := graces[s]
			switch {
			case err != nil:
				return err
			case amount == Amount{}:
				return fmt.Errorf("%s: want more than 0", text)
			case soft && !given:
				return errors.New("a soft threshold needs a grace period (--eviction-soft-grace-period)")
			}
			t := Threshold{Signal: s, Amount: amount, Soft: soft, Reclaim: reclaims[s]}
			if soft {
				t.Grace = grace
			}
			list = append(list, t)
			return nil
		}, func(err error) { wrong(part, err) })
	}
	read(HardPart, x.Hard, false)
	read(SoftPart, x.Soft, true)
	return list
}

// each reads the entries in the order of the signals.
func each(texts map[string]string, read func(Signal, string) error, wrong func(error)) {
	for _, s := range Signals() {
		if text, ok := texts[string(s)]; ok {
			if err := read(s, strings.TrimSpace(text)); err != nil {
				wrong(fmt.Errorf("%s: %w", s, err))
			}
		}
	}
	var unknown []string
	for name := range texts {
		if !slices.Contains(Signals(), Signal(name)) {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	for _, name := range unknown {
		wrong(fmt.Errorf("unknown signal %q", name))
	}
}

// parseAmount reads a quantity or a percentage.
func parseAmount(text string) (Amount, error) {
	if share, ok := strings.CutSuffix(text, "%"); ok {
		percent, err := strconv.ParseFloat(share, 64)
		if err != nil || !(percent >= 0 && percent <= 100) {
			return Amount{}, fmt.Errorf("%q: want a percentage from 0%% to 100%%", text)
		}
		return Amount{Percent: percent}, nil
	}
	q, err := resource.ParseQuantity(text)
	switch {
	case err != nil:
		return Amount{}, fmt.Errorf("%q: want a quantity such as 100Mi, or a percentage", text)
	case q.Sign() < 0:
		return Amount{}, fmt.Errorf("%s: want 0 or more", text)
	}
	return Amount{Value: q.Value()}, nil
}
