package main

import (
	"archive/tar"
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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
