package metrics

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/podkeeper/podkeeper/node/stats"
)

// Containers is /metrics/cadvisor: all that is counted for each cgroup, by the names
// and labels that dashboards know from cAdvisor in a kubelet. It has a row for the
// machine ("/"), for all pods, and for each pod, its sandbox (container "POD") and its
// containers.
//
// Unlike the kubelet's, numbers bear no time: they are read for the page. So a series
// ends with what it is of, and not five minutes later.
func Containers(look Look, log *slog.Logger) http.Handler {
	series := newContainerSeries()
	return newPage(log, func(ctx context.Context, put func(prometheus.Metric)) error {
		f, err := look(ctx, false)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		failed := 0.
		if err != nil {
			log.Warn("what the node and its pods use cannot be read", "err", err)
			failed = 1
		} else {
			series.facts(f, put)
		}
		put(prometheus.MustNewConstMetric(series.failed, prometheus.GaugeValue, failed))
		return nil
	})
}

// row is one cgroup on the page.
type row struct {
	container, id, image, name, namespace, pod string
	use                                        stats.Cgroup
	network                                    *stats.Network
	started                                    time.Time
}

// rowLabels are in the order of row.values.
var rowLabels = []string{"container", "id", "image", "name", "namespace", "pod"}

func (r row) values(extra ...string) []string {
	return append([]string{r.container, r.id, r.image, r.name, r.namespace, r.pod}, extra...)
}

// facts writes all rows.
func (s containerSeries) facts(f Facts, put func(prometheus.Metric)) {
	s.machine(f.Machine, put)
	all := row{id: "/", use: f.Host.All, network: f.Host.Network, started: f.Host.Booted}
	s.row(all, f.Time, put)
	for _, fs := range distinct(f.Node.NodeFS, f.Node.ImageFS, f.Node.ContainerFS) {
		s.filesystem(all, fs, &fs.Used, put)
	}
	for _, c := range f.Groups {
		if c.Path != "" {
			s.row(row{id: c.Path, use: c}, f.Time, put)
		}
	}
	for _, p := range f.Pods {
		whole := row{namespace: p.Object.Namespace, pod: p.Object.Name}
		if c := p.Use.Cgroup; c.Path != "" {
			one := whole
			one.id, one.use = c.Path, c
			one.started = p.Sandbox.Started
			s.row(one, f.Time, put)
		}
		if p.Sandbox.ID != "" {
			s.row(whole.of(Container{Container: p.Sandbox, Use: stats.Container{Cgroup: p.Use.Sandbox}}, p.Use.Network), f.Time, put)
		}
		for _, c := range p.Containers {
			one := whole.of(c, nil)
			s.row(one, f.Time, put)
			s.container(one, c, put)
			if fs := f.Node.ContainerFS; fs != nil && c.Use.RootFS != nil {
				s.filesystem(one, fs, &c.Use.RootFS.Bytes, put)
			}
		}
	}
}

// of is the row of a container of a pod.
func (r row) of(c Container, network *stats.Network) row {
	r.container, r.id, r.image, r.name = c.Name, c.Use.Path, c.Image, c.ContainerName()
	r.use, r.network, r.started = c.Use.Cgroup, network, c.Started
	if r.id == "" {
		r.id = "/" + c.ID // it ended meanwhile, or its cgroup cannot be told
	}
	return r
}

// distinct returns the filesystems that are known, each once.
func distinct(list ...*stats.Filesystem) (out []*stats.Filesystem) {
	seen := make(map[string]bool)
	for _, fs := range list {
		if fs != nil && !seen[fs.Device] {
			seen[fs.Device] = true
			out = append(out, fs)
		}
	}
	return out
}
