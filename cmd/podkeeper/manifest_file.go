package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
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
}

// readManifest reads and checks one, as the agent of that node would. What is wrong
// with it is told, and an error returned where that is an error.
func (c *cli) readManifest(ctx context.Context, name, node string) (manifestFile, error) {
	data, err := c.fetchManifest(ctx, name)
	if err != nil {
		return manifestFile{}, err
	}
	return c.checkManifest(name, data, node)
}

func (c *cli) checkManifest(name string, data []byte, node string) (manifestFile, error) {
	m := manifestFile{name: name, data: data, hashes: map[pod.Key]string{}}
	v := &validation{cli: c, options: manifests.Options{NodeName: node}}
	result := v.parse(data, pod.Origin{Source: pod.SourceID{Kind: pod.FileSource, Name: name}, Name: name})
	broken := false
	for _, p := range result.Problems {
		if p.Severity != pod.Note {
			c.err.printf("%s\n", v.finding(p))
		}
		broken = broken || p.Severity == pod.Error
	}
	for _, d := range result.Documents {
		switch {
		case d.Pod != nil:
			m.pods = append(m.pods, d.Pod.Key())
			m.hashes[d.Pod.Key()] = d.Pod.Object.Annotations[manifests.HashAnnotation]
		case d.Object != nil:
			m.objects = append(m.objects, d.Object.Key)
		}
	}
	switch {
	case broken:
		return m, fmt.Errorf("%s has errors, and the manifest folder is left as it is", name)
	case len(m.pods)+len(m.objects) == 0:
		return m, fmt.Errorf("%s has no pods and no objects", name)
	}
	return m, nil
}

// fetchManifest reads a file, standard input, or what a URL serves.
func (c *cli) fetchManifest(ctx context.Context, name string) ([]byte, error) {
	var from io.Reader = c.in
	switch {
	case name == "-":
	case strings.HasPrefix(name, "http://"), strings.HasPrefix(name, "https://"):
		const patience = 30 * time.Second
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, name, nil)
		if err != nil {
			return nil, err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return nil, err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return nil, fmt.Errorf("%s: %s", req.URL.Redacted(), resp.Status)
		}
		from = resp.Body
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
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return data, nil
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

// extra names what an origin supplies beside what the manifest has.
func (m manifestFile) extra(o pod.OriginStatus) (names []string) {
	for _, k := range o.Pods {
		if !slices.Contains(m.pods, k) {
			names = append(names, "pod "+k.String())
		}
	}
	for _, k := range o.Objects {
		if !slices.Contains(m.objects, k) {
			names = append(names, k.String())
		}
	}
	return names
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
func (m manifestFile) fileName(node string) string {
	base := filepath.Base(m.name)
	if m.name != "-" && !strings.Contains(m.name, "://") && slices.Contains(sources.DefaultExtensions(), filepath.Ext(base)) && !strings.HasPrefix(base, ".") {
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
	return name + ".yaml"
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
	if to, err := filepath.EvalSymlinks(path); err == nil {
		path = to
	}
	mode := fs.FileMode(0o644)
	old, failed := os.Stat(path)
	if failed == nil {
		mode = old.Mode().Perm()
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
	err = errors.Join(err, f.Chmod(mode))
	if failed == nil {
		if was, ok := old.Sys().(*syscall.Stat_t); ok {
			err = errors.Join(err, f.Chown(int(was.Uid), int(was.Gid)))
		}
	}
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err = os.Rename(f.Name(), path); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(path))
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
