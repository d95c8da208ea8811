package metrics_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podkeeper/podkeeper/node/stats"
	"github.com/podkeeper/podkeeper/server/metrics"
)

// What is not known of a claim is left out, as every number that nobody counted.
func TestVolumes(t *testing.T) {
	fs := &stats.Filesystem{Capacity: 100, Available: 40, Inodes: new(int64(9)), InodesFree: new(int64(4))}
	volumes := func(list ...metrics.Volume) []string {
		now := func(context.Context) (metrics.Now, error) { return metrics.Now{Volumes: list}, nil }
		_, _, got := read(t, metrics.NewCounters("v1").Kubelet(now, quiet))
		return slices.DeleteFunc(got, func(line string) bool { return !strings.HasPrefix(line, "kubelet_volume_stats_") })
	}
	got := volumes(
		metrics.Volume{Namespace: "a", Claim: "data", FS: fs, Use: &stats.Usage{Bytes: 7, Inodes: 3}},
		metrics.Volume{Namespace: "b", Claim: "data", FS: &stats.Filesystem{Capacity: 50}},
		metrics.Volume{Namespace: "b", Claim: "away"},
	)
	want := []string{
		"kubelet_volume_stats_available_bytes{namespace=a,persistentvolumeclaim=data} 40",
		"kubelet_volume_stats_available_bytes{namespace=b,persistentvolumeclaim=data} 0",
		"kubelet_volume_stats_capacity_bytes{namespace=a,persistentvolumeclaim=data} 100",
		"kubelet_volume_stats_capacity_bytes{namespace=b,persistentvolumeclaim=data} 50",
		"kubelet_volume_stats_inodes_free{namespace=a,persistentvolumeclaim=data} 4",
		"kubelet_volume_stats_inodes_used{namespace=a,persistentvolumeclaim=data} 3",
		"kubelet_volume_stats_inodes{namespace=a,persistentvolumeclaim=data} 9",
		"kubelet_volume_stats_used_bytes{namespace=a,persistentvolumeclaim=data} 7",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
}
