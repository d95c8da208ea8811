package docker

import (
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/podkeeper/podkeeper/runtime"
)

// OOMFloor is pure.
var OOMFloor = oomFloor

// Observe reads an inspect as an agent with these settings does.
func Observe(rootDir, network, pauseImage, logSize string, in container.InspectResponse) (runtime.Container, bool) {
	return observe(settings{
		rootDir: rootDir, network: network, pauseImage: pauseImage,
		logs: container.LogConfig{Type: "json-file", Config: map[string]string{"max-size": logSize, "max-file": "5"}},
	}, in)
}

// SetPullStall makes silence of a pull end it sooner.
func (r *Runtime) SetPullStall(d time.Duration) { r.pullStall = d }

// SandboxBody and ContainerBody are what r sends to create them.
func (r *Runtime) SandboxBody(spec runtime.SandboxSpec, image string) (*container.Config, *container.HostConfig) {
	req := sandboxRequest(r.settings, spec, image, r.current.Load().oomFloor)
	return req.config, req.host
}

func (r *Runtime) ContainerBody(spec runtime.ContainerSpec) (*container.Config, *container.HostConfig) {
	req := containerRequest(r.settings, spec, r.current.Load().oomFloor)
	return req.config, req.host
}

// ExecMark is what an agent's commands bear.
const ExecMark = execMark

// RootDir is the agent's.
func (r *Runtime) RootDir() string { return r.cfg.RootDir }

// SetLogDriver makes containers from then on with another log driver.
func (r *Runtime) SetLogDriver(name string) { r.settings.logs = container.LogConfig{Type: name} }
