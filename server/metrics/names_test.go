package metrics_test

import (
	"slices"
	"testing"
)

// What dashboards and rules that people have take from a kubelet is there by its name,
// and of its type.
func TestConventionalNames(t *testing.T) {
	const gauge, counter, histogram = "GAUGE", "COUNTER", "HISTOGRAM"
	conventional := map[string]map[string]string{
		"/metrics": {
			"kubelet_active_pods": gauge, "kubelet_admission_rejections_total": counter, "kubelet_cgroup_version": gauge,
			"kubelet_desired_pods": gauge, "kubelet_evictions": counter, "kubelet_image_garbage_collected_total": counter,
			"kubelet_mirror_pods": gauge, "kubelet_node_name": gauge, "kubelet_orphaned_runtime_pods_total": counter,
			"kubelet_pleg_last_seen_seconds": gauge, "kubelet_pleg_relist_duration_seconds": histogram,
			"kubelet_pleg_relist_interval_seconds": histogram, "kubelet_pod_start_duration_seconds": histogram,
			"kubelet_pod_worker_duration_seconds": histogram, "kubelet_restarted_pods_total": counter,
			"kubelet_running_containers": gauge, "kubelet_running_pods": gauge,
			"kubelet_runtime_operations_duration_seconds": histogram, "kubelet_runtime_operations_errors_total": counter,
			"kubelet_runtime_operations_total": counter, "kubelet_started_containers_errors_total": counter,
			"kubelet_started_containers_total": counter, "kubelet_started_pods_errors_total": counter, "kubelet_started_pods_total": counter,
			"kubelet_volume_stats_available_bytes": gauge, "kubelet_volume_stats_capacity_bytes": gauge, "kubelet_volume_stats_inodes": gauge,
			"kubelet_volume_stats_inodes_free": gauge, "kubelet_volume_stats_inodes_used": gauge, "kubelet_volume_stats_used_bytes": gauge,
			"go_goroutines": gauge, "process_cpu_seconds_total": counter, "process_open_fds": gauge, "process_resident_memory_bytes": gauge,
		},
		"/metrics/probes": {"prober_probe_duration_seconds": histogram, "prober_probe_total": counter},
		"/metrics/resource": {
			"container_cpu_usage_seconds_total": counter, "container_memory_working_set_bytes": gauge, "container_start_time_seconds": gauge,
			"container_swap_usage_bytes": gauge, "node_cpu_usage_seconds_total": counter, "node_memory_working_set_bytes": gauge,
			"node_swap_usage_bytes": gauge, "pod_cpu_usage_seconds_total": counter, "pod_memory_working_set_bytes": gauge,
			"pod_swap_usage_bytes": gauge, "resource_scrape_error": gauge,
		},
		"/metrics/cadvisor": {
			"container_cpu_cfs_periods_total": counter, "container_cpu_cfs_throttled_periods_total": counter, "container_cpu_usage_seconds_total": counter,
			"container_fs_limit_bytes": gauge, "container_fs_usage_bytes": gauge, "container_memory_cache": gauge, "container_memory_rss": gauge,
			"container_memory_swap": gauge, "container_memory_usage_bytes": gauge, "container_memory_working_set_bytes": gauge,
			"container_network_receive_bytes_total": counter, "container_network_transmit_bytes_total": counter,
			"container_oom_events_total": counter, "container_spec_cpu_quota": gauge, "container_spec_memory_limit_bytes": gauge,
			"container_start_time_seconds": gauge, "machine_cpu_cores": gauge, "machine_memory_bytes": gauge,
		},
		"/metrics/slis": {"kubernetes_healthcheck": gauge, "kubernetes_healthchecks_total": counter},
	}
	pages := everyPage(t)
	for path, names := range conventional {
		_, types, _ := read(t, pages[path])
		for name, want := range names {
			if got := types[name]; got != want {
				t.Errorf("%s: %s is %q, want %s", path, name, got, want)
			}
		}
		delete(pages, path)
	}
	var left []string
	for path := range pages {
		left = append(left, path)
	}
	if len(left) > 0 {
		slices.Sort(left)
		t.Errorf("pages of which nothing is conventional: %v", left)
	}
}
