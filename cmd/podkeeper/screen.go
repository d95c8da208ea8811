package main

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/docker/go-units"

	"github.com/podkeeper/podkeeper/runtime"
)

const (
	// redrawEvery bounds how often the line of pulls is drawn.
	redrawEvery = 100 * time.Millisecond
	// forgetAfter is how long a pull that says nothing more is shown: one that
	// failed does not say so here.
	forgetAfter = 5 * time.Second
	// screenWidth is what the line of pulls keeps to, whatever the terminal's width.
	screenWidth = 78
	eraseLine   = "\r\x1b[K"
)

// screen is a terminal with lines that stay and, below them, one that says how
// pulls go. Its methods may be called from several goroutines.
type screen struct {
	mu    sync.Mutex
	out   *stream
	now   func() time.Time
	pulls map[string]pull
	drawn time.Time // when the line of pulls was drawn last
	dirty bool      // it is on the terminal
}

type pull struct {
	runtime.PullProgress
	at time.Time
}

// screen is the one on standard error.
func (c *cli) screen() *screen {
	return &screen{out: c.err, now: c.now, pulls: map[string]pull{}}
}

// line writes a line that stays.
func (s *screen) line(text string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
	_, err := fmt.Fprintln(s.out, text)
	return err
}

// progress takes note of how a pull goes.
func (s *screen) progress(p runtime.PullProgress) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	s.pulls[p.Image] = pull{p, now}
	done := p.Layers > 0 && p.Done == p.Layers
	if done {
		delete(s.pulls, p.Image)
	}
	if done || now.Sub(s.drawn) >= redrawEvery {
		s.erase()
		s.draw(now)
	}
}

// end takes the line of pulls away.
func (s *screen) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
}

func (s *screen) erase() {
	if s.dirty {
		s.out.printf("%s", eraseLine)
		s.dirty = false
	}
}

func (s *screen) draw(now time.Time) {
	s.drawn = now
	for image, p := range s.pulls {
		if now.Sub(p.at) > forgetAfter {
			delete(s.pulls, image)
		}
	}
	text := pullsText(s.pulls)
	if text == "" {
		return
	}
	s.out.printf("%s", text)
	s.dirty = true
}

// pullsText is the line of pulls, cut to the width of a screen.
func pullsText(pulls map[string]pull) string {
	var parts []string
	for _, image := range sorted(pulls) {
		p := pulls[image]
		text := oneLine(image)
		if p.Layers > 0 {
			text += fmt.Sprintf(" %d/%d", p.Done, p.Layers)
		}
		if p.Total > 0 {
			text += fmt.Sprintf(" %s of %s", units.HumanSize(float64(p.Bytes)), units.HumanSize(float64(p.Total)))
		}
		parts = append(parts, text)
	}
	if len(parts) == 0 {
		return ""
	}
	line := []rune("pulling " + strings.Join(parts, ", "))
	if len(line) > screenWidth {
		line = slices.Concat(line[:screenWidth-1], []rune("…"))
	}
	return string(line)
}
