package main

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// logSettings are the flags of logs, which go to standard error.
type logSettings struct{ format, level string }

func (s *logSettings) flags(f *pflag.FlagSet) {
	f.StringVar(&s.format, "log-format", "text", "`FORMAT` of logs: text (short lines on a terminal), json")
	f.StringVar(&s.level, "log-level", "info", "the least important `LEVEL` that is logged: debug, info, warn, error")
}

func (s *logSettings) check() error {
	if s.format != "text" && s.format != "json" {
		return fmt.Errorf("--log-format %q: want text or json", s.format)
	}
	if _, err := s.threshold(); err != nil {
		return fmt.Errorf("--log-level %q: want debug, info, warn or error", s.level)
	}
	return nil
}

func (s *logSettings) threshold() (slog.Level, error) {
	var level slog.Level
	err := level.UnmarshalText([]byte(s.level))
	return level, err
}

// logger writes JSON where that is asked for, short lines to a terminal, and
// slog's text elsewhere.
func (c *cli) logger(s *logSettings, out *screen) *slog.Logger {
	level, _ := s.threshold()
	options := &slog.HandlerOptions{Level: level}
	switch {
	case s.format == "json":
		return slog.New(slog.NewJSONHandler(c.err, options))
	case c.err.terminal:
		return slog.New(&shortLines{out: out, level: level, paint: c.err.paint})
	default:
		return slog.New(slog.NewTextHandler(c.err, options))
	}
}

// shortLines is a handler for people: the time of day, the level where it is not
// info, the message, and the attributes as key=value.
type shortLines struct {
	out   *screen
	level slog.Level
	paint func(tint, string) string
	group string // before each key
	attrs string // those of WithAttrs, written
}

// Enabled implements slog.Handler.
func (h *shortLines) Enabled(_ context.Context, level slog.Level) bool { return level >= h.level }

// Handle implements slog.Handler.
func (h *shortLines) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	if !r.Time.IsZero() {
		b.WriteString(h.paint(faint, r.Time.Format(time.TimeOnly)) + " ")
	}
	switch {
	case r.Level >= slog.LevelError:
		b.WriteString(h.paint(bad, "error:") + " ")
	case r.Level >= slog.LevelWarn:
		b.WriteString(h.paint(busy, "warning:") + " ")
	case r.Level < slog.LevelInfo:
		b.WriteString("debug: ")
	}
	b.WriteString(oneLine(r.Message))
	b.WriteString(h.attrs)
	r.Attrs(func(a slog.Attr) bool {
		h.attr(&b, h.group, a)
		return true
	})
	return h.out.line(b.String())
}

func (h *shortLines) attr(b *strings.Builder, group string, a slog.Attr) {
	value := a.Value.Resolve()
	if value.Kind() == slog.KindGroup {
		if a.Key != "" {
			group += a.Key + "."
		}
		for _, inner := range value.Group() {
			h.attr(b, group, inner)
		}
		return
	}
	if a.Equal(slog.Attr{}) {
		return
	}
	text := value.String()
	if text == "" || strings.ContainsAny(text, " \"=") || strings.ContainsFunc(text, unprintable) {
		text = strconv.Quote(text)
	}
	b.WriteString(" " + h.paint(faint, group+a.Key+"=") + text)
}

// WithAttrs implements slog.Handler.
func (h *shortLines) WithAttrs(attrs []slog.Attr) slog.Handler {
	var b strings.Builder
	for _, a := range attrs {
		h.attr(&b, h.group, a)
	}
	next := *h
	next.attrs += b.String()
	return &next
}

// WithGroup implements slog.Handler.
func (h *shortLines) WithGroup(name string) slog.Handler {
	next := *h
	if name != "" {
		next.group += name + "."
	}
	return &next
}
