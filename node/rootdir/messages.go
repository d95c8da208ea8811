package rootdir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"

	"k8s.io/apimachinery/pkg/types"
)

func messageName(uid types.UID, container string, attempt int) (string, error) {
	return cleanName("pods/" + string(uid) + "/containers/" + container + "/" + strconv.Itoa(attempt))
}

// MakeMessage makes the empty file into which an attempt of a container may write
// why it ends, whoever it runs as, and returns its path on the host. One that is
// there stays as it is; that of the attempt before the last one is removed.
func (d *Dir) MakeMessage(uid types.UID, container string, attempt int) (string, error) {
	name, err := messageName(uid, container, attempt)
	if err != nil {
		return "", err
	}
	err = d.makeFolders(podsDir + "/" + string(uid))
	if err == nil {
		// Not brought to the disk: a machine that crashes takes the container along.
		err = d.root.MkdirAll(path.Dir(name), 0o700)
	}
	if err != nil {
		return "", fmt.Errorf("make folder of %s: %w", name, err)
	}
	if old, err := messageName(uid, container, attempt-2); err == nil && attempt >= 2 {
		if err := d.root.Remove(old); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("remove %s: %w", old, err)
		}
	}
	f, err := d.root.OpenFile(name, os.O_WRONLY|os.O_CREATE, 0o666)
	if err != nil {
		return "", fmt.Errorf("make %s: %w", name, err)
	}
	// The umask is not to decide who may write.
	return filepath.Join(d.path, name), errors.Join(f.Chmod(0o666), f.Close())
}

// ReadMessage returns the end of what an attempt of a container wrote, at most so
// many bytes; nothing where it has no file.
func (d *Dir) ReadMessage(uid types.UID, container string, attempt, most int) ([]byte, error) {
	name, err := messageName(uid, container, attempt)
	if err != nil {
		return nil, err
	}
	f, err := d.root.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.NewSectionReader(f, max(0, info.Size()-int64(most)), int64(most)))
}
