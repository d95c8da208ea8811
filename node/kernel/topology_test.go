package kernel_test

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podkeeper/podkeeper/node/kernel"
)

func TestReadCPUs(t *testing.T) {
	two := map[string]string{
		"online":                            "0-3",
		"cpu0/topology/core_cpus_list":      "0,2",
		"cpu2/topology/core_cpus_list":      "0,2",
		"cpu1/topology/core_cpus_list":      "1,3",
		"cpu3/topology/core_cpus_list":      "1,3",
		"cpu1/topology/physical_package_id": "1",
		"cpu3/topology/physical_package_id": "1",
	}
	with := func(name, value string) map[string]string {
		m := maps.Clone(two)
		m[name] = value
		return m
	}
	old := map[string]string{"online": "0-1", "cpu0/topology/thread_siblings_list": "0-1", "cpu1/topology/thread_siblings_list": "0-1", "cpu0/topology/physical_package_id": "-1"}
	for name, c := range map[string]struct {
		files map[string]string
		want  []kernel.CPU
	}{
		"two sockets of a core":    {two, []kernel.CPU{{0, 0, 0}, {1, 1, 1}, {2, 0, 0}, {3, 1, 1}}},
		"one that is off":          {with("online", "0,2-3"), []kernel.CPU{{0, 0, 0}, {2, 0, 0}, {3, 1, 1}}},
		"an old kernel":            {old, []kernel.CPU{{0, 0, 0}, {1, 0, 0}}},
		"a machine that is silent": {map[string]string{"online": "0-1"}, []kernel.CPU{{0, 0, 0}, {1, 1, 0}}},
	} {
		got, err := kernel.ReadCPUs(settings(t, c.files))
		if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
	for name, files := range map[string]map[string]string{"nothing": nil, "nonsense": {"online": "x"}} {
		if got, err := kernel.ReadCPUs(settings(t, files)); err == nil {
			t.Errorf("%s: %v", name, got)
		}
	}
	if list, err := kernel.ReadCPUs("/sys/devices/system/cpu"); err != nil || len(list) == 0 {
		t.Errorf("this machine: %v, %v", list, err)
	}
}
