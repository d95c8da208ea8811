package kernel_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podkeeper/podkeeper/node/kernel"
)

// settings makes a /proc/sys of files.
func settings(t *testing.T, values map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, value := range values {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(value+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(data))
}

func TestSettings(t *testing.T) {
	const differing = "vm.overcommit_memory is 0 instead of 1, kernel.panic is 1 instead of 10"
	for name, c := range map[string]struct {
		mode      kernel.Mode
		values    map[string]string
		panicIs   string // afterwards
		log, fail string // a part of each; "" is nothing
	}{
		"set":                     {mode: kernel.Set, panicIs: "10", log: "setting=kernel.panic was=1 is=10"},
		"left as they are":        {mode: kernel.Leave, panicIs: "1", log: differing},
		"protected":               {mode: kernel.Protect, panicIs: "1", fail: differing},
		"as wanted":               {mode: kernel.Protect, values: map[string]string{"vm/overcommit_memory": "1", "kernel/panic": "10"}, panicIs: "10"},
		"not a number: protected": {mode: kernel.Protect, values: map[string]string{"kernel/panic": "x"}, panicIs: "x", fail: "kernel.panic cannot be read"},
		"not a number: set":       {mode: kernel.Set, values: map[string]string{"kernel/panic": "x"}, panicIs: "10", log: "setting=kernel.panic"},
	} {
		t.Run(name, func(t *testing.T) {
			values := map[string]string{"vm/overcommit_memory": "0", "vm/panic_on_oom": "0", "kernel/panic": "1"}
			for file, value := range c.values {
				values[file] = value
			}
			dir := settings(t, values)
			var log bytes.Buffer
			err := kernel.EnsureSettings(dir, c.mode, slog.New(slog.NewTextHandler(&log, nil)))
			if c.fail == "" && err != nil || c.fail != "" && (err == nil || !strings.Contains(err.Error(), c.fail)) {
				t.Errorf("error %v, want one with %q", err, c.fail)
			}
			if (c.log == "") != (log.Len() == 0) || !strings.Contains(log.String(), c.log) {
				t.Errorf("log %q, want %q in it", log.String(), c.log)
			}
			if got := read(t, dir, "kernel/panic"); got != c.panicIs {
				t.Errorf("kernel.panic is %s, want %s", got, c.panicIs)
			}
			if _, err := os.Stat(filepath.Join(dir, "kernel/panic_on_oops")); err == nil {
				t.Error("a setting that the kernel does not have was made")
			}
		})
	}
}

// A machine that refuses is a warning, one for all, and no error.
func TestSettingsRefused(t *testing.T) {
	dir := t.TempDir()
	// Nobody, root included, can write to a folder, nor read one as a number.
	for _, name := range []string{"vm/overcommit_memory", "kernel/panic"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	var log bytes.Buffer
	if err := kernel.EnsureSettings(dir, kernel.Set, slog.New(slog.NewTextHandler(&log, nil))); err != nil {
		t.Fatal(err)
	}
	if got := log.String(); strings.Count(got, "level=WARN") != 1 || !strings.Contains(got, "vm.overcommit_memory cannot be read, kernel.panic cannot be read") {
		t.Errorf("log %s, want one warning that names both", got)
	}
}

// The values are the kubelet's.
func TestWanted(t *testing.T) {
	got := map[string]int{}
	for _, s := range kernel.Wanted() {
		got[s.Name] = s.Value
	}
	want := map[string]int{
		"vm.overcommit_memory": 1, "vm.panic_on_oom": 0, "kernel.panic": 10, "kernel.panic_on_oops": 1,
		"kernel.keys.root_maxkeys": 1000000, "kernel.keys.root_maxbytes": 25000000,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
