package runtime

import v1 "k8s.io/api/core/v1"

// SandboxSpec is all that is needed to make a sandbox.
type SandboxSpec struct {
	Identity
	// Domainname is the kernel's (NIS) domain name; "" leaves it to the engine.
	Hostname, Domainname          string
	HostNetwork, HostPID, HostIPC bool
	Users                         UserNamespace
	Ports                         []Port
	// DNS is the whole of the pod's resolv.conf; nil leaves it to the adapter,
	// which gives the node's.
	DNS *DNS
	// Sysctls by name, of namespaces that are the pod's own.
	Sysctls map[string]string
	// Security is that of the sandbox's own process.
	Security Security
	// CgroupParent is the cgroup in which that of the container is made, as
	// [Features.CgroupDriver] has it spelled; "" leaves it to the engine.
	CgroupParent string
}

// DNS is what a resolv.conf says. Servers are addresses, at least one; options are
// as the file spells them, "ndots:2". No searches or options are none, not the
// node's.
type DNS struct {
	Servers, Searches, Options []string
}

// UserNamespace is whose users those of a pod's containers are.
type UserNamespace string

// The user namespaces.
const (
	// EngineUsers leaves it to how the engine is set up.
	EngineUsers UserNamespace = ""
	// HostUsers: root in the container is root on the host.
	HostUsers UserNamespace = "host"
	// OwnUsers: they are mapped to unprivileged ones of the host. ErrUnsupported
	// where the engine does not do so.
	OwnUsers UserNamespace = "own"
)

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
	// HostPID and SharePID (the sandbox's PID namespace) exclude each other;
	// without them the container has one of its own.
	HostPID, SharePID bool
	Users             UserNamespace
	Mounts            []Mount
	Resources         Resources
	// OOMScoreAdj is the kernel's badness adjustment for the container.
	OOMScoreAdj int
	// StopSignal is what Stop sends first, "SIGUSR1"; "" is the image's.
	StopSignal string
	// Handler is the OCI runtime that runs it, by the engine's name; "" is its default.
	Handler  string
	Security Security
	// CgroupParent as in [SandboxSpec]: that of the sandbox.
	CgroupParent string
}

// Mount puts a path of the host, which must exist, or the content of an image
// into a container.
type Mount struct {
	HostPath string
	// Image is a reference; HostPath is then empty and the mount is read-only.
	// ErrUnsupported where the engine cannot mount images.
	Image string
	// ImagePath is the folder of the image that is mounted, "" for all.
	ImagePath     string
	ContainerPath string
	ReadOnly      bool
	// Device: HostPath is a device, and the container may use it, not only see it.
	Device bool
	// Recursive says whether a read-only mount makes what is mounted below it
	// read-only too. ErrUnsupported where it is Enabled and the engine cannot.
	Recursive v1.RecursiveReadOnlyMode
	// Propagation of mounts made later below it; "" is none.
	Propagation v1.MountPropagationMode
}

// Security is what the process of a container is and may do. The zero value is
// the engine's own, without a seccomp profile, as the kubelet has it.
type Security struct {
	// User is "uid", "uid:gid" or "name:gid"; "" is the image's.
	User string
	// Groups are supplemental ones, added to those that the image has the user in.
	// With a gid in User the engine adds none of the image's.
	Groups     []int64
	Privileged bool
	// NoNewPrivileges keeps setuid programs from giving more.
	NoNewPrivileges bool
	// AddCapabilities and DropCapabilities are without CAP_; ALL is all.
	AddCapabilities, DropCapabilities []string
	ReadOnlyRoot                      bool
	Seccomp                           Seccomp
	// AppArmor is a profile that the kernel knows, or "unconfined"; "" is the
	// engine's, where there is AppArmor.
	AppArmor string
	SELinux  v1.SELinuxOptions
	// UnmaskedProc shows all of /proc, writable.
	UnmaskedProc bool
}

// Seccomp is "" for none, SeccompDefault for the engine's profile, or a profile
// in the JSON that engines take.
type Seccomp string

// SeccompDefault is the engine's own profile.
const SeccompDefault Seccomp = "default"
