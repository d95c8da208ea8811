package sources

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// FS is the file tree that a [File] looks at. Names are absolute and clean.
// Errors wrap fs.ErrNotExist where a name, or what a link leads to, is missing.
type FS interface {
	// ReadDir lists a folder, links followed, in any order. With an error the
	// list is not used.
	ReadDir(name string) ([]fs.DirEntry, error)
	// Stat follows links.
	Stat(name string) (Stat, error)
	// Open opens a regular file, links followed. It never blocks: anything else,
	// such as a pipe that took the file's place, is an error.
	Open(name string) (io.ReadCloser, error)
	// Resolve returns the name without links.
	Resolve(name string) (string, error)
}

// Stat is what tells one state of a file from another. Equal values are taken
// for the same content once they are old enough.
type Stat struct {
	Mode fs.FileMode // the type bits only
	Size int64
	// Modified and Changed are in nanoseconds since 1970.
	Modified, Changed int64
	// Dev and Ino name the file itself, apart from its content.
	Dev, Ino uint64
}

func (s Stat) sameFile(o Stat) bool { return s.Dev == o.Dev && s.Ino == o.Ino }

// OSFiles is the file tree of this machine.
type OSFiles struct{}

var _ FS = OSFiles{}

// ReadDir implements FS.
func (OSFiles) ReadDir(name string) ([]fs.DirEntry, error) {
	d, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	entries, err := d.ReadDir(-1)
	return entries, errors.Join(err, d.Close())
}

// Stat implements FS.
func (OSFiles) Stat(name string) (Stat, error) {
	var st unix.Stat_t
	for {
		err := unix.Stat(name, &st)
		if err == nil {
			break
		}
		if err != unix.EINTR {
			return Stat{}, &fs.PathError{Op: "stat", Path: name, Err: err}
		}
	}
	return Stat{
		Mode: fileType(st.Mode), Size: st.Size,
		Modified: st.Mtim.Nano(), Changed: st.Ctim.Nano(),
		Dev: st.Dev, Ino: st.Ino,
	}, nil
}

func fileType(mode uint32) fs.FileMode {
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
		return 0
	case unix.S_IFDIR:
		return fs.ModeDir
	case unix.S_IFIFO:
		return fs.ModeNamedPipe
	case unix.S_IFSOCK:
		return fs.ModeSocket
	case unix.S_IFCHR:
		return fs.ModeDevice | fs.ModeCharDevice
	case unix.S_IFBLK:
		return fs.ModeDevice
	default:
		return fs.ModeIrregular
	}
}

// Open implements FS.
func (OSFiles) Open(name string) (io.ReadCloser, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("open %s: %s", name, describe(info.Mode()))
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Resolve implements FS.
func (OSFiles) Resolve(name string) (string, error) { return filepath.EvalSymlinks(name) }

// describe says what a file that is not regular is.
func describe(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeDir != 0:
		return "a folder"
	case mode&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a device"
	default:
		return "not a regular file"
	}
}
