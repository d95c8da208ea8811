package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podkeeper/podkeeper/runtime"
)

func newScreen(w *bytes.Buffer, colour bool) *screen {
	return (&cli{err: &stream{w: w, terminal: true, colour: colour}, now: time.Now}).screen()
}

func TestShortLines(t *testing.T) {
	when := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, test := range map[string]struct {
		level slog.Level
		log   func(*slog.Logger)
		want  string
	}{
		"a change, and what it is about": {log: func(l *slog.Logger) {
			l.Info("container started", "pod", "default/web", "attempt", 2, "took", 1500*time.Millisecond)
		}, want: "03:04:05 container started pod=default/web attempt=2 took=1.5s\n"},
		"a warning and an error say so": {log: func(l *slog.Logger) {
			l.Warn("w", "err", errors.New("it broke"))
			l.Error("e")
		}, want: "03:04:05 warning: w err=\"it broke\"\n03:04:05 error: e\n"},
		"debug is left out": {log: func(l *slog.Logger) { l.Debug("d") }, want: ""},
		"unless it is asked for": {level: slog.LevelDebug, log: func(l *slog.Logger) { l.Debug("d") },
			want: "03:04:05 debug: d\n"},
		"values that would be misread are quoted, commands to the terminal taken out": {log: func(l *slog.Logger) {
			l.Info("a\x1b[2Jb\nc", "empty", "", "quote", `"`, "line", "x\ny", "esc", "\x1b[2J")
		}, want: `03:04:05 a` + "\ufffd" + `[2Jb; c empty="" quote="\"" line="x\ny" esc="\x1b[2J"` + "\n"},
		"groups and attributes of the logger": {log: func(l *slog.Logger) {
			l.With("a", 1).WithGroup("g").With("b", 2).Info("m", "c", 3, slog.Group("h", "d", 4), slog.Group("", "e", 5), slog.Attr{})
		}, want: "03:04:05 m a=1 g.b=2 g.c=3 g.h.d=4 g.e=5\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			s := newScreen(&out, false)
			h := &shortLines{out: s, level: test.level, paint: s.out.paint}
			test.log(slog.New(fixedTime{h, when}))
			if diff := cmp.Diff(test.want, out.String()); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPullsAreOneLineBelowTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		s := newScreen(&out, false)
		step := func(want string) {
			t.Helper()
			if diff := cmp.Diff(want, out.String()); diff != "" {
				t.Errorf("written (-want +got):\n%s", diff)
			}
			out.Reset()
		}
		s.progress(runtime.PullProgress{Image: "b", Done: 1, Layers: 3, Bytes: 1_000_000, Total: 2_500_000})
		step("pulling b 1/3 1MB of 2.5MB")

		// Sooner than a person can read, nothing is drawn.
		s.progress(runtime.PullProgress{Image: "a"})
		step("")
		time.Sleep(redrawEvery)
		s.progress(runtime.PullProgress{Image: "b", Done: 2, Layers: 3})
		step(eraseLine + "pulling a, b 2/3")

		// A line of the log stays; the pulls come back with the next news.
		if err := s.line("hello"); err != nil {
			t.Fatal(err)
		}
		step(eraseLine + "hello\n")
		if err := s.line("again"); err != nil {
			t.Fatal(err)
		}
		step("again\n")

		// A pull that is done is gone at once, one that says nothing more is in time.
		s.progress(runtime.PullProgress{Image: "b", Done: 3, Layers: 3})
		step("pulling a")
		time.Sleep(forgetAfter + time.Second)
		s.progress(runtime.PullProgress{Image: "c", Layers: 1})
		step(eraseLine + "pulling c 0/1")
		s.progress(runtime.PullProgress{Image: "c", Done: 1, Layers: 1})
		step(eraseLine)
	})
}

func TestPullsKeepToTheScreen(t *testing.T) {
	long := map[string]pull{strings.Repeat("ä", 100): {}}
	text := []rune(pullsText(long))
	if len(text) != screenWidth || text[len(text)-1] != '…' {
		t.Errorf("%d characters that end in %q, want %d that end in …", len(text), text[len(text)-1], screenWidth)
	}
}

func TestPaint(t *testing.T) {
	off, on := &stream{}, &stream{colour: true}
	if got := off.paint(bad, "x"); got != "x" {
		t.Errorf("without colours: %q", got)
	}
	if got, want := on.paint(bad, "x"), "\x1b[31mx\x1b[0m"; got != want {
		t.Errorf("with colours: %q, want %q", got, want)
	}
}

// fixedTime gives every record the same time.
type fixedTime struct {
	slog.Handler
	at time.Time
}

func (h fixedTime) Handle(ctx context.Context, r slog.Record) error {
	r.Time = h.at
	return h.Handler.Handle(ctx, r)
}

func (h fixedTime) WithAttrs(a []slog.Attr) slog.Handler {
	return fixedTime{h.Handler.WithAttrs(a), h.at}
}
func (h fixedTime) WithGroup(name string) slog.Handler {
	return fixedTime{h.Handler.WithGroup(name), h.at}
}
