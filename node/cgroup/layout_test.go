package cgroup_test

import (
	"testing"

	"github.com/podkeeper/podkeeper/node/cgroup"
)

func TestPath(t *testing.T) {
	const uid = "0f0e-1"
	for name, c := range map[string]struct {
		driver       cgroup.Driver
		names        []string
		path, parent string
	}{
		"cgroupfs":                      {cgroup.Cgroupfs, []string{"kubepods", "burstable", "pod" + uid}, "/kubepods/burstable/pod0f0e-1", "/kubepods/burstable/pod0f0e-1"},
		"cgroupfs, the root":            {cgroup.Cgroupfs, nil, "/", "/"},
		"systemd":                       {cgroup.Systemd, []string{"kubepods", "burstable", "pod" + uid}, "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod0f0e_1.slice", "kubepods-burstable-pod0f0e_1.slice"},
		"systemd, guaranteed":           {cgroup.Systemd, []string{"kubepods", "pod" + uid}, "/kubepods.slice/kubepods-pod0f0e_1.slice", "kubepods-pod0f0e_1.slice"},
		"systemd, below another slice":  {cgroup.Systemd, []string{"machine.slice", "kubepods"}, "/machine.slice/machine-kubepods.slice", "machine-kubepods.slice"},
		"systemd, a name with a hyphen": {cgroup.Systemd, []string{"my-pods", "kubepods"}, "/my_pods.slice/my_pods-kubepods.slice", "my_pods-kubepods.slice"},
	} {
		path := c.driver.Path(c.names...)
		if path != c.path || c.driver.Parent(path) != c.parent {
			t.Errorf("%s: %s, told as %s; want %s, %s", name, path, c.driver.Parent(path), c.path, c.parent)
		}
		if got := cgroup.ParentPath(c.parent); got != c.path {
			t.Errorf("%s: %s is at %s, want %s", name, c.parent, got, c.path)
		}
	}
}

func TestCheckRoot(t *testing.T) {
	for root, ok := range map[string]bool{
		"/": true, "/pods": true, "/a/b.slice": true,
		"": false, "pods": false, "/a/": false, "/a/../b": false, "//a": false, "/a b": false, "/.hidden": false,
	} {
		if err := cgroup.CheckRoot(root); (err == nil) != ok {
			t.Errorf("%q: %v", root, err)
		}
	}
}
