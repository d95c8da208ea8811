package runtimetest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/podkeeper/podkeeper/runtime"
)

func logs(t *testing.T, b bench) {
	changed := b.watching(t)
	id := b.run(t, b.sandbox(t), "app", b.Say("one", "two", "three"))
	b.ended(t, changed, id)
	for name, test := range map[string]struct {
		q    runtime.LogQuery
		want string
	}{
		"all of it":                 {runtime.LogQuery{Tail: -1, Stdout: true, Stderr: true}, "one\ntwo\nthree\n"},
		"last lines":                {runtime.LogQuery{Tail: 2, Stdout: true}, "two\nthree\n"},
		"no line":                   {runtime.LogQuery{Tail: 0, Stdout: true, Stderr: true}, ""},
		"the other stream":          {runtime.LogQuery{Tail: -1, Stderr: true}, ""},
		"since an hour ago":         {runtime.LogQuery{Tail: -1, Stdout: true, Since: time.Now().Add(-time.Hour)}, "one\ntwo\nthree\n"},
		"since what is yet to come": {runtime.LogQuery{Tail: -1, Stdout: true, Since: time.Now().Add(time.Hour)}, ""},
		"followed to its end":       {runtime.LogQuery{Tail: -1, Stdout: true, Follow: true}, "one\ntwo\nthree\n"},
	} {
		var got bytes.Buffer
		if err := b.Runtime.Logs(b.ctx, id, test.q, &got); err != nil || got.String() != test.want {
			t.Errorf("%s: %q, %v; want %q", name, got.String(), err, test.want)
		}
	}
	var got bytes.Buffer
	if err := b.Runtime.Logs(b.ctx, id, runtime.LogQuery{Tail: 1, Stdout: true, Timestamps: true}, &got); err != nil {
		t.Error(err)
	}
	stamp, text, _ := strings.Cut(got.String(), " ")
	if at, err := time.Parse("2006-01-02T15:04:05.000000000Z", stamp); err != nil || text != "three\n" || time.Since(at).Abs() > time.Hour {
		t.Errorf("with a timestamp: %q, %v", got.String(), err)
	}
	full := errors.New("full")
	if err := b.Runtime.Logs(b.ctx, id, runtime.LogQuery{Tail: -1, Stdout: true}, writer(func([]byte) (int, error) { return 0, full })); !errors.Is(err, full) {
		t.Errorf("got %v, want the error of the writer", err)
	}
	foreign := b.Somebody.Run(t, "somebody-"+b.RootDir[strings.LastIndexByte(b.RootDir, '/')+1:], nil)
	for name, id := range map[string]string{"gone": strings.Repeat("ab", 32), "somebody's": foreign} {
		if err := b.Runtime.Logs(b.ctx, id, runtime.LogQuery{Stdout: true}, io.Discard); !errors.Is(err, runtime.ErrNotFound) {
			t.Errorf("of one that is %s: %v, want ErrNotFound", name, err)
		}
	}
}

type writer func([]byte) (int, error)

func (w writer) Write(b []byte) (int, error) { return w(b) }

func logsFollowed(t *testing.T, b bench) {
	id := b.run(t, b.sandbox(t), "app", b.Forever)
	ctx, cancel := context.WithCancel(b.ctx)
	done := make(chan error, 2)
	follow := runtime.LogQuery{Tail: -1, Stdout: true, Stderr: true, Follow: true}
	go func() { done <- b.Runtime.Logs(ctx, id, follow, io.Discard) }()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that of the context", err)
	}
	found := make(chan int, 1)
	go func() {
		done <- b.Runtime.Logs(b.ctx, id, follow, writer(func(text []byte) (int, error) {
			select {
			case found <- len(text):
			default:
			}
			return len(text), nil
		}))
	}()
	if n := <-found; n != 0 {
		t.Errorf("first came %d bytes, want word that the log was found", n)
	}
	if err := b.Runtime.Stop(b.ctx, id, 10*time.Second); err != nil {
		t.Error(err)
	}
	if err := <-done; err != nil {
		t.Errorf("after its end: %v", err)
	}
}
