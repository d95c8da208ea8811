package volume_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/node/volume"
)

// programs is a machine whose mount(8) makes a tmpfs of whatever it is asked for.
type programs struct {
	lacks error
	fails error
	asked [][]string
}

func (p *programs) Look(name string) error { return p.lacks }

func (p *programs) Run(_ context.Context, name string, args ...string) ([]byte, error) {
	p.asked = append(p.asked, append([]string{name}, args...))
	if p.fails != nil {
		return []byte("mount.nfs: Connection timed out\n"), p.fails
	}
	return nil, unix.Mount("tmpfs", args[len(args)-1], "tmpfs", 0, "")
}

func nfs(server, path string, readOnly bool) v1.Volume {
	return v1.Volume{Name: "n", VolumeSource: v1.VolumeSource{NFS: &v1.NFSVolumeSource{Server: server, Path: path, ReadOnly: readOnly}}}
}

func TestNFSAsksMountForExactlyThis(t *testing.T) {
	tests := map[string]struct {
		v    v1.Volume
		want []string
	}{
		"to write":                {nfs("files.example", "/srv/a", false), []string{"mount", "-t", "nfs", "files.example:/srv/a"}},
		"to read":                 {nfs("192.0.2.7", "/", true), []string{"mount", "-t", "nfs", "-o", "ro", "192.0.2.7:/"}},
		"a server by IPv6":        {nfs("2001:db8::7", "/srv", false), []string{"mount", "-t", "nfs", "[2001:db8::7]:/srv"}},
		"a server in brackets":    {nfs("[2001:db8::7]", "/srv", false), []string{"mount", "-t", "nfs", "[2001:db8::7]:/srv"}},
		"what mount would expand": {nfs("s", "/$(x) y", false), []string{"mount", "-t", "nfs", "s:/$(x) y"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			podDir, p := podFolder(t), new(programs)
			host := &volume.Host{RootDir: filepath.Dir(filepath.Dir(podDir)), Programs: p}
			group := int64(2000)
			r := request(podDir, tt.v)
			r.FSGroup = &group // not for NFS
			for range 2 {      // law 4
				if err := host.Ensure(context.Background(), r); err != nil {
					t.Fatal(err)
				}
			}
			dir := filepath.Join(podDir, "volumes/kubernetes.io~nfs/n")
			same(t, "asked for", p.asked, [][]string{append(tt.want, dir)})
			if got := owned(t, dir); got != "0 1777" {
				t.Errorf("its root was changed: %s", got)
			}
			// After a reboot.
			if err := unix.Unmount(dir, 0); err != nil {
				t.Fatal(err)
			}
			if err := host.Ensure(context.Background(), r); err != nil || len(p.asked) != 2 {
				t.Errorf("again: %v, %v", p.asked, err)
			}
			if err := host.Remove(r.UID); err != nil {
				t.Fatal(err)
			}
			if got := mounts(t, podDir); len(got) != 0 {
				t.Errorf("left mounted: %v", got)
			}
		})
	}
}

func TestNFSSaysWhatIsMissing(t *testing.T) {
	podDir := podFolder(t)
	p := &programs{lacks: errors.New("it has no mount.nfs")}
	host := &volume.Host{RootDir: filepath.Dir(filepath.Dir(podDir)), Programs: p}
	r := request(podDir, nfs("s", "/", false))
	err := host.Ensure(context.Background(), r)
	want := `MountVolume.SetUp failed for volume "n" : this machine cannot mount nfs: it has no mount.nfs; install the package that has it, nfs-common or nfs-utils`
	if err == nil || err.Error() != want || len(p.asked) != 0 {
		t.Errorf("got  %v, asked %v\nwant %s", err, p.asked, want)
	}
	p.lacks, p.fails = nil, errors.New("exit status 32")
	err = host.Ensure(context.Background(), r)
	if err == nil || !strings.Contains(err.Error(), "mount s:/: exit status 32: mount.nfs: Connection timed out") {
		t.Errorf("a failing mount: %v", err)
	}
	if err := host.Remove(r.UID); err != nil {
		t.Fatal(err)
	}
	gone(t, filepath.Join(podDir, "volumes"))
}

// The programs of this machine: one that is not there is said to be missing.
func TestTheMachinesOwnPrograms(t *testing.T) {
	podDir := podFolder(t)
	_, err := os.Stat("/sbin/mount.nfs")
	if err == nil {
		// It can mount, so the name of no server is what fails.
		err = errors.New("mount no-such-server.invalid:/")
	} else {
		err = errors.New("it has no mount.nfs; install")
	}
	_, got := try(podDir, nfs("no-such-server.invalid", "/", false))
	if got == nil || !strings.Contains(got.Error(), err.Error()) {
		t.Errorf("%v, want %v", got, err)
	}
}
