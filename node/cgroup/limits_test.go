package cgroup_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podkeeper/podkeeper/node/cgroup"
)

// The linear map of Kubernetes, not the quadratic one of newer OCI runtimes.
func TestWeight(t *testing.T) {
	for shares, want := range map[int64]int64{0: 1, 2: 1, 28: 1, 29: 2, 256: 10, 512: 20, 1024: 39, 2048: 79, 262144: 10000, 1 << 20: 10000} {
		if got := cgroup.Weight(shares); got != want {
			t.Errorf("%d shares: weight %d, want %d", shares, got, want)
		}
	}
}

func TestProperties(t *testing.T) {
	const infinity = math.MaxUint64
	all := cgroup.Limits{CPUShares: 512, CPUQuota: 25_500, CPUPeriod: 100_000, Memory: 64 << 20, Pids: 100, HugePages: map[string]int64{"2MB": 0}}
	for name, c := range map[string]struct {
		limits  cgroup.Limits
		version int
		want    map[string]any
	}{
		"v2":                 {all, 2, map[string]any{"CPUWeight": uint64(20), "CPUQuotaPerSecUSec": uint64(260_000), "MemoryMax": uint64(64 << 20), "TasksMax": uint64(100)}},
		"v1":                 {all, 1, map[string]any{"CPUShares": uint64(512), "CPUQuotaPerSecUSec": uint64(260_000), "MemoryLimit": uint64(64 << 20), "TasksMax": uint64(100)}},
		"no limits":          {cgroup.Limits{CPUShares: 2}, 2, map[string]any{"CPUWeight": uint64(1), "CPUQuotaPerSecUSec": uint64(infinity), "MemoryMax": uint64(infinity), "TasksMax": uint64(infinity)}},
		"shares as they are": {cgroup.Limits{}, 1, map[string]any{"CPUQuotaPerSecUSec": uint64(infinity), "MemoryLimit": uint64(infinity), "TasksMax": uint64(infinity)}},
		"all as it is":       {cgroup.Limits{CPUQuota: cgroup.Keep, Memory: cgroup.Keep, Pids: cgroup.Keep}, 2, map[string]any{}},
		"a period of its own": {cgroup.Limits{CPUQuota: 10_000, CPUPeriod: 20_000}, 2, map[string]any{
			"CPUQuotaPerSecUSec": uint64(500_000), "CPUQuotaPeriodUSec": uint64(20_000), "MemoryMax": uint64(infinity), "TasksMax": uint64(infinity)}},
	} {
		got := map[string]any{}
		for _, p := range cgroup.Properties(c.limits, c.version) {
			got[p.Name] = p.Value.Value()
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
