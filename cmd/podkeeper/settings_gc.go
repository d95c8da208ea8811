package main

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"github.com/podkeeper/podkeeper/agent"
)

// gcSettings are the flags about what is removed because nobody needs it.
type gcSettings struct {
	deadMinAge       time.Duration
	deadPerContainer int
	dead             int

	imageGC      string // on or off
	imageHigh    int
	imageLow     int
	imageMinAge  time.Duration
	imageMaxAge  time.Duration
	pinned       []string
	imageForeign bool
}

func (g *gcSettings) flags(f *pflag.FlagSet) {
	dead, images := agent.DefaultDead(), agent.DefaultImages()
	f.DurationVar(&g.deadMinAge, "minimum-container-ttl-duration", dead.MinAge, "for how long a dead container stays at least, so that its log can be read, also one of a removed pod")
	f.IntVar(&g.deadPerContainer, "maximum-dead-containers-per-container", dead.PerContainer, "how many dead ones stay of each container of a pod; the newest always does where another may follow; -1 is no limit")
	f.IntVar(&g.dead, "maximum-dead-containers", dead.Total, "how many dead containers stay on the node; -1 is no limit")
	f.StringVar(&g.imageGC, "image-gc", "on", "whether images that nobody needs are removed: `on|off`")
	f.IntVar(&g.imageHigh, "image-gc-high-threshold", images.High, "the `PERCENT` in use of the images' filesystem from which images go; 100 is never")
	f.IntVar(&g.imageLow, "image-gc-low-threshold", images.Low, "the `PERCENT` in use below which no more go")
	f.DurationVar(&g.imageMinAge, "minimum-image-ttl-duration", images.MinAge, "for how long an image stays at least that nobody uses")
	f.DurationVar(&g.imageMaxAge, "maximum-image-ttl-duration", images.MaxAge, "after how long an image goes that nobody uses, although there is room; 0 is never")
	f.StringSliceVar(&g.pinned, "pinned-images", nil, "`GLOBS` of names of images that stay, such as registry.example/base/*")
	f.BoolVar(&g.imageForeign, "image-gc-foreign", false, "let images go, too, that the agent neither pulled nor ran")
}

// gc returns what the flags say; check takes what is wrong with one.
func (g *gcSettings) gc(check func(flag string, err error)) agent.GCConfig {
	check("minimum-container-ttl-duration", notNegative(g.deadMinAge))
	check("minimum-image-ttl-duration", notNegative(g.imageMinAge))
	check("maximum-image-ttl-duration", notNegative(g.imageMaxAge))
	if g.imageMaxAge > 0 && g.imageMaxAge <= g.imageMinAge {
		check("maximum-image-ttl-duration", fmt.Errorf("%s: want more than --minimum-image-ttl-duration, %s", g.imageMaxAge, g.imageMinAge))
	}
	if !slices.Contains([]string{"on", "off"}, g.imageGC) {
		check("image-gc", fmt.Errorf("%q: want on or off", g.imageGC))
	}
	check("image-gc-high-threshold", percentage(g.imageHigh))
	check("image-gc-low-threshold", percentage(g.imageLow))
	if g.imageLow >= g.imageHigh {
		check("image-gc-low-threshold", fmt.Errorf("%d: want less than --image-gc-high-threshold, %d", g.imageLow, g.imageHigh))
	}
	var errs []error
	for _, glob := range g.pinned {
		errs = append(errs, agent.CheckPinned(glob))
	}
	check("pinned-images", errors.Join(errs...))
	return agent.GCConfig{
		Containers: &agent.DeadPolicy{MinAge: g.deadMinAge, PerContainer: g.deadPerContainer, Total: g.dead},
		KeepLogs:   g.deadMinAge,
		Images: &agent.ImagePolicy{
			Off: g.imageGC == "off", High: g.imageHigh, Low: g.imageLow, MinAge: g.imageMinAge, MaxAge: g.imageMaxAge,
			Pinned: g.pinned, Foreign: g.imageForeign,
		},
	}
}

func percentage(n int) error {
	if n < 0 || n > 100 {
		return fmt.Errorf("%d: want 0 to 100", n)
	}
	return nil
}
