package rootdir

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// ErrLocked: another process is the agent of this root dir.
var ErrLocked = errors.New("locked by another agent")

// Dir is the root dir of this process, which holds its lock. Its methods may
// be called from several goroutines.
type Dir struct {
	*Reader
	lock *os.File
	temp atomic.Uint64 // names files below .tmp, which nobody else uses
}

// Open makes the root dir where it is missing (0700, missing parents 0755),
// takes its lock, and removes what a crash in the midst of a write left. The
// error wraps ErrLocked, and names the process, where another one has the lock.
//
// A folder that is there keeps its mode unless it is empty or was a root dir
// before; one that others could write to is refused.
func Open(dir string) (*Dir, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open root dir %s: %w", dir, err)
	}
	if err := makeRoot(abs); err != nil {
		return nil, fmt.Errorf("make root dir %s: %w", abs, err)
	}
	r, err := OpenReader(abs)
	if err != nil {
		return nil, err
	}
	d := &Dir{Reader: r}
	if err := d.prepare(); err != nil {
		return nil, errors.Join(fmt.Errorf("open root dir %s: %w", abs, err), d.Close())
	}
	return d, nil
}

func makeRoot(abs string) error {
	if err := os.MkdirAll(filepath.Dir(abs), 0o755); err != nil {
		return err
	}
	err := os.Mkdir(abs, 0o700)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// prepare turns an open folder into a root dir of this process.
func (d *Dir) prepare() error {
	if err := d.tighten(); err != nil {
		return err
	}
	if err := d.takeLock(); err != nil {
		return err
	}
	if err := d.root.RemoveAll(tempDir); err != nil {
		return err
	}
	return d.root.Mkdir(tempDir, 0o700)
}

// tighten closes the folder to others where it is safe to say that it is ours:
// somebody may have passed /tmp.
func (d *Dir) tighten() error {
	info, err := d.root.Stat(".")
	if err != nil || info.Mode().Perm() == 0o700 {
		return err
	}
	names, err := d.Entries(".")
	if err != nil {
		return err
	}
	if _, err := d.root.Lstat(lockName); err == nil || len(names) == 0 {
		return d.root.Chmod(".", 0o700)
	}
	if info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%w: others can write to it (mode %#o)", fs.ErrPermission, info.Mode().Perm())
	}
	return nil
}

func (d *Dir) takeLock() error {
	f, err := d.root.OpenFile(lockName, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		defer f.Close()
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return fmt.Errorf("lock: %w", err)
		}
		// The holder writes its number after it has the lock.
		if pid, _ := io.ReadAll(io.LimitReader(f, 32)); len(bytes.TrimSpace(pid)) > 0 {
			return fmt.Errorf("%w, process %s", ErrLocked, bytes.TrimSpace(pid))
		}
		return ErrLocked
	}
	d.lock = f
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

// Close gives the lock up. The lock file stays: removing it would let two
// agents lock two files of that name.
func (d *Dir) Close() error {
	if d.lock == nil {
		return d.root.Close()
	}
	// Closing alone would leave the lock with a child process that is just being
	// started and still has the descriptor.
	unlocked := unix.Flock(int(d.lock.Fd()), unix.LOCK_UN)
	return errors.Join(unlocked, d.lock.Close(), d.root.Close())
}

// WriteFile makes name (relative, with slashes) hold data, mode 0600, its
// missing folders 0700. When it returns nil the data is on the disk; when it
// does not, the file holds the old or the new data, whole. Nothing is written
// where the file holds the same already.
func (d *Dir) WriteFile(name string, data []byte) error {
	clean, err := cleanName(name)
	if err != nil {
		return err
	}
	if old, err := d.root.ReadFile(clean); err == nil && bytes.Equal(old, data) {
		return nil
	}
	if err := d.replace(clean, data); err != nil {
		return fmt.Errorf("write %s in root dir %s: %w", clean, d.path, err)
	}
	return nil
}

func (d *Dir) replace(name string, data []byte) error {
	temp := path.Join(tempDir, strconv.FormatUint(d.temp.Add(1), 10))
	if err := d.writeTemp(temp, data); err != nil {
		return errors.Join(err, d.root.RemoveAll(temp))
	}
	err := d.root.Rename(temp, name)
	if errors.Is(err, fs.ErrNotExist) {
		if err = d.makeFolders(path.Dir(name)); err == nil {
			err = d.root.Rename(temp, name)
		}
	}
	if err != nil {
		return errors.Join(err, d.root.RemoveAll(temp))
	}
	return d.sync(path.Dir(name))
}

func (d *Dir) writeTemp(temp string, data []byte) error {
	f, err := d.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if _, err := f.Write(data); err != nil {
		return errors.Join(err, f.Close())
	}
	return errors.Join(f.Sync(), f.Close())
}

// makeFolders makes a folder and those above it, each on the disk before the next.
func (d *Dir) makeFolders(dir string) error {
	made := "."
	for part := range strings.SplitSeq(dir, "/") {
		parent := made
		made = path.Join(made, part)
		err := d.root.Mkdir(made, 0o700)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return err
		}
		if err := d.sync(parent); err != nil {
			return err
		}
	}
	return nil
}

// sync brings a folder's entries to the disk.
func (d *Dir) sync(dir string) error {
	f, err := d.root.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// RemoveWithFolder is Remove, and takes the file's folder with it when nothing else is in
// there.
func (d *Dir) RemoveWithFolder(name string) error {
	if err := d.Remove(name); err != nil {
		return err
	}
	folder := path.Dir(name)
	err := d.root.Remove(folder)
	if err == nil {
		err = d.sync(path.Dir(folder))
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTEMPTY) {
		return nil
	}
	return fmt.Errorf("remove %s in root dir %s: %w", folder, d.path, err)
}

// Remove removes one file, for good when it returns nil. One that is missing is
// success, its folder too; a folder is an error.
func (d *Dir) Remove(name string) error {
	clean, err := cleanName(name)
	if err != nil {
		return err
	}
	info, err := d.root.Lstat(clean)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && info.IsDir() {
		err = unix.EISDIR
	}
	if err == nil {
		err = d.root.Remove(clean)
	}
	if err == nil {
		err = d.sync(path.Dir(clean))
	}
	if err != nil {
		return fmt.Errorf("remove %s in root dir %s: %w", clean, d.path, err)
	}
	return nil
}
