package docker

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/go-connections/nat"
	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/runtime"
)

// settings are what every request of an agent has in common.
type settings struct {
	rootDir, network string
	// pauseImage replaces the one that is built in; "" does not.
	pauseImage string
	logs       container.LogConfig
}

// request is the body of a create call, and the name to create.
type request struct {
	name   string
	config *container.Config
	host   *container.HostConfig
}

// minCPUShares is the least that the kernel takes.
const minCPUShares = 2

// sandboxStopTimeout is how long a docker stop by hand waits for a pause process.
const sandboxStopTimeout = 10

func sandboxRequest(s settings, spec runtime.SandboxSpec, image string, oomFloor int) request {
	req := s.request(spec.Identity, image, sandboxStopTimeout)
	req.secure(spec.Security)
	req.config.Hostname, req.config.Domainname = spec.Hostname, spec.Domainname
	req.host.UsernsMode, req.host.Sysctls = users(spec.Users), maps.Clone(spec.Sysctls)
	req.host.NetworkMode = container.NetworkMode(s.network)
	req.host.IpcMode = container.IPCModeShareable
	tellDNS(req.host, spec.DNS)
	req.host.OomScoreAdj = max(sandboxOOMScoreAdj, oomFloor)
	req.host.CPUShares, req.host.CgroupParent = minCPUShares, spec.CgroupParent
	if spec.HostNetwork {
		req.config.Hostname, req.config.Domainname = "", ""
		req.host.NetworkMode = "host"
	} else {
		req.config.ExposedPorts, req.host.PortBindings = ports(spec.Ports)
	}
	if spec.HostIPC {
		req.host.IpcMode = "host"
	}
	if spec.HostPID {
		req.host.PidMode = "host"
	}
	return req
}

func containerRequest(s settings, spec runtime.ContainerSpec, oomFloor int) request {
	req := s.request(spec.Identity, spec.Image, int(spec.Grace/time.Second))
	// An entrypoint drops the image's command too; an empty list would not be
	// the same as none.
	req.config.Entrypoint = orNil(spec.Command)
	req.config.Cmd = orNil(spec.Args)
	req.config.Env = spec.Env
	req.config.WorkingDir = spec.WorkingDir
	req.config.StopSignal = spec.StopSignal
	req.config.Tty, req.config.OpenStdin, req.config.StdinOnce = spec.TTY, spec.Stdin, spec.StdinOnce

	joined := "container:" + spec.Sandbox.ID
	req.host.NetworkMode = container.NetworkMode(joined)
	req.host.IpcMode = container.IpcMode(joined)
	switch {
	case spec.HostPID:
		req.host.PidMode = "host"
	case spec.SharePID:
		req.host.PidMode = container.PidMode(joined)
	}
	req.host.UsernsMode = users(spec.Users)
	req.host.Runtime = spec.Handler
	req.host.OomScoreAdj = max(spec.OOMScoreAdj, oomFloor)
	req.host.Resources = resources(spec.Resources)
	req.host.CgroupParent = spec.CgroupParent
	req.host.Mounts = mounts(spec.Mounts)
	req.host.Devices = devices(spec.Mounts)
	req.secure(spec.Security)
	return req
}

func (s settings) request(id runtime.Identity, image string, stopTimeout int) request {
	noInit := false
	return request{
		name: id.ContainerName(),
		config: &container.Config{
			Image:  image,
			Labels: id.Labels(s.rootDir),
			// Probes are the agent's, the image's are not run.
			Healthcheck: &container.HealthConfig{Test: []string{"NONE"}},
			StopTimeout: &stopTimeout,
		},
		host: &container.HostConfig{
			// The agent restarts, and only it.
			RestartPolicy: container.RestartPolicy{Name: container.RestartPolicyDisabled},
			LogConfig:     container.LogConfig{Type: s.logs.Type, Config: maps.Clone(s.logs.Config)},
			// An engine may be set to put a process of its own in front.
			Init: &noInit,
		},
	}
}

func ports(list []runtime.Port) (nat.PortSet, nat.PortMap) {
	if len(list) == 0 {
		return nil, nil
	}
	exposed, bindings := nat.PortSet{}, nat.PortMap{}
	for _, p := range list {
		protocol := strings.ToLower(string(p.Protocol))
		if protocol == "" {
			protocol = "tcp"
		}
		port := nat.Port(strconv.Itoa(int(p.ContainerPort)) + "/" + protocol)
		exposed[port] = struct{}{}
		bindings[port] = append(bindings[port], nat.PortBinding{HostIP: p.HostIP, HostPort: strconv.Itoa(int(p.HostPort))})
	}
	return exposed, bindings
}

// mounts never uses HostConfig.Binds, which creates a missing path of the host.
func mounts(list []runtime.Mount) []mount.Mount {
	var out []mount.Mount
	for _, m := range list {
		if m.Device {
			continue
		}
		if m.Image != "" {
			out = append(out, mount.Mount{
				Type: mount.TypeImage, Source: m.Image, Target: m.ContainerPath,
				ReadOnly: true, ImageOptions: &mount.ImageOptions{Subpath: m.ImagePath},
			})
			continue
		}
		out = append(out, mount.Mount{
			Type: mount.TypeBind, Source: m.HostPath, Target: m.ContainerPath, ReadOnly: m.ReadOnly,
			BindOptions: &mount.BindOptions{
				Propagation: propagation(m.Propagation),
				// Engines from 25 on make a read-only mount recursively so, where they can,
				// unless told otherwise. Older ones do not know the field.
				ReadOnlyNonRecursive:   m.ReadOnly && (m.Recursive == "" || m.Recursive == v1.RecursiveReadOnlyDisabled),
				ReadOnlyForceRecursive: m.ReadOnly && m.Recursive == v1.RecursiveReadOnlyEnabled,
			},
		})
	}
	return out
}

func devices(list []runtime.Mount) []container.DeviceMapping {
	var out []container.DeviceMapping
	for _, m := range list {
		if !m.Device {
			continue
		}
		permissions := "rw"
		if m.ReadOnly {
			permissions = "r"
		}
		out = append(out, container.DeviceMapping{PathOnHost: m.HostPath, PathInContainer: m.ContainerPath, CgroupPermissions: permissions})
	}
	return out
}

func propagation(mode v1.MountPropagationMode) mount.Propagation {
	switch mode {
	case v1.MountPropagationHostToContainer:
		return mount.PropagationRSlave
	case v1.MountPropagationBidirectional:
		return mount.PropagationRShared
	default:
		return mount.PropagationRPrivate
	}
}

func resources(r runtime.Resources) container.Resources {
	out := container.Resources{CPUShares: r.CPUShares, CPUPeriod: r.CPUPeriod, CPUQuota: r.CPUQuota, Memory: r.Memory, MemorySwap: r.Memory, CpusetCpus: r.CPUSet}
	if out.CPUShares > 0 {
		out.CPUShares = max(out.CPUShares, minCPUShares)
	}
	if r.Pids > 0 {
		out.PidsLimit = &r.Pids
	}
	return out
}

const (
	defaultCPUShares = 1024
	// noMemoryLimit is how the kernel itself spells none on cgroup v1: the
	// largest multiple of a page. The engine can raise a limit but not lift it.
	noMemoryLimit = 1<<63 - 4096
)

// updatedResources says each value in full but the CPUs, which can be changed but
// not given back: to an update a zero means as it was.
func updatedResources(r runtime.Resources) container.Resources {
	out := resources(r)
	if out.CPUShares == 0 {
		out.CPUShares = defaultCPUShares
	}
	if out.CPUQuota == 0 {
		out.CPUQuota = -1
	}
	if out.Memory == 0 {
		out.Memory, out.MemorySwap = noMemoryLimit, noMemoryLimit
	}
	if out.PidsLimit == nil {
		none := int64(-1)
		out.PidsLimit = &none
	}
	return out
}

func orNil(list []string) []string {
	if len(list) == 0 {
		return nil
	}
	return slices.Clone(list)
}
