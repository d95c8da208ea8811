package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/podkeeper/podkeeper/server"
)

func describeContainers(d description, title string, containers []v1.Container, statuses []v1.ContainerStatus, p server.Pod) {
	if len(containers) == 0 {
		return
	}
	d.head(0, title)
	for i := range containers {
		c := &containers[i]
		d.head(1, c.Name+":")
		at := slices.IndexFunc(statuses, func(s v1.ContainerStatus) bool { return s.Name == c.Name })
		status := &v1.ContainerStatus{}
		if at >= 0 {
			status = &statuses[at]
		}
		describeContainer(d, c, status, p)
	}
}

func describeContainer(d description, c *v1.Container, s *v1.ContainerStatus, p server.Pod) {
	d.line(2, "Container ID:", s.ContainerID)
	d.line(2, "Image:", c.Image)
	d.line(2, "Image ID:", s.ImageID)
	describePorts(d, c.Ports)
	if len(c.Command) > 0 {
		d.head(2, "Command:")
		d.text(3, strings.Join(c.Command, "\n"))
	}
	if len(c.Args) > 0 {
		d.head(2, "Args:")
		d.text(3, strings.Join(c.Args, "\n"))
	}
	describeState(d, "State:", s.State)
	if s.LastTerminationState.Terminated != nil {
		describeState(d, "Last State:", s.LastTerminationState)
	}
	d.line(2, "Ready:", titleBool(s.Ready))
	for _, complaint := range p.Complaints {
		if complaint.Container == c.Name {
			last := metav1.NewTime(complaint.Last)
			d.line(2, "Unhealthy:", fmt.Sprintf("%s (x%d, last %s)", complaint.Message, complaint.Count, when(&last)))
		}
	}
	d.line(2, "Restart Count:", strconv.Itoa(int(s.RestartCount)))
	describeResources(d, "Limits:", c.Resources.Limits)
	describeResources(d, "Requests:", c.Resources.Requests)
	if cpus := p.CPUs[c.Name]; cpus != "" {
		d.line(2, "CPUs:", cpus+" (its own)")
	}
	describeProbe(d, "Liveness:", c.LivenessProbe)
	describeProbe(d, "Readiness:", c.ReadinessProbe)
	describeProbe(d, "Startup:", c.StartupProbe)
	describeEnvFrom(d, c.EnvFrom)
	describeEnv(d, c.Env)
	describeMounts(d, c.VolumeMounts)
}

func titleBool(b bool) string {
	if b {
		return "True"
	}
	return "False"
}

// describePorts has kubectl's keys; an address of the host stands before its port.
func describePorts(d description, ports []v1.ContainerPort) {
	var inside, host []string
	for _, p := range ports {
		inside = append(inside, fmt.Sprintf("%d/%s", p.ContainerPort, p.Protocol))
		on := fmt.Sprintf("%d/%s", p.HostPort, p.Protocol)
		if p.HostIP != "" {
			on = p.HostIP + ":" + on
		}
		host = append(host, on)
	}
	s := "s:"
	if len(ports) == 1 {
		s = ":"
	}
	d.line(2, "Port"+s, orNone(strings.Join(inside, ", ")))
	d.line(2, "Host Port"+s, orNone(strings.Join(host, ", ")))
}

func describeState(d description, title string, s v1.ContainerState) {
	switch {
	case s.Running != nil:
		d.line(2, title, "Running")
		d.line(3, "Started:", when(&s.Running.StartedAt))
	case s.Waiting != nil:
		d.line(2, title, "Waiting")
		d.line(3, "Reason:", orNone(s.Waiting.Reason))
		if s.Waiting.Message != "" {
			d.line(3, "Message:", s.Waiting.Message)
		}
	case s.Terminated != nil:
		t := s.Terminated
		d.line(2, title, "Terminated")
		d.line(3, "Reason:", orNone(t.Reason))
		if t.Message != "" {
			d.line(3, "Message:", t.Message)
		}
		d.line(3, "Exit Code:", strconv.Itoa(int(t.ExitCode)))
		if t.Signal != 0 {
			d.line(3, "Signal:", strconv.Itoa(int(t.Signal)))
		}
		d.line(3, "Started:", when(&t.StartedAt))
		d.line(3, "Finished:", when(&t.FinishedAt))
	default:
		d.line(2, title, "<unknown>")
	}
}

func describeResources(d description, title string, list v1.ResourceList) {
	if len(list) == 0 {
		return
	}
	d.head(2, title)
	var names []string
	for name := range list {
		names = append(names, string(name))
	}
	slices.Sort(names)
	for _, name := range names {
		q := list[v1.ResourceName(name)]
		d.line(3, name+":", q.String())
	}
}

// describeProbe says in one line, as kubectl does, what is asked and when.
func describeProbe(d description, title string, p *v1.Probe) {
	if p == nil {
		return
	}
	action := "unknown"
	switch {
	case p.Exec != nil:
		action = fmt.Sprintf("exec %v", p.Exec.Command)
	case p.HTTPGet != nil:
		action = fmt.Sprintf("http-get %s://%s:%s%s", strings.ToLower(string(p.HTTPGet.Scheme)), p.HTTPGet.Host, p.HTTPGet.Port.String(), p.HTTPGet.Path)
	case p.TCPSocket != nil:
		action = fmt.Sprintf("tcp-socket %s:%s", p.TCPSocket.Host, p.TCPSocket.Port.String())
	case p.GRPC != nil:
		action = fmt.Sprintf("grpc <pod>:%d", p.GRPC.Port)
		if p.GRPC.Service != nil {
			action += " " + *p.GRPC.Service
		}
	}
	d.line(2, title, fmt.Sprintf("%s delay=%ds timeout=%ds period=%ds #success=%d #failure=%d",
		action, p.InitialDelaySeconds, p.TimeoutSeconds, p.PeriodSeconds, p.SuccessThreshold, p.FailureThreshold))
}

// describeEnvFrom names the objects that give all of their values, as kubectl does.
func describeEnvFrom(d description, list []v1.EnvFromSource) {
	if len(list) == 0 {
		return
	}
	d.head(2, "Environment Variables from:")
	for _, from := range list {
		name, kind, optional := "", "ConfigMap", (*bool)(nil)
		switch {
		case from.ConfigMapRef != nil:
			name, optional = from.ConfigMapRef.Name, from.ConfigMapRef.Optional
		case from.SecretRef != nil:
			name, kind, optional = from.SecretRef.Name, "Secret", from.SecretRef.Optional
		}
		if from.Prefix != "" {
			kind += fmt.Sprintf(" with prefix '%s'", from.Prefix)
		}
		d.line(3, name, fmt.Sprintf("%s  Optional: %t", kind, optional != nil && *optional))
	}
}

// describeEnv shows literal values as kubectl does: who may ask the agent may
// read its files, too. What is taken from elsewhere is named, not shown.
func describeEnv(d description, env []v1.EnvVar) {
	if len(env) == 0 {
		d.line(2, "Environment:", "<none>")
		return
	}
	d.head(2, "Environment:")
	for _, e := range env {
		value := e.Value
		if from := e.ValueFrom; from != nil {
			value = asWritten(from)
		}
		d.line(3, e.Name+":", value)
	}
}

func describeMounts(d description, mounts []v1.VolumeMount) {
	if len(mounts) == 0 {
		d.line(2, "Mounts:", "<none>")
		return
	}
	d.head(2, "Mounts:")
	for _, m := range mounts {
		mode := "rw"
		if m.ReadOnly {
			mode = "ro"
		}
		if path := m.SubPath + m.SubPathExpr; path != "" { // one of them at most
			mode += ", path " + path
		}
		d.text(3, oneLine(fmt.Sprintf("%s from %s (%s)", m.MountPath, m.Name, mode)))
	}
}

func describeVolumes(d description, volumes []v1.Volume) {
	if len(volumes) == 0 {
		d.line(0, "Volumes:", "<none>")
		return
	}
	d.head(0, "Volumes:")
	for i := range volumes {
		d.head(1, volumes[i].Name+":")
		d.text(2, asWritten(&volumes[i].VolumeSource))
	}
}

// asWritten shows a part of a pod as a manifest has it.
func asWritten(v any) string {
	data, err := yaml.Marshal(v)
	if err != nil {
		return "<unknown>"
	}
	return string(data)
}
