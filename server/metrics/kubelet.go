package metrics

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/podkeeper/podkeeper/pod"
)

// Now is how things are, as far as they are counted when somebody asks.
type Now struct {
	NodeName string
	// Ready and Online: see server.State.
	Ready, Online bool
	// CgroupVersion is 0 where it is not known.
	CgroupVersion int
	// Desired is how many pods are wanted, Active how many of those have not come to
	// their end, Running how many have a sandbox that runs.
	Desired, Active, Running int
	// Phases, Containers (by the engine's state) and Waiting (by why) are numbers of.
	Phases, Containers, Waiting map[string]int
	Sources                     []pod.Source
	// Conflicts are claims that another one holds.
	Conflicts int
	// Volumes has each claim that is in use, once.
	Volumes []Volume
}

// Kubelet is /metrics: what was counted, and how things are.
func (c *Counters) Kubelet(now func(context.Context) (Now, error), log *slog.Logger) http.Handler {
	s := newNowSeries()
	return newPage(log, func(ctx context.Context, put func(prometheus.Metric)) error {
		n, err := now(ctx)
		if err != nil {
			return err
		}
		s.put(n, put)
		c.progress(s, put)
		return nil
	}, c.all)
}

// Probes is /metrics/probes.
func (c *Counters) Probes(log *slog.Logger) http.Handler {
	return newPage(log, nil, c.probes)
}

// SLIs is /metrics/slis: what each part of /healthz says now. A part is well where its
// function returns nil.
func (c *Counters) SLIs(parts map[string]func(context.Context) error, log *slog.Logger) http.Handler {
	is := prometheus.NewDesc("kubernetes_healthcheck", "This metric records the result of a single healthcheck.", []string{"name", "type"}, nil)
	return newPage(log, func(ctx context.Context, put func(prometheus.Metric)) error {
		for name, well := range parts {
			err := well(ctx)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			put(prometheus.MustNewConstMetric(is, gauge, float64(yes(err == nil)), name, "healthz"))
			c.health.WithLabelValues(name, map[bool]string{true: "success", false: "error"}[err == nil], "healthz").Inc()
		}
		return nil
	}, c.slis)
}

type nowSeries struct {
	node, ready, online, cgroups                 *prometheus.Desc
	desired, active, mirror, running, containers *prometheus.Desc
	phases, waiting, conflicts                   *prometheus.Desc
	up, spoken, read, pods, stale, errors        *prometheus.Desc
	pulled, size                                 *prometheus.Desc
	volumes                                      volumeSeries
}

func newNowSeries() nowSeries {
	d := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	return nowSeries{
		node:       d("kubelet_node_name", "The node's name. The count is always 1.", "node"),
		ready:      d("podkeeper_ready", "1 once the engine was listed and every source was asked."),
		online:     d("podkeeper_engine_up", "1 while the container engine answers."),
		cgroups:    d("kubelet_cgroup_version", "Cgroup version on the host."),
		desired:    d("kubelet_desired_pods", "The number of pods the kubelet is being instructed to run. static is true if the pod is not from the apiserver.", "static"),
		active:     d("kubelet_active_pods", "The number of pods the kubelet considers active and which are being considered when admitting new pods. static is true if the pod is not from the apiserver.", "static"),
		mirror:     d("kubelet_mirror_pods", "The number of mirror pods: none without an API server."),
		running:    d("kubelet_running_pods", "Number of pods that have a running pod sandbox."),
		containers: d("kubelet_running_containers", "Number of containers, by their state.", "container_state"),
		phases:     d("podkeeper_pods", "Number of pods, by their phase.", "phase"),
		waiting:    d("podkeeper_waiting", "Number of pods and containers that wait, by why.", "reason"),
		conflicts:  d("podkeeper_conflicts", "Number of pods and objects in sources that are ignored, as another one has their name or UID."),
		up:         d("podkeeper_source_up", "1 while the folder is there, or the URL answers.", "kind", "source"),
		spoken:     d("podkeeper_source_spoken", "1 once the source was read in full. Before that nothing that came from it is removed.", "kind", "source"),
		read:       d("podkeeper_source_last_read_timestamp_seconds", "When the source was read last with success.", "kind", "source"),
		pods:       d("podkeeper_source_pods", "Number of pods that the source supplies.", "kind", "source"),
		stale:      d("podkeeper_source_stale_origins", "Number of files or URLs of which the last good version counts.", "kind", "source"),
		errors:     d("podkeeper_manifest_errors", "Number of errors in a file, or in what a URL serves.", "file"),
		pulled:     d("podkeeper_image_pull_bytes", "How much of an image that is being pulled is here.", "image"),
		size:       d("podkeeper_image_pull_size_bytes", "How much there is to pull of an image that is being pulled, as far as that is known yet.", "image"),
		volumes:    newVolumeSeries(),
	}
}

func (s nowSeries) put(n Now, put func(prometheus.Metric)) {
	set := func(d *prometheus.Desc, n int, labels ...string) {
		put(prometheus.MustNewConstMetric(d, gauge, float64(n), labels...))
	}
	each := func(d *prometheus.Desc, list map[string]int) {
		for label, n := range list {
			set(d, n, label)
		}
	}
	set(s.node, 1, n.NodeName)
	set(s.ready, yes(n.Ready))
	set(s.online, yes(n.Online))
	if n.CgroupVersion > 0 {
		set(s.cgroups, n.CgroupVersion)
	}
	set(s.desired, n.Desired, "true")
	set(s.active, n.Active, "true")
	set(s.mirror, 0)
	set(s.running, n.Running)
	set(s.conflicts, n.Conflicts)
	each(s.containers, n.Containers)
	each(s.phases, n.Phases)
	each(s.waiting, n.Waiting)
	files := make(map[string]int)
	for _, src := range n.Sources {
		labels := []string{string(src.ID.Kind), src.ID.Name}
		set(s.up, yes(src.Present), labels...)
		set(s.spoken, yes(src.Spoken), labels...)
		if !src.Read.IsZero() {
			put(prometheus.MustNewConstMetric(s.read, gauge, unix(src.Read), labels...))
		}
		pods, stale := 0, 0
		for _, o := range src.Origins {
			pods += len(o.Pods)
			stale += yes(o.Stale)
			files[o.Origin.Name] += count(o.Problems)
		}
		set(s.pods, pods, labels...)
		set(s.stale, stale, labels...)
	}
	each(s.errors, files)
	for _, v := range n.Volumes {
		s.volumes.put(v, put)
	}
}

// count returns how many are errors.
func count(list []pod.Problem) (n int) {
	for _, p := range list {
		n += yes(p.Severity == pod.Error)
	}
	return n
}

func yes(is bool) int {
	if is {
		return 1
	}
	return 0
}

// progress writes how far pulls are.
func (c *Counters) progress(s nowSeries, put func(prometheus.Metric)) {
	c.pulling.mu.Lock()
	defer c.pulling.mu.Unlock()
	for image, p := range c.pulling.images {
		put(prometheus.MustNewConstMetric(s.pulled, gauge, float64(p.Bytes), image))
		put(prometheus.MustNewConstMetric(s.size, gauge, float64(p.Total), image))
	}
}
