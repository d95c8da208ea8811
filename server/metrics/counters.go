package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podkeeper/podkeeper/pod"
)

// Counters count what the agent does, each when it is done. Its methods may be called
// from several goroutines and do not wait.
type Counters struct {
	all, probes, slis *prometheus.Registry

	turn, plan, steps prometheus.Histogram
	step              *prometheus.HistogramVec
	taken             *prometheus.CounterVec
	worker            *prometheus.HistogramVec
	start             prometheus.Histogram
	rejected          *prometheus.CounterVec

	startedPods, failedPods     prometheus.Counter
	startedContainers           *prometheus.CounterVec
	failedContainers            *prometheus.CounterVec
	orphans                     prometheus.Counter
	restarted                   *prometheus.CounterVec
	operations, operationErrors *prometheus.CounterVec
	operationTook               *prometheus.HistogramVec
	relist, relistInterval      prometheus.Histogram
	relisted                    prometheus.Gauge
	evictions, images, pulls    *prometheus.CounterVec
	events                      *prometheus.CounterVec
	pressure                    *prometheus.GaugeVec

	health  *prometheus.CounterVec
	checks  *prometheus.CounterVec
	checked *prometheus.HistogramVec

	pulling pulling
	listing listing
}

// NewCounters returns counters at 0.
func NewCounters(version string) *Counters {
	c := &Counters{all: prometheus.NewRegistry(), probes: prometheus.NewRegistry(), slis: prometheus.NewRegistry()}
	c.all.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	on := factory{c.all}
	on.gaugeVec("podkeeper_build_info", "A constant 1, with the version of the agent.", "version").WithLabelValues(version).Set(1)
	c.countLoop(on)
	c.countEngine(on)
	c.countNode(on)
	c.health = factory{c.slis}.counterVec("kubernetes_healthchecks_total", "This metric records the results of all healthcheck.", "name", "status", "type")
	on = factory{c.probes}
	c.checks = on.counterVec("prober_probe_total", "Cumulative number of a liveness, readiness or startup probe for a container by result.",
		"probe_type", "result", "container", "pod", "namespace", "pod_uid")
	c.checked = on.histogramVec("prober_probe_duration_seconds", "Duration in seconds for a probe response.", prometheus.DefBuckets,
		"probe_type", "container", "pod", "namespace")
	return c
}

// What the loop does.
func (c *Counters) countLoop(on factory) {
	fast := prometheus.ExponentialBuckets(1e-5, 4, 10)
	c.turn = on.histogram("podkeeper_loop_turn_duration_seconds", "How long a round of the loop took, in which it answers nobody else.", fast)
	c.plan = on.histogram("podkeeper_plan_duration_seconds", "How long it took to plan one pod.", fast)
	c.steps = on.histogram("podkeeper_plan_steps", "Steps of a plan for one pod; 0 is nothing to do.", []float64{0, 1, 2, 4, 8, 16, 32})
	c.step = on.histogramVec("podkeeper_step_duration_seconds", "How long a step of a plan took.", prometheus.ExponentialBuckets(.001, 4, 9), "step")
	c.taken = on.counterVec("podkeeper_steps_total", "Steps of plans that were taken, by what came of it: success or error.", "step", "result")
	c.worker = on.histogramVec("kubelet_pod_worker_duration_seconds", "Duration in seconds to sync a single pod. Broken down by operation type: create, update, or sync.",
		prometheus.DefBuckets, "operation_type")
	c.start = on.histogram("kubelet_pod_start_duration_seconds", "Duration in seconds from kubelet seeing a pod for the first time to the pod starting to run.",
		[]float64{.5, 1, 2, 3, 4, 5, 6, 8, 10, 20, 30, 45, 60, 120, 180, 240, 300, 360, 480, 600, 900, 1200, 1800, 2700, 3600})
	c.rejected = on.counterVec("kubelet_admission_rejections_total", "Cumulative number of pod admission rejections by the node.", "reason")
	c.startedPods = on.counter("kubelet_started_pods_total", "Cumulative number of pods started.")
	c.failedPods = on.counter("kubelet_started_pods_errors_total", "Cumulative number of errors when starting pods.")
	c.startedContainers = on.counterVec("kubelet_started_containers_total", "Cumulative number of containers started.", "container_type")
	c.failedContainers = on.counterVec("kubelet_started_containers_errors_total", "Cumulative number of errors when starting containers.", "container_type", "code")
	c.orphans = on.counter("kubelet_orphaned_runtime_pods_total", "Number of pods of which something ran, and that nobody wanted since the agent began.")
	c.restarted = on.counterVec("kubelet_restarted_pods_total", "Number of pods whose sandbox was made anew with the same UID.", "static")
}

// What is asked of the engine, and what comes of it.
func (c *Counters) countEngine(on factory) {
	c.operations = on.counterVec("kubelet_runtime_operations_total", "Cumulative number of runtime operations by operation type.", "operation_type")
	c.operationErrors = on.counterVec("kubelet_runtime_operations_errors_total", "Cumulative number of runtime operation errors by operation type.", "operation_type")
	c.operationTook = on.histogramVec("kubelet_runtime_operations_duration_seconds", "Duration in seconds of runtime operations. Broken down by operation type.",
		prometheus.ExponentialBuckets(.005, 2.5, 14), "operation_type")
	c.relist = on.histogram("kubelet_pleg_relist_duration_seconds", "Duration in seconds of a look at all containers of the engine.", prometheus.DefBuckets)
	c.relistInterval = on.histogram("kubelet_pleg_relist_interval_seconds", "Interval in seconds between looks at all containers. They follow from events: only every five minutes without any.",
		[]float64{.1, 1, 10, 60, 120, 300, 600})
	c.relisted = on.gauge("kubelet_pleg_last_seen_seconds", "Timestamp in seconds of the last look at all containers.")
	c.pulls = on.counterVec("podkeeper_image_pulls_total", "Image pulls that ended, by what came of it: success or error.", "result")
}

// What is done for the node's sake, and what is told.
func (c *Counters) countNode(on factory) {
	c.evictions = on.counterVec("kubelet_evictions", "Cumulative number of pod evictions by eviction signal.", "eviction_signal")
	c.images = on.counterVec("kubelet_image_garbage_collected_total", "Total number of images garbage collected, whether through disk usage (space) or image age (age).", "reason")
	c.events = on.counterVec("podkeeper_events_total", "Events that were told, each occurrence counted.", "type", "reason")
	c.pressure = on.gaugeVec("podkeeper_node_pressure", "1 while the node is short of something.", "condition")
}

// factory makes metrics that one registry has.
type factory struct{ *prometheus.Registry }

func (f factory) counter(name, help string) prometheus.Counter {
	c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	f.MustRegister(c)
	return c
}

func (f factory) counterVec(name, help string, labels ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	f.MustRegister(c)
	return c
}

func (f factory) gauge(name, help string) prometheus.Gauge {
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	f.MustRegister(g)
	return g
}

func (f factory) gaugeVec(name, help string, labels ...string) *prometheus.GaugeVec {
	g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	f.MustRegister(g)
	return g
}

func (f factory) histogram(name, help string, buckets []float64) prometheus.Histogram {
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
	f.MustRegister(h)
	return h
}

func (f factory) histogramVec(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	f.MustRegister(h)
	return h
}

func result(err error) string {
	if err != nil {
		return "error"
	}
	return "success"
}

// Turned: see reconcile.Counts.
func (c *Counters) Turned(took time.Duration) { c.turn.Observe(took.Seconds()) }

// Planned: see reconcile.Counts.
func (c *Counters) Planned(steps int, took time.Duration) {
	c.plan.Observe(took.Seconds())
	c.steps.Observe(float64(steps))
}

// Up: see reconcile.Counts.
func (c *Counters) Up(took time.Duration) { c.start.Observe(took.Seconds()) }

// Orphaned: see reconcile.Counts.
func (c *Counters) Orphaned() { c.orphans.Inc() }

// Rejected: a pod is not let in.
func (c *Counters) Rejected(reason string) { c.rejected.WithLabelValues(reason).Inc() }

// Evicted: a verdict was handed on, for what the node is short of.
func (c *Counters) Evicted(signal string) { c.evictions.WithLabelValues(signal).Inc() }

// ImageRemoved: an image went, for "space" or "age".
func (c *Counters) ImageRemoved(reason string) { c.images.WithLabelValues(reason).Inc() }

// Event: something was told.
func (c *Counters) Event(e pod.Event) { c.events.WithLabelValues(string(e.Type), e.Reason).Inc() }

// Pressure: whether the node is short of something now.
func (c *Counters) Pressure(condition pod.Cause, short bool) {
	n := 0.
	if short {
		n = 1
	}
	c.pressure.WithLabelValues(string(condition)).Set(n)
}

// Check is a check that a probe made.
type Check struct {
	Pod       pod.Key
	UID       types.UID
	Container string
	// Type and Result are as metrics spell them: "Liveness", "successful".
	Type, Result string
	Took         time.Duration
}

// Probed counts a check.
func (c *Counters) Probed(k Check) {
	c.checks.WithLabelValues(k.Type, k.Result, k.Container, k.Pod.Name, k.Pod.Namespace, string(k.UID)).Inc()
	if k.Result != "failed" { // as the kubelet has it
		c.checked.WithLabelValues(k.Type, k.Container, k.Pod.Name, k.Pod.Namespace).Observe(k.Took.Seconds())
	}
}

// Gone forgets the series of a generation of a pod, of which nothing is left.
func (c *Counters) Gone(key pod.Key, uid types.UID) {
	c.checks.DeletePartialMatch(prometheus.Labels{"pod_uid": string(uid)})
	c.checked.DeletePartialMatch(prometheus.Labels{"pod": key.Name, "namespace": key.Namespace})
}
