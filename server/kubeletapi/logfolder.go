package kubeletapi

import (
	"errors"
	"fmt"
	"html"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
)

// maxEntries is how many entries of a folder are listed.
const maxEntries = 2000

// logFolder answers /logs/: files of the machine's log folder and lists of its
// folders. Nothing outside the folder can be named, nor is a link followed out of it.
func (a *Answers) logFolder(w http.ResponseWriter, r *http.Request) error {
	name := strings.TrimSuffix(r.PathValue("path"), "/")
	if name == "" {
		name = "."
	}
	if !fs.ValidPath(name) {
		return Wrong(ErrBadRequest, "bad path")
	}
	root, err := os.OpenRoot(a.LogFolder)
	if err != nil {
		return noFile(err)
	}
	defer root.Close()
	// A pipe that nobody writes to must not hold the open up.
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return noFile(err)
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return noFile(err)
	case info.IsDir() && !strings.HasSuffix(r.URL.Path, "/"):
		// The names in a list are relative to it.
		w.Header().Set("Location", (&url.URL{Path: "./" + path.Base(r.URL.Path) + "/"}).String())
		w.WriteHeader(http.StatusMovedPermanently)
		return nil
	case info.IsDir():
		return list(w, f)
	case !info.Mode().IsRegular():
		return Wrong(ErrForbidden, "not a regular file")
	case strings.HasSuffix(r.URL.Path, "/"):
		return noFile(fs.ErrNotExist)
	}
	plainText(w)
	http.ServeContent(w, r, "", info.ModTime(), f)
	return nil
}

// noFile tells no more of what went wrong than a caller who may read all there is can
// find out.
func noFile(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return Wrong(ErrForbidden, "permission denied")
	}
	return Wrong(ErrNotFound, "no such file in the log folder")
}

// list writes the names in a folder as the kubelet does.
func list(w http.ResponseWriter, folder *os.File) error {
	entries, err := folder.ReadDir(maxEntries + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return noFile(err)
	}
	more := len(entries) > maxEntries
	entries = entries[:min(len(entries), maxEntries)]
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	var text strings.Builder
	text.WriteString("<!doctype html>\n<meta name=\"viewport\" content=\"width=device-width\">\n<pre>\n")
	for _, e := range entries {
		name := e.Name()
		if e.IsDir() {
			name += "/"
		}
		fmt.Fprintf(&text, "<a href=\"%s\">%s</a>\n", (&url.URL{Path: "./" + name}).String(), html.EscapeString(name))
	}
	if more {
		fmt.Fprintf(&text, "and more: only %d are listed\n", maxEntries)
	}
	text.WriteString("</pre>\n")
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'")
	_, err = io.WriteString(w, text.String())
	return err
}
