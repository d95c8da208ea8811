package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

// entry is one of an archive that somebody in a container made up.
type entry struct {
	kind       byte
	name, link string
	content    string
}

func archiveOf(t *testing.T, entries []entry) *bytes.Buffer {
	t.Helper()
	var data bytes.Buffer
	w := tar.NewWriter(&data)
	for _, e := range entries {
		h := &tar.Header{Typeflag: e.kind, Name: e.name, Linkname: e.link, Size: int64(len(e.content)), Mode: 0o644}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(e.content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &data
}

// Whatever a container sends, nothing is written outside of the destination.
func TestUnpack(t *testing.T) {
	const dir, file, link, hard, pipe = tar.TypeDir, tar.TypeReg, tar.TypeSymlink, tar.TypeLink, tar.TypeFifo
	for name, test := range map[string]struct {
		entries []entry
		want    map[string]string // below the folder that the destination is in
		passed  int
		err     string
	}{
		"a file":              {[]entry{{file, "./src", "", "1"}}, map[string]string{"dst": "1"}, 0, ""},
		"a folder":            {[]entry{{dir, "./src/", "", ""}, {file, "./src/a/b", "", "1"}}, map[string]string{"dst/a/b": "1"}, 0, ""},
		"one that climbs":     {[]entry{{file, "./src", "", "1"}, {file, "../evil", "", "x"}, {file, "./src/../../evil", "", "x"}}, map[string]string{"dst": "1"}, 2, ""},
		"an absolute one":     {[]entry{{file, "/etc/evil", "", "x"}, {file, "./src", "", "1"}}, map[string]string{"dst": "1"}, 1, ""},
		"another's name":      {[]entry{{file, "./srcs", "", "x"}, {file, "./src", "", "1"}}, map[string]string{"dst": "1"}, 1, ""},
		"a link, and through": {[]entry{{link, "./src/l", "/outside", ""}, {file, "./src/l/evil", "", "1"}}, map[string]string{"dst/l/evil": "1"}, 1, ""},
		"a link of files":     {[]entry{{hard, "./src/h", "/etc/passwd", ""}, {file, "./src/f", "", "1"}}, map[string]string{"dst/f": "1"}, 1, ""},
		"a pipe":              {[]entry{{pipe, "./src/p", "", ""}, {file, "./src/f", "", "1"}}, map[string]string{"dst/f": "1"}, 1, ""},
		"through a link here": {[]entry{{file, "./src/out/evil", "", "x"}}, nil, 0, "escapes"},
		"onto a link here":    {[]entry{{file, "./src/out", "", "1"}}, map[string]string{"dst/out": "1"}, 0, ""},
		"nothing":             {nil, nil, 0, "sent nothing"},
		"a link alone":        {[]entry{{link, "./src", "/etc/passwd", ""}}, nil, 1, "sent nothing that can be copied"},
		"a link of files to a link": {[]entry{{link, "./src/l", "../../outside", ""}, {hard, "./src/h", "./src/l", ""}, {file, "./src/h/evil", "", "1"}},
			map[string]string{"dst/h/evil": "1"}, 2, ""},
		"a folder that becomes a link":  {[]entry{{dir, "./src/d/", "", ""}, {link, "./src/d", "/outside", ""}, {file, "./src/d/evil", "", "1"}}, map[string]string{"dst/d/evil": "1"}, 1, ""},
		"a name of dots and slashes":    {[]entry{{file, "./src//.././../evil", "", "x"}, {file, "./src/./a//b", "", "1"}}, map[string]string{"dst/a/b": "1"}, 1, ""},
		"a device":                      {[]entry{{tar.TypeChar, "./src/null", "", ""}, {file, "./src/f", "", "1"}}, map[string]string{"dst/f": "1"}, 1, ""},
		"a file in the way of a folder": {[]entry{{file, "./src/a", "", "1"}, {file, "./src/a/b", "", "2"}}, map[string]string{"dst/a": "1"}, 0, "not a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			top := t.TempDir()
			outside, in := filepath.Join(top, "outside"), filepath.Join(top, "in")
			for _, d := range []string{outside, in} {
				if err := os.Mkdir(d, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if strings.HasSuffix(name, "a link here") {
				if err := os.Mkdir(filepath.Join(in, "dst"), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.Symlink(outside, filepath.Join(in, "dst", "out")); err != nil {
					t.Fatal(err)
				}
			}
			passed := 0
			err := unpack(archiveOf(t, test.entries), "src", filepath.Join(in, "dst"), func(string) { passed++ })
			if test.err == "" && err != nil || test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)) {
				t.Errorf("it says %v, want %q", err, test.err)
			}
			if passed != test.passed {
				t.Errorf("%d were passed over, want %d", passed, test.passed)
			}
			got := map[string]string{}
			walk := func(at string, d fs.DirEntry, err error) error {
				if err != nil || !d.Type().IsRegular() {
					return err
				}
				data, err := os.ReadFile(at)
				rel, _ := filepath.Rel(in, at)
				got[rel] = string(data)
				return err
			}
			if err := filepath.WalkDir(top, walk); err != nil {
				t.Fatal(err)
			}
			if test.want == nil {
				test.want = map[string]string{}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("what is there (-want +got):\n%s", diff)
			}
		})
	}
}

// What was named is written to, whatever it is; below it devices and pipes stay.
func TestUnpackToWhatIsNoFile(t *testing.T) {
	one := func() *bytes.Buffer { return archiveOf(t, []entry{{tar.TypeReg, "./src", "", "1"}}) }
	top := t.TempDir()
	pipe, real, link := filepath.Join(top, "pipe"), filepath.Join(top, "real"), filepath.Join(top, "link")
	if err := errors.Join(syscall.Mkfifo(pipe, 0o600), os.WriteFile(real, []byte("old"), 0o600), os.Symlink("real", link)); err != nil {
		t.Fatal(err)
	}
	reading := make(chan string, 1)
	go func() {
		data, err := os.ReadFile(pipe)
		reading <- fmt.Sprint(string(data), err)
	}()
	nobody := func(text string) { t.Error(text) }
	if err := unpack(one(), "src", pipe, nobody); err != nil {
		t.Fatal(err)
	}
	if got := <-reading; got != "1<nil>" {
		t.Errorf("out of the pipe came %q", got)
	}
	if err := unpack(one(), "src", link, nobody); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(real); string(data) != "1" {
		t.Errorf("behind the link is %q, %v", data, err)
	}
	folder := archiveOf(t, []entry{{tar.TypeDir, "./src/", "", ""}})
	if err := unpack(folder, "src", pipe, nobody); err == nil || !strings.Contains(err.Error(), "neither file nor folder") {
		t.Errorf("a folder on a pipe: %v", err)
	}
	below := archiveOf(t, []entry{{tar.TypeReg, "./src/pipe", "", "1"}})
	if err := unpack(below, "src", top, nobody); err == nil || !strings.Contains(err.Error(), "neither file nor folder") {
		t.Errorf("a file on a pipe of its name: %v", err)
	}
	if info, err := os.Lstat(pipe); err != nil || info.Mode().Type() != fs.ModeNamedPipe {
		t.Errorf("the pipe has become %v, %v", info, err)
	}
}

// A file gets no more rights than those to read, write and run it.
func TestUnpackGivesNoMoreRights(t *testing.T) {
	var data bytes.Buffer
	w := tar.NewWriter(&data)
	if err := errors.Join(w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "./src", Mode: 0o6755, Uid: 12345, Gid: 12345}), w.Close()); err != nil {
		t.Fatal(err)
	}
	target := filepath.Join(t.TempDir(), "dst")
	if err := unpack(&data, "src", target, func(text string) { t.Error(text) }); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(target)
	if err != nil {
		t.Fatal(err)
	}
	if owner := info.Sys().(*syscall.Stat_t); info.Mode()&(fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky) != 0 || owner.Uid != uint32(os.Getuid()) {
		t.Errorf("it has mode %v and owner %d", info.Mode(), owner.Uid)
	}
}

func TestPathsIn(t *testing.T) {
	const listing = "./\n../\n.hidden\nbin/\nbig file\nevil\x1b[2J\nlib/\n"
	const space, noSpace = cobra.ShellCompDirectiveNoFileComp, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	for name, test := range map[string]struct {
		begun     string
		want      []string
		directive cobra.ShellCompDirective
	}{
		"all but what is hidden":        {"", []string{"web:/bin/", "web:/big file", "web:/lib/"}, space},
		"several have begun so":         {"bi", []string{"web:/bin/", "web:/big file"}, space},
		"a folder, in which it goes on": {"l", []string{"web:/lib/"}, noSpace},
		"a file, which is all":          {"big", []string{"web:/big file"}, space},
		"what is hidden":                {".h", []string{"web:/.hidden"}, space},
		"nothing":                       {"x", nil, space},
	} {
		t.Run(name, func(t *testing.T) {
			got, directive := pathsIn(listing, "web:/", test.begun)
			if diff := cmp.Diff(test.want, got); diff != "" || directive != test.directive {
				t.Errorf("directive %d, want %d; paths (-want +got):\n%s", directive, test.directive, diff)
			}
		})
	}
}
