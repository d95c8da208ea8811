package volume

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	mountutils "k8s.io/mount-utils"
)

// nfsHelper is what mount(8) needs besides itself.
const nfsHelper = "mount.nfs"

// ensureNFS mounts what an NFS server exports. It is not cut short but by ctx:
// mount.nfs itself gives up on a server that does not answer, after 2 min.
func (h *Host) ensureNFS(ctx context.Context, root *os.Root, r Request) error {
	dir, err := makeDir(root, r.Volume, owner{mode: 0o750})
	if err != nil {
		return err
	}
	mounted, err := mountinfo.Mounted(dir)
	if err != nil && !mountutils.IsCorruptedMnt(err) {
		return fmt.Errorf("look for a mount on %s: %w", dir, err)
	}
	if err == nil && mounted {
		var st unix.Statfs_t
		if err := unix.Statfs(dir, &st); !mountutils.IsCorruptedMnt(err) {
			return err
		}
	}
	if err := unmountBelow(dir); err != nil { // the export was replaced
		return err
	}
	if err := h.programs().Look(nfsHelper); err != nil {
		return fmt.Errorf("this machine cannot mount nfs: %w; install the package that has it, nfs-common or nfs-utils", err)
	}
	out, err := h.programs().Run(ctx, "mount", nfsArgs(r.Volume.NFS, dir)...)
	if err != nil {
		return fmt.Errorf("mount %s: %w: %s", nfsSource(r.Volume.NFS), err, bytes.TrimSpace(out))
	}
	return nil
}

func nfsSource(n *v1.NFSVolumeSource) string {
	server := n.Server
	if ip := net.ParseIP(server); ip != nil && ip.To4() == nil {
		server = "[" + server + "]"
	}
	return server + ":" + n.Path
}

func nfsArgs(n *v1.NFSVolumeSource, dir string) []string {
	var options []string
	if n.ReadOnly {
		options = append(options, "ro")
	}
	return mountutils.MakeMountArgs(nfsSource(n), dir, "nfs", options)
}

// Programs are those of the machine that volumes need.
type Programs interface {
	// Look reports whether there is a program of that name.
	Look(name string) error
	// Run runs one to its end and returns what it said.
	Run(ctx context.Context, name string, args ...string) ([]byte, error)
}

func (h *Host) programs() Programs {
	if h.Programs == nil {
		return installed{}
	}
	return h.Programs
}

// installed are the programs that the machine has.
type installed struct{}

// Look looks where mount(8) does, which is not the PATH.
func (installed) Look(name string) error {
	var err error
	for _, dir := range []string{"/sbin", "/sbin/fs.d", "/sbin/fs", "/usr/sbin"} {
		if _, err = os.Stat(dir + "/" + name); err == nil {
			return nil
		}
	}
	return fmt.Errorf("it has no %s", name)
}

func (installed) Run(ctx context.Context, name string, args ...string) ([]byte, error) {
	return exec.CommandContext(ctx, name, args...).CombinedOutput()
}
