package metrics

import (
	"time"

	"github.com/podkeeper/podkeeper/runtime"
)

// Taken is what one step of a plan came to. Step is its verb.
type Taken struct {
	Step string
	// Makes and Starts say what it is, as far as counts of their own go by it: it makes
	// a sandbox or a container, or starts a container.
	Makes, Starts bool
	// Container is runtime.SandboxName for a sandbox; Attempt is its number.
	Container string
	Attempt   int
	// Init: it is about a container that others wait for.
	Init bool
	// Code is why it failed, in the words of Kubernetes.
	Code string
	Took time.Duration
	Err  error
}

// Took counts steps of a pod that were taken beside each other.
func (c *Counters) Took(wave []Taken) {
	operation, longest := "sync", time.Duration(0)
	for _, t := range wave {
		c.taken.WithLabelValues(t.Step, result(t.Err)).Inc()
		c.step.WithLabelValues(t.Step).Observe(t.Took.Seconds())
		c.container(t)
		longest = max(longest, t.Took)
		switch {
		case t.Makes && t.Container == runtime.SandboxName:
			operation = "create"
		case (t.Makes || t.Starts) && operation != "create":
			operation = "update"
		}
	}
	c.worker.WithLabelValues(operation).Observe(longest.Seconds())
}

// container counts what makes and starts containers.
func (c *Counters) container(t Taken) {
	switch {
	case t.Container == runtime.SandboxName && t.Makes && t.Err == nil:
		c.startedPods.Inc()
		if t.Attempt > 0 {
			c.restarted.WithLabelValues("true").Inc()
		}
	case t.Container == runtime.SandboxName && t.Makes:
		c.failedPods.Inc()
	case t.Starts && t.Err == nil:
		c.startedContainers.WithLabelValues(kind(t.Init)).Inc()
	case (t.Makes || t.Starts) && t.Err != nil:
		c.failedContainers.WithLabelValues(kind(t.Init), t.Code).Inc()
	}
}

func kind(init bool) string {
	if init {
		return "init_container"
	}
	return "container"
}
