package defaults

import v1 "k8s.io/api/core/v1"

// Pod fills in the absent fields of p's spec, in place. It is idempotent. The
// status is left alone: a manifest has none.
func Pod(p *v1.Pod) {
	spec := &p.Spec
	setPodScalars(spec)
	for i := range spec.Volumes {
		setVolume(&spec.Volumes[i])
	}
	for i := range spec.InitContainers {
		setPodContainer(&spec.InitContainers[i], spec.HostNetwork)
	}
	for i := range spec.Containers {
		setPodContainer(&spec.Containers[i], spec.HostNetwork)
	}
	for i := range spec.EphemeralContainers {
		setContainer((*v1.Container)(&spec.EphemeralContainers[i].EphemeralContainerCommon))
	}
	roundUp(spec.Overhead)
	if spec.Resources != nil {
		roundUp(spec.Resources.Limits)
		roundUp(spec.Resources.Requests)
		setPodResources(spec)
	}
}

func setPodScalars(spec *v1.PodSpec) {
	set(&spec.RestartPolicy, v1.RestartPolicyAlways)
	set(&spec.DNSPolicy, v1.DNSClusterFirst)
	set(&spec.SchedulerName, v1.DefaultSchedulerName)
	point(&spec.EnableServiceLinks, v1.DefaultEnableServiceLinks)
	point(&spec.SecurityContext, v1.PodSecurityContext{})
	point(&spec.TerminationGracePeriodSeconds, v1.DefaultTerminationGracePeriodSeconds)
	if *spec.TerminationGracePeriodSeconds < 0 {
		*spec.TerminationGracePeriodSeconds = 1
	}
	// serviceAccount is the old name of serviceAccountName: both carry the same
	// value from here on, and the new name wins.
	set(&spec.ServiceAccountName, spec.DeprecatedServiceAccount)
	spec.DeprecatedServiceAccount = spec.ServiceAccountName
}

// set gives a field its default where it has the zero value.
func set[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// point gives a pointer field its default where it is nil. The pointed-to value
// is new each time.
func point[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}
