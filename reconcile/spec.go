package reconcile

import (
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
// hostname is of a pod with a network of its own.
func sandboxSpec(p *pod.Pod, uid types.UID, attempt int, hostname string) runtime.SandboxSpec {
	spec := &p.Object.Spec
	s := runtime.SandboxSpec{
		Identity:    identity(p, uid, runtime.SandboxName, attempt),
		HostNetwork: spec.HostNetwork,
		HostPID:     spec.HostPID,
		HostIPC:     spec.HostIPC,
		Users:       userNamespace(p.Object),
		Sysctls:     sysctls(p.Object),
		Security:    sandboxSecurity(p.Object),
	}
	if spec.HostNetwork {
		return s
	}
	s.Hostname = hostname
	for _, port := range hostPorts(p.Object) {
		s.Ports = append(s.Ports, runtime.Port{
			ContainerPort: port.ContainerPort, HostPort: port.HostPort, Protocol: port.Protocol, HostIP: port.HostIP,
		})
	}
	return s
}

// containerSpec returns what the engine is asked for to make a container in a sandbox
// and in that one's cgroup.
func containerSpec(p *pod.Pod, uid types.UID, c *v1.Container, attempt int, sandbox runtime.SandboxRef, parent string, node Node, env environ, mounts []runtime.Mount) runtime.ContainerSpec {
	id := identity(p, uid, c.Name, attempt)
	id.ContainerHash = p.Containers[c.Name]
	id.Sandbox = sandbox
	return runtime.ContainerSpec{
		Identity:   id,
		Image:      c.Image,
		Command:    expandAll(c.Command, env.lookup),
		Args:       expandAll(c.Args, env.lookup),
		Env:        env.list(),
		WorkingDir: c.WorkingDir,
		Stdin:      c.Stdin,
		StdinOnce:  c.StdinOnce,
		TTY:        c.TTY,
		HostPID:    p.Object.Spec.HostPID,
		SharePID:   isTrue(p.Object.Spec.ShareProcessNamespace),
		Users:      userNamespace(p.Object),
		StopSignal: stopSignal(c),
		Handler:    handler(p.Object),
		Mounts:     mounts,

		CgroupParent: parent,
		Resources:    resources(p.Object, c, node, parent),
		OOMScoreAdj:  oomScoreAdj(p.Object, c, node.Memory),
	}
}

// handler returns the engine's runtime that a pod asks for by the name of a runtime
// class; "" for the default one.
func handler(p *v1.Pod) string {
	if p.Spec.RuntimeClassName == nil {
		return ""
	}
	return *p.Spec.RuntimeClassName
}

// stopSignal returns the signal that a container is stopped with, "" for its
// image's.
func stopSignal(c *v1.Container) string {
	if c.Lifecycle == nil || c.Lifecycle.StopSignal == nil {
		return ""
	}
	return string(*c.Lifecycle.StopSignal)
}

func expandAll(words []string, lookup func(string) (string, bool)) []string {
	var out []string
	for _, w := range words {
		out = append(out, expand(w, lookup))
	}
	return out
}
