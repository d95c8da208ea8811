package stats

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Files are where the files of a pod are on the host; "" is not known.
type Files struct {
	Containers map[string]ContainerFiles
	// Volumes are the folders of its own volumes, by name.
	Volumes map[string]string
}

// ContainerFiles are those of one container.
type ContainerFiles struct {
	// Writable is the folder of its writable layer, Log the engine's log file,
	// beside which the older ones are.
	Writable, Log string
}

// Fill adds to a pod what is known of its files, and asks for what is not. It does
// not wait for a walk.
func (w *Walker) Fill(p *Pod, f Files) {
	if p.Containers == nil {
		p.Containers = make(map[string]Container, len(f.Containers))
	}
	for name, files := range f.Containers {
		c := p.Containers[name]
		c.RootFS, c.Logs = w.Usage(files.Writable), logs(files.Log)
		p.Containers[name] = c
	}
	p.Volumes = make(map[string]Usage, len(f.Volumes))
	for name, folder := range f.Volumes {
		if _, u := w.Volume(folder); u != nil {
			p.Volumes[name] = *u
		}
	}
}

// logs adds up the file that the engine writes to and those that it rotated; nil
// where there is none.
func logs(file string) *Usage {
	if file == "" {
		return nil
	}
	entries, err := os.ReadDir(filepath.Dir(file))
	if err != nil {
		return nil
	}
	u := Usage{Time: time.Now()}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), filepath.Base(file)) {
			continue
		}
		var st unix.Stat_t
		if unix.Lstat(filepath.Join(filepath.Dir(file), e.Name()), &st) == nil {
			u.Bytes += st.Blocks * blockSize
			u.Inodes++
		}
	}
	return &u
}

// Volume returns the filesystem that the folder of a volume is on, nil where that does not
// answer, and what is in the folder: what the filesystem itself says where it is one of its
// own, and else what the walker knows, which is asked to look again. nil is not known yet.
func (w *Walker) Volume(folder string) (*Filesystem, *Usage) {
	fs, err := statfs(folder) // at first: what else is asked of one that is away never returns
	if err != nil {
		return nil, nil
	}
	if isMount(folder) {
		return fs, whole(fs)
	}
	return fs, w.Usage(folder)
}

// mounted asks the filesystem itself where a volume is one of its own, as one in
// memory is; nil where it is none.
func mounted(folder string) *Usage {
	if !isMount(folder) {
		return nil
	}
	fs, err := statfs(folder)
	if err != nil {
		return nil
	}
	return whole(fs)
}

func isMount(folder string) bool {
	var own, around unix.Stat_t
	return unix.Lstat(folder, &own) == nil && unix.Lstat(filepath.Dir(folder), &around) == nil && own.Dev != around.Dev
}

// whole is what a filesystem holds.
func whole(fs *Filesystem) *Usage {
	u := &Usage{Time: time.Now(), Bytes: fs.Used, FS: fs}
	if fs.Inodes != nil {
		u.Inodes = *fs.Inodes - *fs.InodesFree
	}
	return u
}

// Walked returns the folders that a walk is needed for.
func (f Files) Walked() []string {
	var list []string
	for _, c := range f.Containers {
		list = append(list, c.Writable)
	}
	for _, folder := range f.Volumes {
		if mounted(folder) == nil {
			list = append(list, folder)
		}
	}
	return list
}
