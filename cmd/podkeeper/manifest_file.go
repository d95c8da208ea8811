package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/podkeeper/podkeeper/manifests"
	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/server"
	"github.com/podkeeper/podkeeper/sources"
)

// manifestFile is what somebody wants to have in the manifest folder.
type manifestFile struct {
	// name is as given: a path, a URL, or "-".
	name    string
	data    []byte
	pods    []pod.Key
	objects []pod.ObjectKey
	// hashes tell versions of the pods apart.
	hashes map[pod.Key]string
	// broken: it has an error.
	broken bool
}

// readManifest reads and checks one, as the agent would. What is wrong with it is told,
// and an error returned where that is an error.
func (c *cli) readManifest(ctx context.Context, name string, s server.State) (manifestFile, error) {
	data, err := c.fetchManifest(ctx, name)
	if err != nil {
		return manifestFile{}, err
	}
	return c.checkManifest(shownName(name), data, s)
}

func (c *cli) checkManifest(name string, data []byte, s server.State) (manifestFile, error) {
	m, problems := parseManifest(name, data, s)
	v := &validation{cli: c}
	for _, p := range problems {
		if p.Severity != pod.Note {
			c.err.printf("%s\n", v.finding(p))
		}
	}
	switch {
	case m.broken:
		return m, fmt.Errorf("%s has errors, and the manifest folder is left as it is", name)
	case len(m.pods)+len(m.objects) == 0:
		return m, fmt.Errorf("%s has no pods and no objects", name)
	}
	return m, nil
}

// parseManifest reads what a manifest has, names of broken documents included.
func parseManifest(name string, data []byte, s server.State) (manifestFile, []pod.Problem) {
	m := manifestFile{name: name, data: data, hashes: map[pod.Key]string{}}
	origin := pod.Origin{Source: pod.SourceID{Kind: pod.FileSource, Name: name}, Name: name}
	result := manifests.Parse(data, origin, manifests.Options{NodeName: s.NodeName, Strict: s.Strict})
	for _, p := range result.Problems {
		m.broken = m.broken || p.Severity == pod.Error
	}
	for _, d := range result.Documents {
		switch {
		case d.Key != (pod.Key{}):
			m.pods = append(m.pods, d.Key)
			if d.Pod != nil {
				m.hashes[d.Key] = d.Pod.Object.Annotations[manifests.HashAnnotation]
			}
		case d.ObjectKey != (pod.ObjectKey{}):
			m.objects = append(m.objects, d.ObjectKey)
		}
	}
	return m, result.Problems
}

// isURL reports whether a manifest is served from elsewhere.
func isURL(name string) bool {
	return strings.HasPrefix(name, "http://") || strings.HasPrefix(name, "https://")
}

// shownName is a manifest's name as people may see it: a URL without what stands before
// its host.
func shownName(name string) string {
	if !isURL(name) {
		return name
	}
	u, err := url.Parse(name)
	if err != nil {
		return "the URL"
	}
	u.User = nil
	return u.String()
}

// fetchManifest reads a file, standard input, or what a URL serves.
func (c *cli) fetchManifest(ctx context.Context, name string) ([]byte, error) {
	var from io.Reader = c.in
	switch {
	case name == "-":
	case isURL(name):
		const patience = 30 * time.Second
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		body, err := openURL(ctx, name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", shownName(name), err)
		}
		defer body.Close()
		from = body
	default:
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		from = f
	}
	data, err := io.ReadAll(io.LimitReader(from, manifests.MaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", shownName(name), err)
	}
	return data, nil
}

// openURL asks for what a URL serves. Its errors do not name it.
func openURL(ctx context.Context, name string) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, name, nil)
	if err != nil {
		return nil, errors.New("is no URL that can be asked")
	}
	resp, err := http.DefaultClient.Do(req)
	var asked *url.Error
	if errors.As(err, &asked) {
		err = asked.Err
	}
	switch {
	case err != nil:
		return nil, err
	case resp.StatusCode != http.StatusOK:
		return nil, errors.Join(errors.New(resp.Status), resp.Body.Close())
	}
	return resp.Body, nil
}

// owners are the origins that supply something of the manifest.
func (m manifestFile) owners(s server.State) (list []pod.OriginStatus) {
	for _, src := range s.Sources {
		for _, o := range src.Origins {
			if slices.ContainsFunc(o.Pods, func(k pod.Key) bool { return slices.Contains(m.pods, k) }) ||
				slices.ContainsFunc(o.Objects, func(k pod.ObjectKey) bool { return slices.Contains(m.objects, k) }) {
				list = append(list, o)
			}
		}
	}
	return list
}

// spares returns an error where a file has anything that the manifest has not: as it is
// on the disk, broken documents too, and as the agent goes on with it.
func (m manifestFile) spares(file string, data []byte, s server.State) error {
	is, _ := parseManifest(file, data, s)
	pods, objects := is.pods, is.objects
	for _, src := range s.Sources {
		for _, o := range src.Origins {
			if o.Origin.Name == file {
				pods, objects = append(pods, o.Pods...), append(objects, o.Objects...)
			}
		}
	}
	var names []string
	add := func(name string, has bool) {
		if !has && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, k := range pods {
		add("pod "+k.String(), slices.Contains(m.pods, k))
	}
	for _, k := range objects {
		add(k.String(), slices.Contains(m.objects, k))
	}
	switch {
	case len(names) > 0:
		return &failure{
			code: exitFailed, err: fmt.Errorf("%s has %s, too, which would be removed", file, strings.Join(names, ", ")),
			hint: "Give --prune if that is meant; else leave the rest to it: take out, or add, only what you mean.",
		}
	case is.broken:
		return &failure{
			code: exitFailed, err: fmt.Errorf("%s has errors, and may have more than can be read", file),
			hint: "Mend it first (`podkeeper validate " + file + "`), or give --prune if all of it may go.",
		}
	}
	return nil
}

// shared names what an origin supplies of the manifest.
func (m manifestFile) shared(o pod.OriginStatus) string {
	for _, k := range o.Pods {
		if slices.Contains(m.pods, k) {
			return "pod " + k.String()
		}
	}
	for _, k := range o.Objects {
		if slices.Contains(m.objects, k) {
			return k.String()
		}
	}
	return "nothing"
}

// fileName is the name that a manifest gets in a folder: its own, if the agent takes
// that, else one after the first thing in it.
func (m manifestFile) fileName(s server.State) string {
	base, node := filepath.Base(m.name), s.NodeName
	endings := s.Extensions
	if len(endings) == 0 {
		endings = sources.DefaultExtensions()
	}
	if m.name != "-" && !isURL(m.name) && slices.Contains(endings, filepath.Ext(base)) && !strings.HasPrefix(base, ".") {
		return base
	}
	namespace, name := "", ""
	if len(m.pods) > 0 {
		namespace, name = m.pods[0].Namespace, strings.TrimSuffix(m.pods[0].Name, "-"+node)
	} else {
		namespace, name = m.objects[0].Namespace, strings.ToLower(string(m.objects[0].Kind))+"-"+m.objects[0].Name
	}
	if namespace != "default" {
		name = namespace + "-" + name
	}
	if slices.Contains(endings, ".yaml") {
		return name + ".yaml"
	}
	return name + endings[0]
}

// manifestFolder is the first folder that the agent reads.
func manifestFolder(s server.State) (string, error) {
	for _, src := range s.Sources {
		if src.ID.Kind != pod.FileSource {
			continue
		}
		if info, err := os.Stat(src.ID.Name); err == nil && info.IsDir() {
			return src.ID.Name, nil
		}
	}
	return "", &failure{
		code: exitFailed, err: errors.New("the agent reads no folder that is there"),
		hint: "Make its folder (`podkeeper get sources` names it), or give it one with `podkeeper run --manifests FOLDER`.",
	}
}

// replaceFile gives a file that content at once: a reader sees the old or the new one.
// One that holds a Secret is its owner's alone. A link stays one.
func replaceFile(path string, data []byte, secret bool) (err error) {
	if path, err = throughLinks(path); err != nil {
		return err
	}
	mode, like := fs.FileMode(0o644), filepath.Dir(path)
	if old, err := os.Stat(path); err == nil {
		mode, like = old.Mode().Perm(), path
	}
	if secret {
		mode &= 0o700
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.tmp")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = f.Write(data)
	if err = errors.Join(err, f.Chmod(mode), chownLike(f, like), f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err = os.Rename(f.Name(), path); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(path))
}

// throughLinks returns the file that a path leads to; one that is not there is itself.
func throughLinks(path string) (string, error) {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return path, nil
	}
	to, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", fmt.Errorf("%s is a link that leads nowhere: %w", path, err)
	}
	return to, nil
}

// chownLike gives a file the owner of another, where that is not its own.
func chownLike(f *os.File, like string) error {
	now, err := f.Stat()
	if err != nil {
		return err
	}
	want, err := os.Stat(like)
	if err != nil {
		return err
	}
	is, ok := now.Sys().(*syscall.Stat_t)
	to, also := want.Sys().(*syscall.Stat_t)
	if !ok || !also || is.Uid == to.Uid && is.Gid == to.Gid {
		return nil
	}
	return f.Chown(int(to.Uid), int(to.Gid))
}

func syncFolder(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// secret reports whether the manifest holds a Secret.
func (m manifestFile) secret() bool {
	return slices.ContainsFunc(m.objects, func(k pod.ObjectKey) bool { return k.Kind == pod.Secret })
}
