package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/podkeeper/podkeeper/node/stats"
)

const (
	gauge   = prometheus.GaugeValue
	counter = prometheus.CounterValue
)

// containerSeries describes everything that can be on the page.
type containerSeries struct {
	failed  *prometheus.Desc
	numbers []one
	// These have labels of their own.
	cpu, faults *prometheus.Desc
	network     []traffic

	started, seen, oom                        *prometheus.Desc
	period, quota, shares, memory, swap, pids *prometheus.Desc

	usage, limit, inodes, inodesFree *prometheus.Desc

	cores, physical, sockets, ram, ramSwap *prometheus.Desc
}

// one is what a cgroup has one number of.
type one struct {
	*prometheus.Desc
	kind prometheus.ValueType
	of   func(stats.Cgroup) *float64
}

// traffic is what an interface has one number of.
type traffic struct {
	*prometheus.Desc
	of func(stats.Interface) int64
}

func newContainerSeries() containerSeries {
	row := func(name, help string, extra ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, append(append([]string(nil), rowLabels...), extra...), nil)
	}
	machine := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, []string{"boot_id", "machine_id", "system_uuid"}, nil)
	}
	s := containerSeries{
		failed:     prometheus.NewDesc("container_scrape_error", "1 if there was an error while getting container metrics, 0 otherwise.", nil, nil),
		cpu:        row("container_cpu_usage_seconds_total", "Cumulative cpu time consumed.", "cpu"),
		faults:     row("container_memory_failures_total", "Cumulative count of memory allocation failures.", "failure_type", "scope"),
		started:    row("container_start_time_seconds", "Start time of the container since unix epoch in seconds."),
		seen:       row("container_last_seen", "Last time a container was seen by the exporter."),
		oom:        row("container_oom_events_total", "Count of processes in the container that the kernel killed for want of memory."),
		period:     row("container_spec_cpu_period", "CPU period of the container."),
		quota:      row("container_spec_cpu_quota", "CPU quota of the container."),
		shares:     row("container_spec_cpu_shares", "CPU share of the container."),
		memory:     row("container_spec_memory_limit_bytes", "Memory limit for the container, 0 for none."),
		swap:       row("container_spec_memory_swap_limit_bytes", "Limit of memory and swap together for the container, 0 for none."),
		pids:       row("container_threads_max", "Maximum number of processes and threads of the container."),
		usage:      row("container_fs_usage_bytes", "Number of bytes that are consumed on this filesystem.", "device"),
		limit:      row("container_fs_limit_bytes", "Number of bytes that can be consumed on this filesystem.", "device"),
		inodes:     row("container_fs_inodes_total", "Number of inodes of this filesystem.", "device"),
		inodesFree: row("container_fs_inodes_free", "Number of available inodes of this filesystem.", "device"),
		cores:      machine("machine_cpu_cores", "Number of logical CPU cores."),
		physical:   machine("machine_cpu_physical_cores", "Number of physical CPU cores."),
		sockets:    machine("machine_cpu_sockets", "Number of CPU sockets."),
		ram:        machine("machine_memory_bytes", "Amount of memory installed on the machine."),
		ramSwap:    machine("machine_swap_bytes", "Amount of swap memory available on the machine."),
	}
	for _, n := range numbers() {
		s.numbers = append(s.numbers, one{row(n.name, n.help), n.kind, n.of})
	}
	for _, t := range []struct {
		name, help string
		of         func(stats.Interface) int64
	}{
		{"receive_bytes", "bytes received", func(i stats.Interface) int64 { return i.RxBytes }},
		{"receive_packets", "packets received", func(i stats.Interface) int64 { return i.RxPackets }},
		{"receive_packets_dropped", "packets dropped while receiving", func(i stats.Interface) int64 { return i.RxDropped }},
		{"receive_errors", "errors encountered while receiving", func(i stats.Interface) int64 { return i.RxErrors }},
		{"transmit_bytes", "bytes transmitted", func(i stats.Interface) int64 { return i.TxBytes }},
		{"transmit_packets", "packets transmitted", func(i stats.Interface) int64 { return i.TxPackets }},
		{"transmit_packets_dropped", "packets dropped while transmitting", func(i stats.Interface) int64 { return i.TxDropped }},
		{"transmit_errors", "errors encountered while transmitting", func(i stats.Interface) int64 { return i.TxErrors }},
	} {
		s.network = append(s.network, traffic{row("container_network_"+t.name+"_total", "Cumulative count of "+t.help+".", "interface"), t.of})
	}
	return s
}

type named struct {
	name, help string
	kind       prometheus.ValueType
	of         func(stats.Cgroup) *float64
}

// numbers are those that each row has, as far as they are known.
func numbers() []named {
	type group = stats.Cgroup
	throttled := func(of func(*stats.Throttled) float64) func(group) *float64 {
		return func(g group) *float64 { return part(g.Throttled, of) }
	}
	some := func(p *stats.Pressure) float64 { return p.Some.Total.Seconds() }
	full := func(p *stats.Pressure) float64 { return p.Full.Total.Seconds() }
	return []named{
		{"container_cpu_user_seconds_total", "Cumulative user cpu time consumed.", counter, func(g group) *float64 { return seconds(g.CPUUser) }},
		{"container_cpu_system_seconds_total", "Cumulative system cpu time consumed.", counter, func(g group) *float64 { return seconds(g.CPUSystem) }},
		{"container_cpu_cfs_periods_total", "Number of elapsed enforcement period intervals.", counter, throttled(func(t *stats.Throttled) float64 { return float64(t.Periods) })},
		{"container_cpu_cfs_throttled_periods_total", "Number of throttled period intervals.", counter, throttled(func(t *stats.Throttled) float64 { return float64(t.Held) })},
		{"container_cpu_cfs_throttled_seconds_total", "Total time duration the container has been throttled.", counter, throttled(func(t *stats.Throttled) float64 { return t.Time.Seconds() })},
		{"container_memory_usage_bytes", "Current memory usage, including all memory regardless of when it was accessed.", gauge, func(g group) *float64 { return number(g.MemoryUsage) }},
		{"container_memory_working_set_bytes", "Current working set.", gauge, func(g group) *float64 { return number(g.WorkingSet) }},
		{"container_memory_rss", "Size of RSS.", gauge, func(g group) *float64 { return number(g.RSS) }},
		{"container_memory_cache", "Number of bytes of page cache memory.", gauge, func(g group) *float64 { return number(g.Cache) }},
		{"container_memory_mapped_file", "Size of memory mapped files.", gauge, func(g group) *float64 { return number(g.Mapped) }},
		{"container_memory_swap", "Swap usage.", gauge, func(g group) *float64 { return number(g.Swap) }},
		{"container_memory_kernel_usage", "Size of kernel memory allocated.", gauge, func(g group) *float64 { return number(g.Kernel) }},
		{"container_memory_max_usage_bytes", "Maximum memory usage recorded.", gauge, func(g group) *float64 { return number(g.Peak) }},
		{"container_memory_failcnt", "Number of times that memory usage hit its limit.", counter, func(g group) *float64 { return number(g.LimitHits) }},
		{"container_threads", "Number of processes and threads.", gauge, func(g group) *float64 { return number(g.Processes) }},
		{"container_pressure_cpu_waiting_seconds_total", "Time that some tasks waited for a processor.", counter, func(g group) *float64 { return part(g.CPUPressure, some) }},
		{"container_pressure_cpu_stalled_seconds_total", "Time that all tasks waited for a processor.", counter, func(g group) *float64 { return part(g.CPUPressure, full) }},
		{"container_pressure_memory_waiting_seconds_total", "Time that some tasks waited for memory.", counter, func(g group) *float64 { return part(g.MemoryPressure, some) }},
		{"container_pressure_memory_stalled_seconds_total", "Time that all tasks waited for memory.", counter, func(g group) *float64 { return part(g.MemoryPressure, full) }},
		{"container_pressure_io_waiting_seconds_total", "Time that some tasks waited for I/O.", counter, func(g group) *float64 { return part(g.IOPressure, some) }},
		{"container_pressure_io_stalled_seconds_total", "Time that all tasks waited for I/O.", counter, func(g group) *float64 { return part(g.IOPressure, full) }},
	}
}

// part is a number of something; nil where that is not known.
func part[T any](whole *T, of func(*T) float64) *float64 {
	if whole == nil {
		return nil
	}
	return new(of(whole))
}

// row writes what every row has.
func (s containerSeries) row(r row, now time.Time, put func(prometheus.Metric)) {
	values := r.values()
	with := func(extra ...string) []string { return append(values[:len(values):len(values)], extra...) }
	for _, n := range s.numbers {
		if value := n.of(r.use); value != nil {
			put(prometheus.MustNewConstMetric(n.Desc, n.kind, *value, values...))
		}
	}
	if cpu := seconds(r.use.CPU); cpu != nil {
		put(prometheus.MustNewConstMetric(s.cpu, counter, *cpu, with("total")...))
	}
	for kind, n := range map[string]*int64{"pgfault": r.use.PageFaults, "pgmajfault": r.use.MajorFaults} {
		if n != nil {
			put(prometheus.MustNewConstMetric(s.faults, counter, float64(*n), with(kind, "container")...))
		}
	}
	if r.network != nil {
		for _, i := range r.network.Interfaces {
			for _, t := range s.network {
				put(prometheus.MustNewConstMetric(t.Desc, counter, float64(t.of(i)), with(i.Name)...))
			}
		}
	}
	if !r.started.IsZero() {
		put(prometheus.MustNewConstMetric(s.started, gauge, unix(r.started), values...))
	}
	put(prometheus.MustNewConstMetric(s.seen, gauge, float64(now.Unix()), values...))
}

// container writes what containers have besides.
func (s containerSeries) container(r row, c Container, put func(prometheus.Metric)) {
	set := func(d *prometheus.Desc, kind prometheus.ValueType, n int64) {
		put(prometheus.MustNewConstMetric(d, kind, float64(n), r.values()...))
	}
	if c.OOMKills != nil {
		set(s.oom, counter, *c.OOMKills)
	}
	limits := c.Resources
	if limits.CPUShares > 0 {
		set(s.shares, gauge, limits.CPUShares)
	}
	if limits.CPUQuota > 0 {
		set(s.quota, gauge, limits.CPUQuota)
		set(s.period, gauge, limits.CPUPeriod)
	}
	if limits.Pids > 0 {
		set(s.pids, gauge, limits.Pids)
	}
	set(s.memory, gauge, limits.Memory)
	set(s.swap, gauge, limits.Memory)
}

// filesystem writes how much of one is used by whom the row is of.
func (s containerSeries) filesystem(r row, fs *stats.Filesystem, used *int64, put func(prometheus.Metric)) {
	values := r.values(fs.Block())
	for d, n := range map[*prometheus.Desc]*int64{s.usage: used, s.limit: &fs.Capacity, s.inodes: fs.Inodes, s.inodesFree: fs.InodesFree} {
		if n != nil {
			put(prometheus.MustNewConstMetric(d, gauge, float64(*n), values...))
		}
	}
}

func (s containerSeries) machine(m stats.Machine, put func(prometheus.Metric)) {
	for d, n := range map[*prometheus.Desc]int64{
		s.cores: int64(m.Cores), s.physical: int64(m.PhysicalCores), s.sockets: int64(m.Sockets), s.ram: m.Memory,
	} {
		if n > 0 {
			put(prometheus.MustNewConstMetric(d, gauge, float64(n), m.BootID, m.MachineID, m.SystemUUID))
		}
	}
	if m.Cores > 0 {
		put(prometheus.MustNewConstMetric(s.ramSwap, gauge, float64(m.Swap), m.BootID, m.MachineID, m.SystemUUID))
	}
}
