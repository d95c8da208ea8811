package reconcile

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/runtime"
)

// unheard: what is to become of a pod hangs on what the engine can do.
var unheard = Waiting{ContainerCreating, "waits to hear what the engine can do"}

// unsupported says what a pod asks for that cannot be had on this machine, so
// that nothing is made for it; zero where there is no such thing.
func (in Input) unsupported(p *pod.Pod) Waiting {
	if in.Features != nil {
		return lacking(p.Object, *in.Features, in.Node)
	}
	if lacking(p.Object, runtime.Features{}, in.Node) == (Waiting{}) {
		return Waiting{}
	}
	return unheard
}

func lacking(p *v1.Pod, f runtime.Features, node Node) Waiting {
	if userNamespace(p) == runtime.OwnUsers && !f.OwnUsers {
		return Waiting{PodFeatureUnsupported, "hostUsers: false: the engine is not set up to map users (userns-remap)"}
	}
	if name := handler(p); name != "" && !slices.Contains(f.Handlers, name) {
		return Waiting{PodFeatureUnsupported, fmt.Sprintf("runtimeClassName: the engine has no runtime %q", name)}
	}
	for _, v := range p.Spec.Volumes {
		if v.Image != nil && !f.ImageMounts {
			return Waiting{PodFeatureUnsupported, fmt.Sprintf("volume %q: the engine cannot mount images", v.Name)}
		}
	}
	for _, port := range hostPorts(p) {
		if port.Protocol == v1.ProtocolSCTP && !p.Spec.HostNetwork && !node.SCTP {
			return Waiting{PodFeatureUnsupported, fmt.Sprintf("host port %s: the kernel has no SCTP", portName(port))}
		}
	}
	for _, m := range members(p) {
		if w := containerLacks(p, m.Container, f); w != (Waiting{}) {
			return w
		}
	}
	return Waiting{}
}

func containerLacks(p *v1.Pod, c *v1.Container, f runtime.Features) Waiting {
	sc := effectiveSecurity(p, c)
	because := func(reason Reason, text string) Waiting {
		return Waiting{reason, fmt.Sprintf("container %q: %s", c.Name, text)}
	}
	switch {
	case !f.AppArmor && needsAppArmor(p, c, sc):
		return Waiting{AppArmor, "Cannot enforce AppArmor: AppArmor is not enabled on the host"}
	case !f.SELinux && sc.SELinuxOptions != nil && *sc.SELinuxOptions != (v1.SELinuxOptions{}):
		return because(PodFeatureUnsupported, "seLinuxOptions: SELinux is not enabled in the engine")
	case !f.Seccomp && sc.SeccompProfile != nil && sc.SeccompProfile.Type != v1.SeccompProfileTypeUnconfined:
		return because(PodFeatureUnsupported, "seccompProfile: seccomp is not enabled in the engine")
	case strictGroups(p) && sc.RunAsGroup == nil:
		// With a group the engine looks up no others for the user.
		return because(SupplementalGroupsPolicyNotSupported, "supplementalGroupsPolicy: Strict needs runAsGroup with this engine")
	}
	for _, m := range c.VolumeMounts {
		if m.RecursiveReadOnly != nil && *m.RecursiveReadOnly == v1.RecursiveReadOnlyEnabled && !f.RecursiveReadOnly {
			return because(PodFeatureUnsupported, fmt.Sprintf("volumeMount at %s: the engine cannot make it read-only recursively", m.MountPath))
		}
	}
	return Waiting{}
}

func needsAppArmor(p *v1.Pod, c *v1.Container, sc v1.SecurityContext) bool {
	if sc.AppArmorProfile != nil {
		return sc.AppArmorProfile.Type != v1.AppArmorProfileTypeUnconfined
	}
	annotation := p.Annotations[v1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix+c.Name]
	return annotation != "" && annotation != v1.DeprecatedAppArmorBetaProfileNameUnconfined
}

func strictGroups(p *v1.Pod) bool {
	sc := p.Spec.SecurityContext
	return sc != nil && sc.SupplementalGroupsPolicy != nil && *sc.SupplementalGroupsPolicy == v1.SupplementalGroupsPolicyStrict
}
