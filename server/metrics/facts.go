package metrics

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podkeeper/podkeeper/node/stats"
	"github.com/podkeeper/podkeeper/runtime"
)

// Facts are what was read of the node and its pods at one instant.
type Facts struct {
	NodeName string
	Time     time.Time
	Node     stats.Node
	Host     stats.Host
	Machine  stats.Machine
	// Groups are cgroups of the node's own, by what the summary calls them.
	Groups map[string]stats.Cgroup
	Pods   []Pod
	// Rates are what processors are used at now, in nanoseconds of each second; who is
	// not in it has an unknown rate.
	Rates Rates
}

// Pod is one pod of which something runs.
type Pod struct {
	// Object has the pod's status and UID.
	Object *v1.Pod
	// Sandbox has no id where none runs.
	Sandbox    runtime.Container
	Containers []Container
	Use        stats.Pod
	// Claims are the claims that volumes are of, by the volume's name.
	Claims map[string]string
}

// Container is one that runs.
type Container struct {
	runtime.Container
	Use stats.Container
	// OOMKills is how many of its processes the kernel killed for want of memory; nil
	// is not known.
	OOMKills *int64
}

// Owner is whom a cgroup is of: the node with its zero value, one of [Facts.Groups], a
// pod, or a container of one.
type Owner struct {
	Group     string
	UID       types.UID
	Container string
}

// Reading is how much processor time a cgroup had used at an instant, and since when it
// is there; zero is long.
type Reading struct {
	At    time.Time
	CPU   time.Duration
	Since time.Time
}

// Readings are those of one look, and Rates what two of them come to.
type (
	Readings map[Owner]Reading
	Rates    map[Owner]uint64
)

// Readings returns how much processor time each has used.
func (f Facts) Readings() Readings {
	r := make(Readings)
	note := func(o Owner, at time.Time, cpu *time.Duration, since time.Time) {
		if cpu != nil {
			r[o] = Reading{At: at, CPU: *cpu, Since: since}
		}
	}
	note(Owner{}, f.Time, f.Host.All.CPU, time.Time{})
	for name, c := range f.Groups {
		note(Owner{Group: name}, f.Time, c.CPU, time.Time{})
	}
	for _, p := range f.Pods {
		uid := p.Object.UID
		note(Owner{UID: uid}, p.Use.Time, p.Use.CPU, p.Sandbox.Started)
		for _, c := range p.Containers {
			// An attempt is another cgroup, which counts from its own start.
			note(Owner{UID: uid, Container: c.Name + "/" + c.ID}, p.Use.Time, c.Use.CPU, c.Started)
		}
	}
	return r
}

// young is how long what was not there at the look before has a rate: that since it is.
const young = time.Minute

// Rates returns what was used between two looks. What counts less than before is
// another than it was, and has none.
func (r Readings) Rates(was Readings) Rates {
	rates := make(Rates)
	for o, now := range r {
		old, ok := was[o]
		if !ok && now.At.Sub(now.Since) < young {
			old, ok = Reading{At: now.Since}, true
		}
		if took := now.At.Sub(old.At); ok && took > 0 && now.CPU >= old.CPU {
			rates[o] = uint64(float64(now.CPU-old.CPU) / took.Seconds())
		}
	}
	return rates
}

// of returns a rate, nil where it is not known.
func (r Rates) of(o Owner) *uint64 {
	if n, ok := r[o]; ok {
		return &n
	}
	return nil
}
