package volume_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/node/volume"
)

func configMap() v1.Volume {
	return v1.Volume{Name: "c", VolumeSource: v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{}}}
}

func secret() v1.Volume {
	return v1.Volume{Name: "s", VolumeSource: v1.VolumeSource{Secret: &v1.SecretVolumeSource{}}}
}

// files returns the files of a volume; the mode of all is 0644.
func files(content map[string]string) (list []volume.File) {
	for _, path := range slices.Sorted(maps.Keys(content)) {
		list = append(list, volume.File{Path: path, Data: content[path], Mode: 0o644})
	}
	return list
}

// fill makes a volume have the files.
func fill(t *testing.T, podDir string, v v1.Volume, list []volume.File) string {
	t.Helper()
	r := request(podDir, v)
	r.Files = list
	if err := hostOf(podDir).Ensure(context.Background(), r); err != nil {
		t.Fatal(err)
	}
	return pathOf(podDir, v)
}

// seen returns what a container sees in a volume: each file that can be opened by
// a path that a listing leads to, the writer's own names left out.
func seen(t *testing.T, dir string) map[string]string {
	t.Helper()
	got := make(map[string]string)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "..") {
			continue
		}
		real, err := filepath.EvalSymlinks(filepath.Join(dir, e.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		err = filepath.WalkDir(real, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			data, err := os.ReadFile(path)
			got[filepath.Join(e.Name(), strings.TrimPrefix(path, real))] = string(data)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return got
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

func TestFilesFollowTheirContent(t *testing.T) {
	podDir := podFolder(t)
	for _, content := range []map[string]string{
		{"a": "1", "b": "2", "dir/x": "3", "dir/sub/y": "4"},
		{"a": "1", "b": "other", "dir/x": "3", "dir/sub/y": "4"}, // a value
		{"a": "1", "new": "5", "dir/z": "6"},                     // names
		{"dir": "a file now", "a/b": "a folder now"},
		{},
		{"a": ""},
	} {
		dir := fill(t, podDir, configMap(), files(content))
		same(t, "content", seen(t, dir), content)
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		own := slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return !strings.HasPrefix(e.Name(), "..") })
		if len(own) != 2 || own[1].Name() != "..data" {
			t.Errorf("left behind: %v", own)
		}
	}
}

// A reader that looks while an update runs finds the old or the new, and a reader
// that holds the old open keeps it.
func TestFilesChangeAtOnce(t *testing.T) {
	podDir := podFolder(t)
	dir := fill(t, podDir, configMap(), files(map[string]string{"a": "0", "b": "0"}))
	held, err := os.Open(filepath.Join(dir, "a"))
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	stop, done := make(chan struct{}), make(chan string, 1)
	go func() {
		for {
			select {
			case <-stop:
				done <- ""
				return
			default:
			}
			folder, err := os.Readlink(filepath.Join(dir, "..data"))
			if err != nil {
				done <- err.Error()
				return
			}
			a, errA := os.ReadFile(filepath.Join(dir, folder, "a"))
			b, errB := os.ReadFile(filepath.Join(dir, folder, "b"))
			// The folder may be gone by now; what is read is of one piece.
			if errA == nil && errB == nil && string(a) != string(b) {
				done <- fmt.Sprintf("a is %s while b is %s", a, b)
				return
			}
		}
	}()
	for i := range 200 {
		n := fmt.Sprint(i)
		fill(t, podDir, configMap(), files(map[string]string{"a": n, "b": n}))
	}
	close(stop)
	if said := <-done; said != "" {
		t.Error(said)
	}
	buf := make([]byte, 8)
	if n, err := held.Read(buf); err != nil || string(buf[:n]) != "0" {
		t.Errorf("the open file reads %q, %v", buf[:n], err)
	}
}

// Law 3: wherever the steps end, all of the old content is there or all of the
// new, and the next call makes it the new one and leaves nothing behind.
func TestFilesSurviveACrashAtEachStep(t *testing.T) {
	old := map[string]string{"kept": "1", "changed": "2", "gone": "3", "dir/x": "4"}
	next := map[string]string{"kept": "1", "changed": "two", "added": "5", "dir/y/z": "6"}
	begin := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	crashes := 0
	for n := 0; ; n++ {
		podDir := podFolder(t)
		dir := fill(t, podDir, configMap(), files(old))
		r := request(podDir, configMap())
		r.Files = files(next)
		more, err := volume.EnsureFilesUpTo(dir, r, n, begin.Add(time.Duration(n)*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		if !more {
			break
		}
		crashes++
		got := seen(t, dir)
		if !maps.Equal(got, old) && !maps.Equal(got, next) {
			t.Errorf("after step %d: %v", n, got)
		}
		fill(t, podDir, configMap(), r.Files)
		same(t, fmt.Sprintf("after the crash at step %d and another call", n), seen(t, dir), next)
		entries, err := os.ReadDir(dir)
		if err != nil || len(entries) != 2+4 {
			t.Errorf("after the crash at step %d in the folder: %v, %v", n, entries, err)
		}
	}
	if crashes < 10 {
		t.Errorf("only %d steps", crashes)
	}
}

func TestFilesThatAreThereAreNotWritten(t *testing.T) {
	podDir := podFolder(t)
	content := files(map[string]string{"a": "1", "dir/b": "2"})
	dir := fill(t, podDir, configMap(), content)
	state := func() (all []string) {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			var st unix.Stat_t
			if err := unix.Lstat(path, &st); err != nil {
				return err
			}
			all = append(all, fmt.Sprint(path, st.Ino, st.Ctim, st.Mtim))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	before := state()
	fill(t, podDir, configMap(), content)
	same(t, "inodes and times", state(), before)

	content[0].Mode = 0o600
	fill(t, podDir, configMap(), content)
	if got := fileMode(t, filepath.Join(dir, "a")); got != 0o600 {
		t.Errorf("mode is %#o after an edit of only that", got)
	}
	if err := os.Remove(filepath.Join(dir, "a")); err != nil {
		t.Fatal(err)
	}
	fill(t, podDir, configMap(), content)
	same(t, "after a link was removed", seen(t, dir), map[string]string{"a": "1", "dir/b": "2"})
}

func fileMode(t *testing.T, path string) fs.FileMode {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode().Perm()
}

// C073: modes are those that were asked for, whatever the umask; a group that
// owns the volume may read.
func TestModesAndOwnersOfFilesC073(t *testing.T) {
	defer unix.Umask(unix.Umask(0o077))
	group := int64(2000)
	type attr struct {
		Mode fs.FileMode
		Gid  uint32
	}
	tests := map[string]struct {
		group *int64
		want  map[string]attr
	}{
		"without a group": {nil, map[string]attr{
			".": {fs.ModeDir | 0o755, 0}, "d": {fs.ModeDir | 0o755, 0}, "open": {0o666, 0}, "closed": {0o400, 0}, "d/run": {0o755, 0}, "none": {0, 0},
		}},
		"with one": {&group, map[string]attr{
			".": {fs.ModeDir | fs.ModeSetgid | 0o755, 2000}, "d": {fs.ModeDir | fs.ModeSetgid | 0o755, 2000},
			"open": {0o666, 2000}, "closed": {0o440, 2000}, "d/run": {0o755, 2000}, "none": {0o440, 2000},
		}},
	}
	for name, tt := range tests {
		for _, v := range []v1.Volume{configMap(), secret()} {
			t.Run(name+" in "+v.Name, func(t *testing.T) {
				podDir := podFolder(t)
				r := request(podDir, v)
				r.FSGroup = tt.group
				r.Files = []volume.File{{Path: "open", Mode: 0o666}, {Path: "closed", Mode: 0o400}, {Path: "d/run", Mode: 0o755}, {Path: "none"}}
				for range 2 {
					if err := hostOf(podDir).Ensure(context.Background(), r); err != nil {
						t.Fatal(err)
					}
				}
				got := make(map[string]attr)
				for path := range tt.want {
					info, err := os.Stat(filepath.Join(pathOf(podDir, v), path))
					if err != nil {
						t.Fatal(err)
					}
					var st unix.Stat_t
					if err := unix.Stat(filepath.Join(pathOf(podDir, v), path), &st); err != nil {
						t.Fatal(err)
					}
					got[path] = attr{info.Mode(), st.Gid}
				}
				same(t, "modes and groups", got, tt.want)
			})
		}
	}
}

// C074: secret values lie on no disk.
func TestSecretsAreInMemoryC074(t *testing.T) {
	of := func(sources ...v1.VolumeProjection) v1.Volume {
		return v1.Volume{Name: "p", VolumeSource: v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{Sources: sources}}}
	}
	config := v1.VolumeProjection{ConfigMap: &v1.ConfigMapProjection{}}
	tests := map[string]struct {
		v      v1.Volume
		memory bool
	}{
		"a secret":                         {secret(), true},
		"a projection that has one":        {of(config, v1.VolumeProjection{Secret: &v1.SecretProjection{}}), true},
		"a projection that has none":       {of(config), false},
		"a configMap":                      {configMap(), false},
		"a projection that has nothing":    {of(), false},
		"an emptyDir, for comparison only": {emptyDir("d"), false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			podDir := podFolder(t)
			var dir string
			for range 2 {
				dir = fill(t, podDir, tt.v, files(map[string]string{"k": "v"}))
			}
			var st unix.Statfs_t
			if err := unix.Statfs(dir, &st); err != nil {
				t.Fatal(err)
			}
			if got := st.Type == unix.TMPFS_MAGIC; got != tt.memory {
				t.Errorf("in memory: %v, want %v", got, tt.memory)
			}
			if got := len(mounts(t, podDir)); got > 1 {
				t.Errorf("%d mounts", got)
			}
			if err := removeVolumes(podDir); err != nil {
				t.Fatal(err)
			}
			if got := mounts(t, podDir); len(got) != 0 {
				t.Errorf("left mounted: %v", got)
			}
		})
	}
}

func TestFilesRefusePathsThatLeadOut(t *testing.T) {
	for _, path := range []string{"", ".", "..", "../x", "a/../../x", "/etc/x", "a/", "./a", "a//b", "..data", "..x/y"} {
		podDir := podFolder(t)
		r := request(podDir, configMap())
		r.Files = []volume.File{{Path: path}}
		if err := hostOf(podDir).Ensure(context.Background(), r); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("%q: %v, want fs.ErrInvalid", path, err)
		}
	}
}

// Values of secrets are in no message (law of all logs).
func TestFileDoesNotShowItsData(t *testing.T) {
	r := volume.Request{Files: []volume.File{{Path: "k", Data: "hunter2", Mode: 0o400}}}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		got := fmt.Sprintf(verb, r)
		if strings.Contains(got, "hunter2") || strings.Contains(got, "104 117 110") || strings.Contains(got, "0x68, 0x75") {
			t.Errorf("%s prints %s", verb, got)
		}
	}
}
