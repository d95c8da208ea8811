package dashboard

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/server"
)

// podView is all that the page is told of a pod.
type podView struct {
	ID         string            `json:"id"`
	Namespace  string            `json:"namespace"`
	Name       string            `json:"name"`
	Status     string            `json:"status"`
	Tone       Tone              `json:"tone"`
	Ready      string            `json:"ready"`
	Restarts   int               `json:"restarts"`
	Created    int64             `json:"created,omitempty"` // like all times, milliseconds since 1970
	Why        string            `json:"why,omitempty"`     // it is not as wanted, a sentence
	Notes      []string          `json:"notes,omitempty"`
	IP         string            `json:"ip,omitempty"`
	QoS        string            `json:"qos,omitempty"`
	Policy     string            `json:"restartPolicy,omitempty"`
	Priority   *int32            `json:"priority,omitempty"`
	Origin     string            `json:"origin,omitempty"` // file:line
	Labels     map[string]string `json:"labels,omitempty"`
	Containers []containerView   `json:"containers"`
	Conditions []conditionView   `json:"conditions,omitempty"`
	Volumes    []string          `json:"volumes,omitempty"`
	Steps      []string          `json:"steps,omitempty"` // what is to be done now
	Held       bool              `json:"held,omitempty"`  // stopped by hand
	Busy       bool              `json:"busy,omitempty"`
}

// containerView is all that it is told of a container. The values of variables are
// not among it.
type containerView struct {
	Name     string   `json:"name"`
	Kind     string   `json:"kind,omitempty"` // init, sidecar, or "" for the others
	Image    string   `json:"image"`
	State    string   `json:"state"`
	Tone     Tone     `json:"tone"`
	Since    int64    `json:"since,omitempty"`
	Message  string   `json:"message,omitempty"`
	Ready    bool     `json:"ready"`
	Restarts int32    `json:"restarts"`
	Last     string   `json:"last,omitempty"` // how the attempt before ended
	LastAt   int64    `json:"lastAt,omitempty"`
	CPU      limits   `json:"cpu"`    // in thousandths of one
	Memory   limits   `json:"memory"` // in bytes
	Ports    []string `json:"ports,omitempty"`
	Mounts   []string `json:"mounts,omitempty"`
	Env      []string `json:"env,omitempty"` // names, and where values come from
	Probes   []string `json:"probes,omitempty"`
}

type limits struct {
	Request int64 `json:"request,omitempty"`
	Limit   int64 `json:"limit,omitempty"`
}

type conditionView struct {
	Type    string `json:"type"`
	OK      bool   `json:"ok"`
	Message string `json:"message,omitempty"`
}

func viewPod(p server.Pod, line Line) podView {
	o, status := p.Pod, &p.Pod.Status
	v := podView{
		ID: string(o.UID) + "/" + o.Namespace + "/" + o.Name, Namespace: o.Namespace, Name: o.Name,
		Status: line.Status, Tone: line.Tone, Ready: line.Ready, Restarts: line.Restarts,
		Created: millis(o.CreationTimestamp.Time), IP: status.PodIP, QoS: string(status.QOSClass),
		Policy: string(o.Spec.RestartPolicy), Priority: o.Spec.Priority, Origin: place(p.Origin, p.Line), Labels: o.Labels, Busy: p.Busy, Held: !p.Held.IsZero(),
	}
	if v.Created == 0 && status.StartTime != nil {
		v.Created = millis(status.StartTime.Time)
	}
	for i := range o.Spec.InitContainers {
		c := &o.Spec.InitContainers[i]
		kind := "init"
		if c.RestartPolicy != nil && *c.RestartPolicy == v1.ContainerRestartPolicyAlways {
			kind = "sidecar"
		}
		v.Containers = append(v.Containers, viewContainer(kind, c, statusOf(status.InitContainerStatuses, c.Name), p.Complaints))
	}
	for i := range o.Spec.Containers {
		c := &o.Spec.Containers[i]
		v.Containers = append(v.Containers, viewContainer("", c, statusOf(status.ContainerStatuses, c.Name), p.Complaints))
	}
	for _, c := range status.Conditions {
		v.Conditions = append(v.Conditions, conditionView{
			Type: string(c.Type), OK: c.Status == v1.ConditionTrue, Message: cmp.Or(c.Message, c.Reason),
		})
	}
	for _, volume := range o.Spec.Volumes {
		v.Volumes = append(v.Volumes, volume.Name+": "+volumeKind(volume.VolumeSource))
	}
	for _, s := range p.Steps {
		v.Steps = append(v.Steps, s.Text)
	}
	v.Why, v.Notes = why(p, v.Containers), notes(p)
	if v.Held {
		// That none of them runs is as it was asked for, and the pod says why.
		for i := range v.Containers {
			if c := &v.Containers[i]; c.Since == 0 {
				c.Tone, c.Message = Faint, ""
			}
		}
	}
	if v.Tone == Good && !conditionTrue(status, v1.PodReady) {
		v.Tone = Busy
	}
	return v
}

// why is the first thing that keeps the pod from being as wanted.
func why(p server.Pod, containers []containerView) string {
	switch {
	case p.Blocked != nil:
		return cmp.Or(p.Blocked.Message, p.Blocked.Reason)
	case p.Pod.Status.Message != "":
		return p.Pod.Status.Message
	}
	for _, c := range containers {
		if c.Message != "" && c.Tone != Good && c.Tone != Faint {
			return c.Name + ": " + c.Message
		}
	}
	for _, c := range containers {
		if len(c.Probes) > 0 && !c.Ready {
			return c.Name + ": " + c.Probes[0]
		}
	}
	return ""
}

func notes(p server.Pod) (list []string) {
	if p.Removing {
		list = append(list, "Nothing supplies it any more.")
	}
	if p.Kept != "" {
		list = append(list, "Left as it is, since "+p.Kept+".")
	}
	list = append(list, p.Notes...)
	for _, flag := range p.Drift {
		list = append(list, "Made with another value of "+flag+" than the agent has now.")
	}
	return list
}

func statusOf(list []v1.ContainerStatus, name string) v1.ContainerStatus {
	if i := slices.IndexFunc(list, func(c v1.ContainerStatus) bool { return c.Name == name }); i >= 0 {
		return list[i]
	}
	return v1.ContainerStatus{Name: name}
}

func viewContainer(kind string, c *v1.Container, s v1.ContainerStatus, complaints []server.Complaint) containerView {
	v := containerView{
		Name: c.Name, Kind: kind, Image: c.Image, Ready: s.Ready, Restarts: s.RestartCount,
		CPU:    limits{c.Resources.Requests.Cpu().MilliValue(), c.Resources.Limits.Cpu().MilliValue()},
		Memory: limits{c.Resources.Requests.Memory().Value(), c.Resources.Limits.Memory().Value()},
	}
	v.State, v.Tone, v.Since, v.Message = viewState(s.State)
	if kind == "init" && s.State.Running != nil || v.Tone == Good && !s.Ready && kind != "init" {
		v.Tone = Busy
	}
	if t := s.LastTerminationState.Terminated; t != nil {
		v.Last, v.LastAt = ended(t), millis(t.FinishedAt.Time)
	}
	for _, p := range c.Ports {
		text := fmt.Sprintf("%d/%s", p.ContainerPort, cmp.Or(p.Protocol, v1.ProtocolTCP))
		if p.HostPort != 0 {
			text = fmt.Sprintf("%d → %s", p.HostPort, text)
		}
		v.Ports = append(v.Ports, text)
	}
	for _, m := range c.VolumeMounts {
		text := m.MountPath + " from " + m.Name
		if m.ReadOnly {
			text += ", read-only"
		}
		v.Mounts = append(v.Mounts, text)
	}
	v.Env = viewEnv(c)
	for _, said := range complaints {
		if said.Container == c.Name {
			v.Probes = append(v.Probes, said.Message)
		}
	}
	return v
}

// viewState says what a container does, since when, and what there is to say of it.
func viewState(s v1.ContainerState) (state string, tone Tone, since int64, message string) {
	switch {
	case s.Running != nil:
		return "Running", Good, millis(s.Running.StartedAt.Time), ""
	case s.Terminated != nil:
		tone := Bad
		if s.Terminated.ExitCode == 0 {
			tone = Faint
		}
		message := s.Terminated.Message
		if tone == Bad {
			message = cmp.Or(message, ended(s.Terminated))
		}
		return cmp.Or(s.Terminated.Reason, "Terminated"), tone, millis(s.Terminated.FinishedAt.Time), message
	case s.Waiting != nil && (s.Waiting.Reason == "ContainerCreating" || s.Waiting.Reason == "PodInitializing"):
		return s.Waiting.Reason, Busy, 0, s.Waiting.Message
	case s.Waiting != nil && s.Waiting.Reason != "":
		return s.Waiting.Reason, Bad, 0, cmp.Or(s.Waiting.Message, s.Waiting.Reason)
	default:
		return "Waiting", Busy, 0, ""
	}
}

func ended(t *v1.ContainerStateTerminated) string {
	text := fmt.Sprintf("exit code %d", t.ExitCode)
	if t.Signal != 0 {
		text = fmt.Sprintf("signal %d", t.Signal)
	}
	if t.Reason != "" && t.Reason != "Error" && t.Reason != "Completed" {
		text = t.Reason + ", " + text
	}
	return text
}

// viewEnv names the variables, and what has their values where that is not the
// manifest itself.
func viewEnv(c *v1.Container) (list []string) {
	for _, from := range c.EnvFrom {
		switch {
		case from.ConfigMapRef != nil:
			list = append(list, from.Prefix+"* from ConfigMap "+from.ConfigMapRef.Name)
		case from.SecretRef != nil:
			list = append(list, from.Prefix+"* from Secret "+from.SecretRef.Name)
		}
	}
	for _, e := range c.Env {
		text := e.Name
		if from := e.ValueFrom; from != nil {
			switch {
			case from.SecretKeyRef != nil:
				text += " from Secret " + from.SecretKeyRef.Name
			case from.ConfigMapKeyRef != nil:
				text += " from ConfigMap " + from.ConfigMapKeyRef.Name
			case from.FieldRef != nil:
				text += " from " + from.FieldRef.FieldPath
			case from.ResourceFieldRef != nil:
				text += " from " + from.ResourceFieldRef.Resource
			}
		}
		list = append(list, text)
	}
	return list
}

func volumeKind(s v1.VolumeSource) string {
	switch {
	case s.HostPath != nil:
		return s.HostPath.Path + " of the host"
	case s.EmptyDir != nil && s.EmptyDir.Medium == v1.StorageMediumMemory:
		return "emptyDir in memory"
	case s.EmptyDir != nil:
		return "emptyDir"
	case s.ConfigMap != nil:
		return "ConfigMap " + s.ConfigMap.Name
	case s.Secret != nil:
		return "Secret " + s.Secret.SecretName
	case s.PersistentVolumeClaim != nil:
		return "claim " + s.PersistentVolumeClaim.ClaimName
	case s.Projected != nil:
		return "projected"
	case s.DownwardAPI != nil:
		return "downwardAPI"
	case s.NFS != nil:
		return "NFS " + s.NFS.Server + ":" + s.NFS.Path
	case s.Image != nil:
		return "image " + s.Image.Reference
	default:
		return "other"
	}
}

func place(o pod.Origin, line int) string {
	if line > 0 {
		return fmt.Sprintf("%s:%d", o.Name, line)
	}
	return o.Name
}

func conditionTrue(s *v1.PodStatus, kind v1.PodConditionType) bool {
	return slices.ContainsFunc(s.Conditions, func(c v1.PodCondition) bool { return c.Type == kind && c.Status == v1.ConditionTrue })
}

func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}
