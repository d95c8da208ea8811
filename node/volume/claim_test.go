package volume_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"testing"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podkeeper/podkeeper/node/volume"
	"github.com/podkeeper/podkeeper/pod"
)

func TestClaimHasAFolderThatOutlivesThePod(t *testing.T) {
	defer unix.Umask(unix.Umask(0o077))
	podDir := podFolder(t)
	host := hostOf(podDir)
	dir := do(t, podDir, claimRequest(podDir, 0, ""))
	if want := filepath.Join(host.RootDir, "volumes/default/c"); dir != want {
		t.Errorf("it is %s, want %s", dir, want)
	}
	if got := owned(t, dir); got != "0 777" {
		t.Errorf("%s, want a folder that all may write to", got)
	}
	write(t, filepath.Join(dir, "f"), "kept")
	if err := removeVolumes(podDir); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(filepath.Dir(podDir), "other")
	if text := read(filepath.Join(do(t, other, claimRequest(other, 0, "")), "f")); text != "kept" {
		t.Errorf("the next pod reads %q", text)
	}
	if got := len(mounts(t, host.RootDir)); got != 0 {
		t.Errorf("%d mounts", got)
	}

	// What is remembered of it is readable by people, and follows the claim.
	var file map[string]any
	if err := json.Unmarshal([]byte(read(filepath.Join(host.RootDir, "volumes/default/.c.json"))), &file); err != nil {
		t.Fatal(err)
	}
	if file["size"] != "1Gi" || file["reclaim"] != "retain" {
		t.Errorf("remembered: %v", file)
	}
	bigger := claimObject("c")
	bigger.Claim.Size, bigger.Claim.Reclaim = resource.MustParse("2Gi"), pod.Delete
	if err := host.UpdateClaim(bigger); err != nil {
		t.Fatal(err)
	}
	stored, err := host.Claims()
	if err != nil || len(stored) != 1 {
		t.Fatal(stored, err)
	}
	if got := stored[0]; got.Key != bigger.Key || got.Origin != bigger.Origin || got.Claim.Reclaim != pod.Delete || got.Claim.Size.String() != "2Gi" {
		t.Errorf("stored: %+v", got)
	}
}

// A pod that runs goes on with its data where the claim is gone; one whose data
// are not there does not begin.
func TestClaimThatIsGone(t *testing.T) {
	podDir := podFolder(t)
	r := claimRequest(podDir, 0, "")
	r.Claim = nil
	err := hostOf(podDir).Ensure(t.Context(), r)
	if refusal, ok := errors.AsType[*volume.Error](err); !ok || refusal.Message != `persistentvolumeclaim "c" not found` {
		t.Errorf("without a folder: %v", err)
	}
	gone(t, filepath.Join(hostOf(podDir).RootDir, "volumes"))
	do(t, podDir, claimRequest(podDir, 0, ""))
	do(t, podDir, r)
}

func TestRemoveClaim(t *testing.T) {
	podDir, outside := podFolder(t), t.TempDir()
	host := hostOf(podDir)
	ensure := func() string {
		t.Helper()
		if err := host.Ensure(t.Context(), claimRequest(podDir, 0, "")); err != nil {
			t.Fatal(err)
		}
		return host.Path(claimRequest(podDir, 0, ""))
	}
	dir := ensure()
	write(t, filepath.Join(outside, "precious"), "")
	mkdir(t, filepath.Join(dir, "sub"))
	symlink(t, outside, filepath.Join(dir, "sub/link"))
	mount(t, outside, filepath.Join(dir, "disk"), "", unix.MS_BIND)
	stored, err := host.Claims()
	if err != nil || len(stored) != 1 {
		t.Fatal(stored, err)
	}

	ensure() // a pod comes after the list was made
	if removed, err := host.RemoveClaim(stored[0]); removed || err != nil {
		t.Errorf("one that a pod asked for since: %v, %v", removed, err)
	}
	mode(t, filepath.Join(dir, "sub"))

	if stored, err = host.Claims(); err != nil {
		t.Fatal(err)
	}
	if !stored[0].Used {
		t.Error("it is not listed as used by the pod")
	}
	if err := os.RemoveAll(filepath.Join(podDir, "plugins")); err != nil {
		t.Fatal(err)
	}
	if again, err := host.Claims(); err != nil || again[0].Used {
		t.Errorf("after the pod: %+v, %v", again, err)
	}
	for range 2 { // law 4
		if removed, err := host.RemoveClaim(stored[0]); !removed || err != nil {
			t.Fatal(removed, err)
		}
	}
	if entries, err := os.ReadDir(filepath.Dir(dir)); err != nil || len(entries) != 0 {
		t.Errorf("left: %v, %v", entries, err)
	}
	mode(t, filepath.Join(outside, "precious"))
	if stored, err = host.Claims(); err != nil || len(stored) != 0 {
		t.Errorf("listed: %v, %v", stored, err)
	}
}

// Law 3: what a crash leaves of a removal is removed by the next, or gives way to
// the claim when that comes back.
func TestRemoveClaimAfterACrash(t *testing.T) {
	podDir := podFolder(t)
	host := hostOf(podDir)
	crash := func() volume.Stored {
		dir := do(t, podDir, claimRequest(podDir, 0, ""))
		write(t, filepath.Join(dir, "old"), "")
		if err := os.Rename(dir, filepath.Join(filepath.Dir(dir), ".c.gone")); err != nil {
			t.Fatal(err)
		}
		stored, err := host.Claims()
		if err != nil || len(stored) != 1 {
			t.Fatal(stored, err)
		}
		return stored[0]
	}
	left := crash()
	if removed, err := host.RemoveClaim(left); !removed || err != nil {
		t.Fatal(removed, err)
	}
	gone(t, filepath.Join(host.RootDir, "volumes/default/.c.gone"))
	gone(t, filepath.Join(host.RootDir, "volumes/default/.c.json"))
	crash()
	dir := do(t, podDir, claimRequest(podDir, 0, ""))
	gone(t, filepath.Join(dir, "old"))
	gone(t, filepath.Join(host.RootDir, "volumes/default/.c.gone"))
}

// Law 5: a lost file costs what it says, and no data.
func TestClaimWithALostFile(t *testing.T) {
	podDir := podFolder(t)
	host := hostOf(podDir)
	dir := do(t, podDir, claimRequest(podDir, 0, ""))
	write(t, filepath.Join(dir, "f"), "kept")
	file := filepath.Join(host.RootDir, "volumes/default/.c.json")
	write(t, file, "{")
	if stored, err := host.Claims(); err == nil || len(stored) != 0 {
		t.Errorf("%v, %v, want an error about the file", stored, err)
	}
	do(t, podDir, claimRequest(podDir, 0, ""))
	if stored, err := host.Claims(); err != nil || len(stored) != 1 || read(filepath.Join(dir, "f")) != "kept" {
		t.Errorf("%v, %v", stored, err)
	}
}

func ephemeral(name, size string) v1.Volume {
	spec := v1.PersistentVolumeClaimSpec{Resources: v1.VolumeResourceRequirements{
		Requests: v1.ResourceList{v1.ResourceStorage: resource.MustParse(size)},
	}}
	source := &v1.EphemeralVolumeSource{VolumeClaimTemplate: &v1.PersistentVolumeClaimTemplate{Spec: spec}}
	return v1.Volume{Name: name, VolumeSource: v1.VolumeSource{Ephemeral: source}}
}

// A claim that is the pod's own comes and goes with it.
func TestEphemeralClaim(t *testing.T) {
	podDir := podFolder(t)
	group := int64(2000)
	r := request(podDir, ephemeral("scratch", "1Gi"))
	r.FSGroup = &group
	dir := do(t, podDir, r)
	if want := filepath.Join(podDir, "volumes/kubernetes.io~local-volume/scratch"); dir != want {
		t.Errorf("it is %s, want %s", dir, want)
	}
	if got := owned(t, dir); got != "2000 2777" {
		t.Errorf("%s", got)
	}
	write(t, filepath.Join(dir, "f"), "x")
	do(t, podDir, r)
	mode(t, filepath.Join(dir, "f"))
	if err := removeVolumes(podDir); err != nil {
		t.Fatal(err)
	}
	gone(t, dir)
}

// The size of a claim holds where the filesystem has project quotas, and only
// there. Whether the kernel has them is not the test's to choose.
func TestSizeOfAClaim(t *testing.T) {
	podDir := podFolder(t)
	host := hostOf(podDir)
	quotas := mountQuotas(t, host.RootDir)
	if got := host.Quotas() == nil; got != quotas {
		t.Fatalf("Quotas: %v, want them: %v", host.Quotas(), quotas)
	}
	r := claimRequest(podDir, 0, "")
	r.Claim.Claim.Size = resource.MustParse("1Mi")
	dir := do(t, podDir, r)
	second := claimRequest(podDir, 0, "")
	second.Volume, second.Claim = claimed("c2"), claimObject("c2")
	do(t, podDir, second)
	err := fill2MiB(filepath.Join(dir, "f"))
	if full := errors.Is(err, unix.EDQUOT) || errors.Is(err, unix.ENOSPC); full != quotas {
		t.Errorf("2 MiB in a claim of 1 MiB: %v", err)
	}
	r.Claim.Claim.Size = resource.MustParse("4Mi")
	do(t, podDir, r)
	if err := fill2MiB(filepath.Join(dir, "f")); err != nil {
		t.Errorf("2 MiB in a claim of 4 MiB: %v", err)
	}
	if err := fill2MiB(filepath.Join(host.Path(second), "f")); err != nil {
		t.Errorf("2 MiB in the other claim: %v", err)
	}
	// What is freed by one, another can have.
	for range 3 {
		own := do(t, podDir, request(podDir, ephemeral("own", "1Mi")))
		err := fill2MiB(filepath.Join(own, "f"))
		if full := errors.Is(err, unix.EDQUOT) || errors.Is(err, unix.ENOSPC); full != quotas {
			t.Errorf("2 MiB in a claim of 1 MiB of the pod's own: %v", err)
		}
		if err := removeVolumes(podDir); err != nil {
			t.Fatal(err)
		}
	}
	stored, err := host.Claims()
	if err != nil || len(stored) != 2 {
		t.Fatal(stored, err)
	}
	for _, s := range stored {
		if _, err := host.RemoveClaim(s); err != nil {
			t.Fatal(err)
		}
	}
	if quotas {
		if left, err := volume.LimitedProjects(host.RootDir); err != nil || len(left) != 0 {
			t.Errorf("limits of projects %v are left, %v", left, err)
		}
	}
}

// fill2MiB writes a file as a container would: without CAP_SYS_RESOURCE, whose
// owner no quota holds.
func fill2MiB(path string) error {
	ended := make(chan error)
	go func() {
		// The thread ends with the goroutine, since it is not unlocked.
		goruntime.LockOSThread()
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var data [2]unix.CapUserData
		err := unix.Capget(&header, &data[0])
		if err == nil {
			data[0].Effective &^= 1 << unix.CAP_SYS_RESOURCE
			err = unix.Capset(&header, &data[0])
		}
		if err == nil {
			err = os.WriteFile(path, make([]byte, 2<<20), 0o600)
		}
		ended <- err
	}()
	return <-ended
}

// mountQuotas mounts a filesystem with project quotas on a directory, and reports
// whether this kernel can.
func mountQuotas(t *testing.T, dir string) bool {
	t.Helper()
	image := filepath.Join(t.TempDir(), "image")
	for _, args := range [][]string{
		{"truncate", "-s", "32M", image},
		{"mkfs.ext4", "-q", "-O", "quota,project", "-E", "quotatype=prjquota", image},
	} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v: %s", args, err, out)
		}
	}
	if err := exec.Command("mount", "-o", "loop,prjquota", image, dir).Run(); err != nil {
		t.Log("without project quotas, which this kernel does not have")
		return false
	}
	t.Cleanup(func() {
		if err := exec.Command("umount", "-l", dir).Run(); err != nil {
			t.Error(err)
		}
	})
	t.Log("with project quotas")
	return true
}
