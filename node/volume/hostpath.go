package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	v1 "k8s.io/api/core/v1"
)

// ensureHostPath checks the type of a path of the host, and makes what the type
// allows to be made. Symbolic links are followed, as the manifest's author
// would: the path is theirs, not the pod's.
func ensureHostPath(v v1.Volume, hostPath string) error {
	if !filepath.IsAbs(hostPath) {
		return fmt.Errorf("hostPath %s is not an absolute path", hostPath)
	}
	typ := v1.HostPathUnset
	if v.HostPath.Type != nil {
		typ = *v.HostPath.Type
	}
	info, err := os.Stat(hostPath)
	if errors.Is(err, fs.ErrNotExist) {
		switch typ {
		case v1.HostPathUnset, v1.HostPathDirectoryOrCreate:
			// Engines used to make a missing path of no type; the mounts that are
			// asked for here do not.
			return makeDirs(hostPath)
		case v1.HostPathFileOrCreate:
			return makeFile(hostPath)
		}
	} else if err != nil {
		return fmt.Errorf("hostPath: %w", err)
	}
	want, ok := wanted(typ, info)
	if ok {
		return nil
	}
	if want == "" {
		return fmt.Errorf("%s is an invalid volume type", typ)
	}
	is := "it does not exist"
	if info != nil {
		is = "it is a " + kind(info.Mode())
	}
	message := fmt.Sprintf("hostPath type check failed: %s is not a %s, %s", hostPath, want, is)
	return &Error{Volume: v.Name, Path: hostPath, Message: message, Err: err}
}

// wanted names the kind of file that a type asks for, "" where it does not know
// the type, and reports whether info, nil for a missing file, is one.
func wanted(typ v1.HostPathType, info fs.FileInfo) (string, bool) {
	want := ""
	switch typ {
	case v1.HostPathUnset:
		return "", true
	case v1.HostPathDirectory, v1.HostPathDirectoryOrCreate:
		want = "directory"
	case v1.HostPathFile, v1.HostPathFileOrCreate:
		want = "file"
	case v1.HostPathSocket:
		want = "socket file"
	case v1.HostPathCharDev:
		want = "character device"
	case v1.HostPathBlockDev:
		want = "block device"
	}
	return want, want != "" && info != nil && kind(info.Mode()) == want
}

// kind names a kind of file in the kubelet's words.
func kind(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "directory"
	case mode.IsRegular():
		return "file"
	case mode&fs.ModeSocket != 0:
		return "socket file"
	case mode&fs.ModeCharDevice != 0:
		return "character device"
	case mode&fs.ModeDevice != 0:
		return "block device"
	case mode&fs.ModeNamedPipe != 0:
		return "named pipe"
	default:
		return "file of an unknown kind"
	}
}

// makeDirs makes a directory and those above it that are missing, mode 0755
// whatever the umask. Existing ones stay as they are.
func makeDirs(dir string) error {
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	if parent := filepath.Dir(dir); parent != dir {
		if err := makeDirs(parent); err != nil {
			return err
		}
	}
	err := os.Mkdir(dir, 0o755)
	if errors.Is(err, fs.ErrExist) {
		// Somebody else may have been faster.
		if info, statErr := os.Stat(dir); statErr == nil && info.IsDir() {
			return nil
		}
	}
	if err != nil {
		return err
	}
	return os.Chmod(dir, 0o755)
}

// makeFile makes an empty file of mode 0644 whatever the umask, in a directory
// that must exist.
func makeFile(name string) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	return errors.Join(f.Chmod(0o644), f.Close())
}
