package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/podkeeper/podkeeper/node/stats"
)

// Volume is a claim that a pod uses.
type Volume struct {
	Namespace, Claim string
	// FS is the filesystem that it is on, nil where that does not answer, and Use what is in
	// its folder, nil as long as nobody has looked.
	FS  *stats.Filesystem
	Use *stats.Usage
}

// volumeSeries are what a kubelet tells of claims.
type volumeSeries struct{ capacity, available, used, inodes, inodesFree, inodesUsed *prometheus.Desc }

func newVolumeSeries() volumeSeries {
	d := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("kubelet_volume_stats_"+name, help, []string{"namespace", "persistentvolumeclaim"}, nil)
	}
	return volumeSeries{
		capacity:   d("capacity_bytes", "Capacity in bytes of the volume: of the filesystem that it is on."),
		available:  d("available_bytes", "Number of available bytes in the volume."),
		used:       d("used_bytes", "Number of used bytes in the volume."),
		inodes:     d("inodes", "Maximum number of inodes in the volume."),
		inodesFree: d("inodes_free", "Number of free inodes in the volume."),
		inodesUsed: d("inodes_used", "Number of used inodes in the volume."),
	}
}

func (s volumeSeries) put(v Volume, put func(prometheus.Metric)) {
	one := func(d *prometheus.Desc, n *int64) {
		if n != nil {
			put(prometheus.MustNewConstMetric(d, gauge, float64(*n), v.Namespace, v.Claim))
		}
	}
	if fs := v.FS; fs != nil {
		one(s.capacity, &fs.Capacity)
		one(s.available, &fs.Available)
		one(s.inodes, fs.Inodes)
		one(s.inodesFree, fs.InodesFree)
	}
	if use := v.Use; use != nil {
		one(s.used, &use.Bytes)
		one(s.inodesUsed, &use.Inodes)
	}
}
