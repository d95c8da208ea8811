package volume_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podkeeper/podkeeper/node/volume"
	"github.com/podkeeper/podkeeper/pod"
)

// owned returns "<group> <mode>" of a file, a link not followed.
func owned(t *testing.T, path string) string {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%d %o", st.Gid, st.Mode&0o7777)
}

func claimObject(name string) *pod.Object {
	return &pod.Object{
		Key:    pod.ObjectKey{Kind: pod.PersistentVolumeClaim, Namespace: "default", Name: name},
		Origin: pod.Origin{Source: pod.SourceID{Kind: pod.FileSource, Name: "/m"}, Name: "/m/claim.yaml"},
		Claim:  &pod.Claim{AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}, Size: resource.MustParse("1Gi"), Reclaim: pod.Retain},
	}
}

func claimed(name string) v1.Volume {
	source := &v1.PersistentVolumeClaimVolumeSource{ClaimName: name}
	return v1.Volume{Name: "data", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: source}}
}

// claimRequest is that of a pod which mounts the claim "c" with a group.
func claimRequest(podDir string, group int64, policy v1.PodFSGroupChangePolicy) volume.Request {
	r := request(podDir, claimed("c"))
	r.Claim, r.ChangePolicy = claimObject("c"), policy
	if group != 0 {
		r.FSGroup = &group
	}
	return r
}

func do(t *testing.T, podDir string, r volume.Request) string {
	t.Helper()
	if err := hostOf(podDir).Ensure(context.Background(), r); err != nil {
		t.Fatal(err)
	}
	return hostOf(podDir).Path(r)
}

// populate puts files into the folder of a claim, as an earlier pod left them.
func populate(t *testing.T, dir, outside string) {
	t.Helper()
	mkdir(t, filepath.Join(dir, "sub/deep"))
	write(t, filepath.Join(dir, "sub/deep/f"), "x")
	write(t, filepath.Join(dir, "sub/run"), "x")
	if err := unix.Chmod(filepath.Join(dir, "sub/run"), 0o4711); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(outside, "f"), "x")
	symlink(t, outside, filepath.Join(dir, "out"))
	symlink(t, filepath.Join(outside, "f"), filepath.Join(dir, "sub/out"))
	mount(t, "tmpfs", filepath.Join(dir, "mounted"), "tmpfs", 0)
	write(t, filepath.Join(dir, "mounted/f"), "x")
	mount(t, outside, filepath.Join(dir, "bound"), "", unix.MS_BIND)
}

// C073: everything in a claim is given to the group; links and what is mounted
// in it are not followed.
func TestFSGroupOfAClaimC073(t *testing.T) {
	podDir, outside := podFolder(t), t.TempDir()
	dir := do(t, podDir, claimRequest(podDir, 0, ""))
	t.Cleanup(func() {
		for _, m := range mounts(t, dir) {
			unix.Unmount(m, unix.MNT_DETACH)
		}
	})
	if got := owned(t, dir); got != "0 777" {
		t.Errorf("without a group: %s", got)
	}
	populate(t, dir, outside)
	before := owned(t, outside) + owned(t, filepath.Join(outside, "f"))
	do(t, podDir, claimRequest(podDir, 2000, v1.FSGroupChangeAlways))
	got := make(map[string]string)
	for _, path := range []string{".", "sub", "sub/deep", "sub/deep/f", "sub/run", "out", "sub/out", "mounted", "mounted/f", "bound", "bound/f"} {
		got[path] = owned(t, filepath.Join(dir, path))
	}
	same(t, "groups and modes", got, map[string]string{
		".": "2000 2777", "sub": "2000 2775", "sub/deep": "2000 2775", "sub/deep/f": "2000 660", "sub/run": "2000 4771",
		"out": "2000 777", "sub/out": "2000 777", // the links themselves
		"mounted": "0 1777", "mounted/f": "0 600", "bound": got["bound"], "bound/f": "0 600",
	})
	if after := owned(t, outside) + owned(t, filepath.Join(outside, "f")); after != before {
		t.Errorf("outside the claim: %s, was %s", after, before)
	}
}

// It is done once for each pod: what the pod changes afterwards stays.
func TestFSGroupIsGivenOncePerPod(t *testing.T) {
	podDir := podFolder(t)
	dir := do(t, podDir, claimRequest(podDir, 2000, ""))
	write(t, filepath.Join(dir, "private"), "x")
	do(t, podDir, claimRequest(podDir, 2000, ""))
	if got := owned(t, filepath.Join(dir, "private")); got != "2000 600" { // by setgid
		t.Errorf("the pod's own file: %s", got)
	}
	other := filepath.Join(filepath.Dir(podDir), "other")
	do(t, other, claimRequest(other, 3000, ""))
	if got := owned(t, filepath.Join(dir, "private")); got != "3000 660" {
		t.Errorf("in the next pod: %s", got)
	}
}

func TestFSGroupChangePolicy(t *testing.T) {
	tests := map[string]struct {
		policy v1.PodFSGroupChangePolicy
		spoil  func(dir string) error
		want   string // of a file that lacks the group
	}{
		"OnRootMismatch leaves all where the root matches": {v1.FSGroupChangeOnRootMismatch, nil, "0 600"},
		"Always does not ask":                              {v1.FSGroupChangeAlways, nil, "2000 660"},
		"Always is the default":                            {"", nil, "2000 660"},
		"OnRootMismatch: another group": {v1.FSGroupChangeOnRootMismatch,
			func(dir string) error { return os.Chown(dir, -1, 7) }, "2000 660"},
		"OnRootMismatch: no setgid": {v1.FSGroupChangeOnRootMismatch,
			func(dir string) error { return unix.Chmod(dir, 0o777) }, "2000 660"},
		"OnRootMismatch: not for the group to write": {v1.FSGroupChangeOnRootMismatch,
			func(dir string) error { return unix.Chmod(dir, 0o2755) }, "2000 660"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			first := podFolder(t)
			dir := do(t, first, claimRequest(first, 2000, ""))
			file := filepath.Join(dir, "f")
			write(t, file, "x")
			if err := os.Chown(file, 0, 0); err != nil {
				t.Fatal(err)
			}
			if tt.spoil != nil {
				if err := tt.spoil(dir); err != nil {
					t.Fatal(err)
				}
			}
			second := filepath.Join(filepath.Dir(first), "second")
			do(t, second, claimRequest(second, 2000, tt.policy))
			if got := owned(t, file); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
			if got := owned(t, dir); got[:5] != "2000 " {
				t.Errorf("the root: %s", got)
			}
		})
	}
}

// C073: an emptyDir is born with the group, and a host path never gets it.
func TestFSGroupOfOtherKindsC073(t *testing.T) {
	group := int64(2000)
	podDir, dir := podFolder(t), t.TempDir()
	if err := os.Chmod(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	mode := int32(0o1750)
	private := emptyDir("p")
	private.EmptyDir.Mode = &mode
	for _, c := range []struct {
		v           v1.Volume
		without, of string
	}{
		{emptyDir("e"), "0 777", "2000 2777"},
		{memory("1Mi"), "0 777", "2000 2777"},
		{private, "0 1750", "2000 3770"},
		{hostPath(dir, v1.HostPathDirectory), owned(t, dir), owned(t, dir)},
	} {
		for uid, group := range map[string]*int64{"without": nil, "with": &group} {
			podDir := filepath.Join(filepath.Dir(podDir), uid)
			t.Cleanup(func() { _ = removeVolumes(podDir) })
			r := request(podDir, c.v)
			r.FSGroup = group
			for range 2 {
				want := map[string]string{"without": c.without, "with": c.of}[uid]
				if got := owned(t, do(t, podDir, r)); got != want {
					t.Errorf("%s %s a group: %s, want %s", c.v.Name, uid, got, want)
				}
			}
		}
	}
}

// A pod that swaps a directory for a link while its claim is given to a group: the
// group gets nothing outside.
func TestFSGroupWinsEveryRace(t *testing.T) {
	podDir, outside := podFolder(t), t.TempDir()
	dir := do(t, podDir, claimRequest(podDir, 0, ""))
	mkdir(t, filepath.Join(dir, "x/d"))
	write(t, filepath.Join(dir, "x/d/f"), "")
	mkdir(t, filepath.Join(outside, "d"))
	write(t, filepath.Join(outside, "d/f"), "")
	symlink(t, outside, filepath.Join(dir, "evil"))
	stop, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case <-stop:
				ended <- nil
				return
			default:
			}
			x, evil := filepath.Join(dir, "x"), filepath.Join(dir, "evil")
			if err := unix.Renameat2(unix.AT_FDCWD, x, unix.AT_FDCWD, evil, unix.RENAME_EXCHANGE); err != nil {
				ended <- err
				return
			}
		}
	}()
	for i := range 300 {
		pod := filepath.Join(filepath.Dir(podDir), fmt.Sprint(i))
		do(t, pod, claimRequest(pod, 2000, ""))
	}
	close(stop)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{".", "d", "d/f"} {
		if got := owned(t, filepath.Join(outside, path)); got[:2] != "0 " {
			t.Errorf("%s outside: %s", path, got)
		}
	}
}
