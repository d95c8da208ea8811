package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	v1 "k8s.io/api/core/v1"
)

const (
	volumesDir  = "volumes"
	emptyDirDir = "volumes/kubernetes.io~empty-dir"
)

// Error is why a volume cannot be had now. It may be had later: somebody may
// make the directory, or bring the socket back.
type Error struct {
	// Volume is the volume's name, Path the path of the host that it is about.
	Volume, Path string
	// Message is the whole reason, in the kubelet's words where it has any.
	Message string
	// Err is the cause, nil where the message says it all.
	Err error
}

// Error returns the sentence that people know from the kubelet's events.
func (e *Error) Error() string {
	return fmt.Sprintf("MountVolume.SetUp failed for volume %q : %s", e.Volume, e.Message)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Path returns where the volume is on the host, "" for a kind that has no place
// there. It need not exist.
func Path(podDir string, v v1.Volume) string {
	switch {
	case v.HostPath != nil:
		return filepath.Clean(v.HostPath.Path)
	case v.EmptyDir != nil:
		return filepath.Join(podDir, emptyDirDir, v.Name)
	default:
		return ""
	}
}

// Ensure makes the volume be there and returns its path on the host. What is
// there stays as it is, contents and mode; the type of a host path is checked
// each time. A failure is an *Error.
func Ensure(podDir string, v v1.Volume) (string, error) {
	hostPath := Path(podDir, v)
	err := ensure(podDir, v, hostPath)
	if err == nil {
		return hostPath, nil
	}
	if _, ok := errors.AsType[*Error](err); ok {
		return "", err
	}
	return "", &Error{Volume: v.Name, Path: hostPath, Message: err.Error(), Err: err}
}

func ensure(podDir string, v v1.Volume, hostPath string) error {
	switch {
	case v.HostPath != nil:
		return ensureHostPath(v, hostPath)
	case v.EmptyDir == nil:
		return errors.New("only emptyDir and hostPath volumes are supported")
	}
	if v.Name == "." || !filepath.IsLocal(v.Name) || strings.Contains(v.Name, "/") {
		return fmt.Errorf("volume name %q: %w", v.Name, fs.ErrInvalid)
	}
	switch v.EmptyDir.Medium {
	case v1.StorageMediumDefault:
		return makeEmptyDir(podDir, v.Name)
	case v1.StorageMediumMemory:
		if err := makeEmptyDir(podDir, v.Name); err != nil {
			return err
		}
		return mountTmpfs(hostPath, v.EmptyDir.SizeLimit)
	default:
		return fmt.Errorf("storage medium %q is not supported", v.EmptyDir.Medium)
	}
}

// makeEmptyDir makes the directory with mode 0777 whatever the umask. It
// appears with its mode, in one step: one that is there is never changed,
// since its containers may have chosen another mode since.
func makeEmptyDir(podDir, name string) error {
	if err := os.MkdirAll(podDir, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(podDir)
	if err != nil {
		return err
	}
	defer root.Close()
	dir := path.Join(emptyDirDir, name)
	info, err := root.Lstat(dir)
	if err == nil && !info.IsDir() {
		return fmt.Errorf("%s is not a directory", filepath.Join(podDir, dir))
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := root.MkdirAll(emptyDirDir, 0o700); err != nil {
		return err
	}
	// No volume is called that: names begin with a letter or digit.
	temp := path.Join(emptyDirDir, "."+name)
	if err := root.RemoveAll(temp); err != nil { // of a crash
		return err
	}
	if err := root.Mkdir(temp, 0o700); err != nil {
		return err
	}
	if err := root.Chmod(temp, 0o777); err != nil {
		return err
	}
	return root.Rename(temp, dir)
}
