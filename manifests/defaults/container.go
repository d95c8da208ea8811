package defaults

import (
	v1 "k8s.io/api/core/v1"
)

// setPodContainer does what holds for regular and init containers only, then
// what holds for all.
func setPodContainer(c *v1.Container, hostNetwork bool) {
	requestLimits(&c.Resources)
	if hostNetwork {
		for i := range c.Ports {
			set(&c.Ports[i].HostPort, c.Ports[i].ContainerPort)
		}
	}
	setContainer(c)
}

func setContainer(c *v1.Container) {
	set(&c.ImagePullPolicy, pullPolicy(c.Image))
	set(&c.TerminationMessagePath, v1.TerminationMessagePathDefault)
	set(&c.TerminationMessagePolicy, v1.TerminationMessageReadFile)
	for i := range c.Ports {
		set(&c.Ports[i].Protocol, v1.ProtocolTCP)
	}
	for i := range c.Env {
		if from := c.Env[i].ValueFrom; from != nil {
			setFieldRef(from.FieldRef)
			if from.FileKeyRef != nil {
				point(&from.FileKeyRef.Optional, false)
			}
		}
	}
	roundUp(c.Resources.Limits)
	roundUp(c.Resources.Requests)
	for _, probe := range []*v1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		setProbe(probe)
	}
	if c.Lifecycle != nil {
		for _, hook := range []*v1.LifecycleHandler{c.Lifecycle.PostStart, c.Lifecycle.PreStop} {
			if hook != nil {
				setHTTPGet(hook.HTTPGet)
			}
		}
	}
}

func setProbe(p *v1.Probe) {
	if p == nil {
		return
	}
	set(&p.TimeoutSeconds, 1)
	set(&p.PeriodSeconds, 10)
	set(&p.SuccessThreshold, 1)
	set(&p.FailureThreshold, 3)
	setHTTPGet(p.HTTPGet)
	if p.GRPC != nil {
		point(&p.GRPC.Service, "")
	}
}

func setHTTPGet(get *v1.HTTPGetAction) {
	if get == nil {
		return
	}
	set(&get.Path, "/")
	set(&get.Scheme, v1.URISchemeHTTP)
}

func setFieldRef(ref *v1.ObjectFieldSelector) {
	if ref != nil {
		set(&ref.APIVersion, "v1")
	}
}
