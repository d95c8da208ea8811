package runtime

import v1 "k8s.io/api/core/v1"

// SandboxSpec is all that is needed to make a sandbox.
type SandboxSpec struct {
	Identity
	Hostname                      string
	HostNetwork, HostPID, HostIPC bool
	Ports                         []Port
}

// Port is a port of the pod that is published on the host.
type Port struct {
	ContainerPort, HostPort int32
	Protocol                v1.Protocol
	HostIP                  string
}

// ContainerSpec is all that is needed to make a container of a pod. The
// sandbox to join is Identity.Sandbox.
type ContainerSpec struct {
	Identity
	Image string
	// Command replaces the image's entrypoint and Args its command; empty means
	// the image's own, but a Command without Args drops the image's command.
	Command, Args []string
	// Env has NAME=value entries, one per name.
	Env                   []string
	WorkingDir            string
	Stdin, StdinOnce, TTY bool
	HostPID               bool
	Mounts                []Mount
	Resources             Resources
	// OOMScoreAdj is the kernel's badness adjustment for the container.
	OOMScoreAdj int
}

// Mount binds a path of the host, which must exist, into a container.
type Mount struct {
	HostPath, ContainerPath string
	ReadOnly                bool
}
