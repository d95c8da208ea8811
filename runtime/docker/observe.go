package docker

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/docker/docker/api/types/container"
	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/runtime"
)

// observe reads an inspect. It is false for a container that is not ours.
func observe(s settings, in container.InspectResponse) (runtime.Container, bool) {
	if in.ContainerJSONBase == nil || in.State == nil || in.Config == nil || in.HostConfig == nil {
		return runtime.Container{}, false
	}
	id, ok := runtime.Owned(s.rootDir, in.Name, in.Config.Labels)
	if !ok {
		return runtime.Container{}, false
	}
	c := runtime.Container{
		ID:        in.ID,
		Identity:  id,
		State:     state(in.State.Status),
		ExitCode:  in.State.ExitCode,
		OOMKilled: in.State.OOMKilled,
		Error:     in.State.Error,
		Created:   wallTime(in.Created),
		Started:   wallTime(in.State.StartedAt),
		Finished:  wallTime(in.State.FinishedAt),
		Start:     in.State.StartedAt,
		Image:     in.Config.Image,
		ImageID:   in.Image,
		LogPath:   in.LogPath,
		Writable:  in.GraphDriver.Data["UpperDir"], // of overlay2 and its like
		Resources: observedResources(in.HostConfig.Resources),
		Drift:     s.drift(id, in),

		CgroupParent: in.HostConfig.CgroupParent,
	}
	switch {
	case c.State == runtime.Running:
		c.PID = in.State.Pid
		c.Finished = time.Time{} // that of an earlier run
	case c.State == runtime.Exited && c.Finished.Before(c.Started):
		c.Finished = c.Started // the engine was slower to note the start than the end
	}
	if id.IsSandbox() {
		c.HostNetwork = in.HostConfig.NetworkMode.IsHost()
		if c.State == runtime.Running && !c.HostNetwork {
			c.IPs = addresses(in.NetworkSettings)
		}
	}
	return c, true
}

// drift compares what a container was made with to what the next one would be.
func (s settings) drift(id runtime.Identity, in container.InspectResponse) []string {
	var list []string
	differ := func(what, was, is string) {
		if was != is {
			list = append(list, fmt.Sprintf("%s: %s made with %q, now %q", what, id.Name, was, is))
		}
	}
	logs := func(c container.LogConfig) string {
		return fmt.Sprintf("%s %s x %s", c.Type, c.Config["max-size"], c.Config["max-file"])
	}
	differ("container logs", logs(in.HostConfig.LogConfig), logs(s.logs))
	if !id.IsSandbox() {
		return list
	}
	if mode := in.HostConfig.NetworkMode; !mode.IsHost() {
		differ("docker network", mode.NetworkName(), s.network)
	}
	if s.pauseImage != "" {
		differ("pause image", in.Config.Image, s.pauseImage)
	}
	return list
}

// state maps the engine's. A paused container is one that runs: its processes,
// ports and addresses are there.
func state(engine container.ContainerState) runtime.State {
	switch engine {
	case container.StateCreated:
		return runtime.Created
	case container.StateRunning, container.StatePaused, container.StateRestarting:
		return runtime.Running
	default:
		return runtime.Exited
	}
}

// wallTime is zero for what the engine spells as the year 1, and for nonsense.
func wallTime(text string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return time.Time{}
	}
	return t
}

// addresses lists IPv4 before IPv6 within each network, networks by name.
func addresses(settings *container.NetworkSettings) []string {
	if settings == nil {
		return nil
	}
	var ips []string
	for _, name := range slices.Sorted(maps.Keys(settings.Networks)) {
		endpoint := settings.Networks[name]
		if endpoint == nil {
			continue
		}
		for _, ip := range []string{endpoint.IPAddress, endpoint.GlobalIPv6Address} {
			if ip != "" {
				ips = append(ips, ip)
			}
		}
	}
	return ips
}

// observedResources undoes updatedResources.
func observedResources(r container.Resources) runtime.Resources {
	out := runtime.Resources{CPUShares: r.CPUShares, CPUPeriod: r.CPUPeriod, CPUQuota: max(r.CPUQuota, 0), Memory: r.Memory, CPUSet: r.CpusetCpus}
	if out.Memory >= noMemoryLimit {
		out.Memory = 0
	}
	if r.PidsLimit != nil {
		out.Pids = max(*r.PidsLimit, 0)
	}
	return out
}

// summarize reads one entry of a listing.
func summarize(rootDir string, in container.Summary) (runtime.Summary, bool) {
	for _, name := range in.Names {
		// Further names are links from other containers: /other/alias.
		if strings.Contains(strings.TrimPrefix(name, "/"), "/") {
			continue
		}
		if id, ok := runtime.Owned(rootDir, name, in.Labels); ok {
			return runtime.Summary{ID: in.ID, Identity: id, State: state(in.State), Ports: listedPorts(in.Ports)}, true
		}
	}
	return runtime.Summary{}, false
}

// listedPorts are those of the host. A listing has one on every address twice, for
// IPv4 and for IPv6.
func listedPorts(in []container.Port) []runtime.Port {
	var out []runtime.Port
	for _, p := range in {
		port := runtime.Port{
			ContainerPort: int32(p.PrivatePort), HostPort: int32(p.PublicPort), HostIP: p.IP,
			Protocol: v1.Protocol(strings.ToUpper(p.Type)),
		}
		if ip := net.ParseIP(p.IP); ip.IsUnspecified() {
			port.HostIP = ""
		}
		if port.HostPort != 0 && !slices.Contains(out, port) {
			out = append(out, port)
		}
	}
	return out
}
