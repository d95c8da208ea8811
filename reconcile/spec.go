package reconcile

import (
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/runtime"
)

// identity returns what the labels of a container of this pod say.
func identity(p *pod.Pod, uid types.UID, name string, attempt int) runtime.Identity {
	return runtime.Identity{
		Key:     p.Key(),
		UID:     uid,
		Source:  p.Origin.Source.Kind,
		Name:    name,
		Attempt: attempt,
		PodHash: p.Hash,
		Grace:   gracePeriod(p),
	}
}

// The kubelet never waits less than this for a container to end.
const minGrace = 2 * time.Second

func gracePeriod(p *pod.Pod) time.Duration {
	seconds := int64(v1.DefaultTerminationGracePeriodSeconds)
	if p.Object.Spec.TerminationGracePeriodSeconds != nil {
		seconds = *p.Object.Spec.TerminationGracePeriodSeconds
	}
	return max(time.Duration(seconds)*time.Second, minGrace)
}

// sandboxSpec returns what the engine is asked for to make the pod's sandbox.
func sandboxSpec(p *pod.Pod, uid types.UID, attempt int) runtime.SandboxSpec {
	spec := &p.Object.Spec
	s := runtime.SandboxSpec{
		Identity:    identity(p, uid, runtime.SandboxName, attempt),
		HostNetwork: spec.HostNetwork,
		HostPID:     spec.HostPID,
		HostIPC:     spec.HostIPC,
		Security:    runtime.Security{Seccomp: runtime.SeccompDefault},
	}
	if spec.HostNetwork {
		return s
	}
	s.Hostname = hostname(p.Object)
	for _, port := range hostPorts(p.Object) {
		s.Ports = append(s.Ports, runtime.Port{
			ContainerPort: port.ContainerPort, HostPort: port.HostPort, Protocol: port.Protocol, HostIP: port.HostIP,
		})
	}
	return s
}

// The kernel's limit, less the terminating zero.
const maxHostname = 63

// hostname returns the name that the pod's processes see: the one asked for, or
// the pod's name, cut as the kubelet cuts it.
func hostname(p *v1.Pod) string {
	if p.Spec.Hostname != "" {
		return p.Spec.Hostname
	}
	if len(p.Name) <= maxHostname {
		return p.Name
	}
	return strings.TrimRight(p.Name[:maxHostname], "-.")
}

// containerSpec returns what the engine is asked for to make a container.
func containerSpec(p *pod.Pod, uid types.UID, c *v1.Container, attempt int, sandbox runtime.SandboxRef, node Node, mounts []runtime.Mount) runtime.ContainerSpec {
	env := environment(c.Env)
	lookup := func(name string) (string, bool) {
		value, ok := env.values[name]
		return value, ok
	}
	id := identity(p, uid, c.Name, attempt)
	id.ContainerHash = p.Containers[c.Name]
	id.Sandbox = sandbox
	return runtime.ContainerSpec{
		Identity:    id,
		Image:       c.Image,
		Command:     expandAll(c.Command, lookup),
		Args:        expandAll(c.Args, lookup),
		Env:         env.list(),
		WorkingDir:  c.WorkingDir,
		Stdin:       c.Stdin,
		StdinOnce:   c.StdinOnce,
		TTY:         c.TTY,
		HostPID:     p.Object.Spec.HostPID,
		Mounts:      mounts,
		Resources:   resources(c),
		OOMScoreAdj: oomScoreAdj(p.Object, c, node.Memory),
	}
}

type environ struct {
	names  []string
	values map[string]string
}

// environment evaluates literal env entries in order: each may refer to those
// before it, the last of one name wins and is listed once.
func environment(vars []v1.EnvVar) environ {
	env := environ{values: make(map[string]string, len(vars))}
	for _, v := range vars {
		if _, seen := env.values[v.Name]; !seen {
			env.names = append(env.names, v.Name)
		}
		env.values[v.Name] = expand(v.Value, func(name string) (string, bool) {
			value, ok := env.values[name]
			return value, ok
		})
	}
	return env
}

func (e environ) list() []string {
	var list []string
	for _, name := range e.names {
		list = append(list, name+"="+e.values[name])
	}
	return list
}

func expandAll(words []string, lookup func(string) (string, bool)) []string {
	var out []string
	for _, w := range words {
		out = append(out, expand(w, lookup))
	}
	return out
}

// The engine's units of CPU, as the kubelet maps them.
const (
	sharesPerCPU = 1024
	minShares    = 2
	maxShares    = 262144
	quotaPeriod  = 100_000 // µs
	minQuota     = 1_000   // µs
)

// resources returns the limits of a container in the engine's units.
func resources(c *v1.Container) runtime.Resources {
	var r runtime.Resources
	request, limit := c.Resources.Requests.Cpu().MilliValue(), c.Resources.Limits.Cpu().MilliValue()
	if _, asked := c.Resources.Requests[v1.ResourceCPU]; !asked {
		request = limit
	}
	r.CPUShares = min(max(request*sharesPerCPU/1000, minShares), maxShares)
	if limit > 0 {
		r.CPUPeriod = quotaPeriod
		r.CPUQuota = max(limit*quotaPeriod/1000, minQuota)
	}
	r.Memory = c.Resources.Limits.Memory().Value()
	return r
}
