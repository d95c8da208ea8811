package podlog

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podkeeper/podkeeper/pod"
)

const (
	suffix = ".log"
	// maxName is the longest file name of the usual file systems, in bytes.
	maxName = 255
)

// Config is where the links are and whose. Paths are absolute.
type Config struct {
	// PodsDir has a folder per pod, /var/log/pods on most nodes. Empty: no links
	// at all.
	PodsDir string
	// ContainersDir has a link per container, /var/log/containers on most nodes.
	// Empty: none of those.
	ContainersDir string
	// Owner is the root dir of the agent.
	Owner string
}

// Link is one container's log.
type Link struct {
	Key       pod.Key
	UID       types.UID
	Container string
	Attempt   int
	// ID is the engine's id of the container.
	ID string
	// LogPath is the engine's file, "" where its log driver has none.
	LogPath string
}

// PodPath returns <PodsDir>/<namespace>_<pod>_<uid>/<container>/<attempt>.log.
func PodPath(cfg Config, l Link) string {
	return filepath.Join(cfg.PodsDir, folderName(l.Key, l.UID), l.Container, strconv.Itoa(l.Attempt)+suffix)
}

// ContainerPath returns <ContainersDir>/<pod>_<namespace>_<container>-<id>.log,
// the file name cut before its suffix to 255 bytes, as the kubelet cuts it. Two
// containers may then have the same.
func ContainerPath(cfg Config, l Link) string {
	return filepath.Join(cfg.ContainersDir, cut(l.prefix()+l.ID)+suffix)
}

// prefix is what the name in ContainersDir has before the id.
func (l Link) prefix() string { return l.Key.Name + "_" + l.Key.Namespace + "_" + l.Container + "-" }

func cut(name string) string { return name[:min(len(name), maxName-len(suffix))] }

func folderName(key pod.Key, uid types.UID) string {
	return key.Namespace + "_" + key.Name + "_" + string(uid)
}

// parse reads a path that PodPath returned; the link has no id and no log path.
func parse(cfg Config, podPath string) (Link, bool) {
	rel, ok := strings.CutPrefix(podPath, filepath.Clean(cfg.PodsDir)+"/")
	parts := strings.Split(rel, "/")
	if !ok || len(parts) != 3 {
		return Link{}, false
	}
	owner := strings.Split(parts[0], "_")
	attempt, ok := parseAttempt(parts[2])
	if !ok || len(owner) != 3 {
		return Link{}, false
	}
	l := Link{Key: pod.Key{Namespace: owner[0], Name: owner[1]}, UID: types.UID(owner[2]), Container: parts[1], Attempt: attempt}
	return l, PodPath(cfg, l) == podPath
}

func parseAttempt(base string) (int, bool) {
	digits, ok := strings.CutSuffix(base, suffix)
	n, err := strconv.Atoi(digits)
	return n, ok && err == nil && n >= 0 && strconv.Itoa(n) == digits
}

// check refuses names that would make other paths than the ones documented.
func (cfg Config) check(names ...string) error {
	for _, dir := range []string{cfg.PodsDir, cfg.Owner} {
		if !filepath.IsAbs(dir) {
			return fmt.Errorf("%q is not an absolute path: %w", dir, fs.ErrInvalid)
		}
	}
	if cfg.ContainersDir != "" && !filepath.IsAbs(cfg.ContainersDir) {
		return fmt.Errorf("%q is not an absolute path: %w", cfg.ContainersDir, fs.ErrInvalid)
	}
	for _, name := range names {
		if !filepath.IsLocal(name) || name == "." || strings.ContainsAny(name, "/_") {
			return fmt.Errorf("%q is no part of a log's name: %w", name, fs.ErrInvalid)
		}
	}
	return nil
}
