package metrics

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/podkeeper/podkeeper/node/stats"
)

// Look reads the facts of now; with brief, nothing that needs a look at files.
type Look func(ctx context.Context, brief bool) (Facts, error)

// Resource is /metrics/resource: processors and memory, which is what autoscalers ask
// for. Each number bears the instant when it was read. Where nothing can be read the page
// has resource_scrape_error 1 and nothing else, as the kubelet's.
func Resource(look Look, log *slog.Logger) http.Handler {
	var (
		failed = prometheus.NewDesc("resource_scrape_error", "1 if there was an error while getting container metrics, 0 otherwise.", nil, nil)
		start  = prometheus.NewDesc("container_start_time_seconds", "Start time of the container since unix epoch in seconds.", []string{"container", "pod", "namespace"}, nil)
		node   = resourceSeries("node")
		pod    = resourceSeries("pod", "pod", "namespace")
		one    = resourceSeries("container", "container", "pod", "namespace")
	)
	return newPage(log, func(ctx context.Context, put func(prometheus.Metric)) error {
		f, err := look(ctx, true)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			log.Warn("what the node uses cannot be read", "err", err)
			put(prometheus.MustNewConstMetric(failed, prometheus.GaugeValue, 1))
			return nil
		}
		all := f.Host.All
		all.Swap = nil
		if f.Host.Swap != nil && f.Host.SwapFree != nil {
			all.Swap = new(*f.Host.Swap - *f.Host.SwapFree)
		}
		node.put(put, all, f.Time)
		for _, p := range f.Pods {
			where := []string{p.Object.Name, p.Object.Namespace}
			pod.put(put, p.Use.Cgroup, p.Use.Time, where...)
			for _, c := range p.Containers {
				labels := append([]string{c.Name}, where...)
				one.put(put, c.Use.Cgroup, p.Use.Time, labels...)
				if !c.Started.IsZero() {
					put(prometheus.MustNewConstMetric(start, prometheus.GaugeValue, unix(c.Started), labels...))
				}
			}
		}
		put(prometheus.MustNewConstMetric(failed, prometheus.GaugeValue, 0))
		return nil
	})
}

// resource are the series of a node, a pod or a container.
type resource struct{ cpu, memory, swap *prometheus.Desc }

func resourceSeries(of string, labels ...string) resource {
	return resource{
		cpu:    prometheus.NewDesc(of+"_cpu_usage_seconds_total", "Cumulative cpu time consumed by the "+of+" in core-seconds.", labels, nil),
		memory: prometheus.NewDesc(of+"_memory_working_set_bytes", "Current working set of the "+of+" in bytes.", labels, nil),
		swap:   prometheus.NewDesc(of+"_swap_usage_bytes", "Current swap usage of the "+of+" in bytes.", labels, nil),
	}
}

func (s resource) put(put func(prometheus.Metric), c stats.Cgroup, at time.Time, labels ...string) {
	one := func(d *prometheus.Desc, kind prometheus.ValueType, value *float64) {
		if value != nil {
			put(prometheus.NewMetricWithTimestamp(at, prometheus.MustNewConstMetric(d, kind, *value, labels...)))
		}
	}
	one(s.cpu, prometheus.CounterValue, seconds(c.CPU))
	one(s.memory, prometheus.GaugeValue, number(c.WorkingSet))
	one(s.swap, prometheus.GaugeValue, number(c.Swap))
}

func unix(t time.Time) float64 { return float64(t.UnixNano()) / 1e9 }
