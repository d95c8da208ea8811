package main

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// unpack writes what an archive has under name to target, which is there as a folder,
// or not at all, or as a file that is replaced; a link there is followed and a device or
// pipe written to, since it was named. The archive comes from a container and may
// say anything: nothing is written outside of target, through no link, and no link is made.
// pass is told what is passed over.
func unpack(archive io.Reader, name, target string, pass func(string)) error {
	target = filepath.Clean(target)
	if followed, err := filepath.EvalSymlinks(target); err == nil {
		target = followed
	}
	// Within root the operating system follows no path out of it.
	root, err := os.OpenRoot(filepath.Dir(target))
	if err != nil {
		return err
	}
	defer root.Close()
	base := filepath.Base(target)
	if base == "." || base == ".." || base == string(filepath.Separator) {
		root.Close()
		if root, err = os.OpenRoot(target); err != nil {
			return err
		}
		defer root.Close()
		base = "."
	}
	found := false
	for reader := tar.NewReader(archive); ; {
		h, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("what the container sent: %w", err)
		}
		rest, ok := below(name, h.Name)
		if !ok {
			pass("passed over, as it is not of " + name + ": " + h.Name)
			continue
		}
		found = found || h.Typeflag == tar.TypeReg || h.Typeflag == tar.TypeDir
		if err := write(root, filepath.Join(base, filepath.FromSlash(rest)), rest == "", h, reader, pass); err != nil {
			return err
		}
	}
	if !found {
		return errors.New("the container sent nothing that can be copied")
	}
	return nil
}

// below returns the rest of an archive's path below name, "" for name itself.
func below(name, entry string) (rest string, ok bool) {
	clean := strings.TrimPrefix(path.Clean("/"+entry), "/")
	if name == "." {
		return clean, !strings.Contains("/"+entry+"/", "/../")
	}
	if clean == name {
		return "", !strings.Contains("/"+entry+"/", "/../")
	}
	rest, ok = strings.CutPrefix(clean, name+"/")
	return rest, ok && !strings.Contains("/"+entry+"/", "/../")
}

// write makes one entry of an archive. named: it is what the whole goes to.
func write(root *os.Root, to string, named bool, h *tar.Header, content io.Reader, pass func(string)) error {
	switch h.Typeflag {
	case tar.TypeDir:
		if err := makeWay(root, to, true, false); err != nil {
			return err
		}
		return root.MkdirAll(to, 0o755)
	case tar.TypeReg:
	default:
		pass("passed over, as it is neither file nor folder: " + h.Name)
		return nil
	}
	if err := makeWay(root, to, false, named); err != nil {
		return err
	}
	if err := root.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	file, err := root.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, fs.FileMode(h.Mode).Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	info, failed := file.Stat()
	err = errors.Join(err, failed, file.Close())
	if err == nil && info.Mode().IsRegular() {
		err = root.Chtimes(to, h.ModTime, h.ModTime)
	}
	return err
}

// makeWay takes a link out of the way, and says so of what cannot be replaced. special:
// a device or a pipe may be written to.
func makeWay(root *os.Root, to string, folder, special bool) error {
	info, err := root.Lstat(to)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.IsDir() && !folder:
		return fmt.Errorf("%s: a folder is in the way of a file", to)
	case info.Mode().IsRegular() && folder:
		return fmt.Errorf("%s: a file is in the way of a folder", to)
	case info.Mode().IsRegular(), info.IsDir(), special && info.Mode()&fs.ModeSymlink == 0:
		return nil
	case info.Mode()&fs.ModeSymlink != 0:
		return root.Remove(to)
	default:
		return fmt.Errorf("%s: what is in the way is neither file nor folder", to)
	}
}

// pack writes what is at a path here into an archive under name. Links are what they
// are; what is neither file, folder nor link is passed over.
func pack(archive io.Writer, from, name string) error {
	from, err := filepath.EvalSymlinks(from) // what is named itself is followed
	if err != nil {
		return err
	}
	w := tar.NewWriter(archive)
	err = filepath.WalkDir(from, func(at string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rest, err := filepath.Rel(from, at)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		return packOne(w, at, path.Join(name, filepath.ToSlash(rest)), info)
	})
	return errors.Join(err, w.Close())
}

func packOne(w *tar.Writer, at, name string, info fs.FileInfo) error {
	link := ""
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		var err error
		if link, err = os.Readlink(at); err != nil {
			return err
		}
	case !info.Mode().IsRegular() && !info.IsDir():
		return nil
	}
	h, err := tar.FileInfoHeader(info, link)
	if err != nil {
		return err
	}
	h.Name = "./" + name
	if err := w.WriteHeader(h); err != nil || !info.Mode().IsRegular() {
		return err
	}
	file, err := os.Open(at)
	if err != nil {
		return err
	}
	defer file.Close()
	// A file that grows meanwhile is cut, one that shrinks is an error.
	_, err = io.CopyN(w, file, h.Size)
	return err
}
