package runtimetest

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/podkeeper/podkeeper/runtime"
)

func execEnds(t *testing.T, b bench) {
	id := b.run(t, b.sandbox(t), "app", b.Forever)
	for name, test := range map[string]struct {
		command []string
		most    int
		code    int
		output  string
	}{
		"output":              {b.Say("one", "two"), 100, 0, "one\ntwo\n"},
		"output that is cut":  {b.Say("one", "two"), 5, 0, "one\nt"},
		"no output is wanted": {b.Say("one"), 0, 0, ""},
		"an exit code":        {b.Exit(3), 100, 3, ""},
	} {
		got, err := b.Runtime.Exec(b.ctx, id, test.command, test.most)
		if err != nil || got.ExitCode != test.code || string(got.Output) != test.output {
			t.Errorf("%s: code %d, output %q, %v; want %d, %q", name, got.ExitCode, got.Output, err, test.code, test.output)
		}
	}
	if got, err := b.Runtime.Exec(b.ctx, id, b.FailStart, 1000); err != nil || got.ExitCode <= 125 || len(got.Output) == 0 {
		t.Errorf("one that cannot be started: code %d, output %q, %v; want a code above 125 and why", got.ExitCode, got.Output, err)
	}
}

func execKilled(t *testing.T, b bench) {
	id := b.run(t, b.sandbox(t), "app", b.Forever)
	ctx, cancel := context.WithTimeout(b.ctx, 500*time.Millisecond)
	defer cancel()
	if _, err := b.Runtime.Exec(ctx, id, b.Hang, 100); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, runtime.ErrUnavailable) {
		t.Errorf("got %v, want context.DeadlineExceeded and no class", err)
	}
	if c := b.inspect(t, id); c.State != runtime.Running {
		t.Errorf("the container is %s, want it running still", c.State)
	}
}

func execNowhere(t *testing.T, b bench) {
	created := b.create(t, b.sandbox(t), "app", b.Forever)
	foreign := b.Somebody.Run(t, "somebody-"+b.RootDir[strings.LastIndexByte(b.RootDir, '/')+1:], nil)
	for name, id := range map[string]string{"created": created, "gone": strings.Repeat("ab", 32), "somebody's": foreign} {
		if _, err := b.Runtime.Exec(b.ctx, id, b.Exit(0), 0); !errors.Is(err, runtime.ErrNotFound) {
			t.Errorf("exec in one that is %s: %v, want ErrNotFound", name, err)
		}
	}
	if _, err := b.Runtime.LogTail(b.ctx, foreign, 1, 1); !errors.Is(err, runtime.ErrNotFound) {
		t.Errorf("log of somebody's: %v, want ErrNotFound", err)
	}
}

func logTail(t *testing.T, b bench) {
	changed := b.watching(t)
	id := b.run(t, b.sandbox(t), "app", b.Say("one", "two", "three"))
	b.ended(t, changed, id)
	for name, test := range map[string]struct {
		lines, bytes int
		want         string
	}{
		"all of it":   {80, 2048, "one\ntwo\nthree\n"},
		"last lines":  {2, 2048, "two\nthree\n"},
		"last bytes":  {80, 8, "o\nthree\n"},
		"both limits": {1, 3, "ee\n"},
	} {
		if got, err := b.Runtime.LogTail(b.ctx, id, test.lines, test.bytes); err != nil || string(got) != test.want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, test.want)
		}
	}
}

func features(t *testing.T, b bench) {
	f, err := b.Runtime.Features(b.ctx)
	if err != nil {
		t.Fatal(err)
	}
	driver := f.CgroupDriver == runtime.Cgroupfs || f.CgroupDriver == runtime.Systemd
	if !driver || f.CgroupVersion < 1 || f.CgroupVersion > 2 || !filepath.IsAbs(f.Root) {
		t.Errorf("got %+v, want how it makes cgroups and where its data are", f)
	}
}
