package validate

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Pod returns every rule that p breaks, each with the path of its field, in the
// order of the paths. None means that Kubernetes would accept p for creation.
// The pod has its defaults and its namespace set; it is not changed.
func Pod(p *v1.Pod) field.ErrorList {
	specPath := field.NewPath("spec")
	errs := slices.Concat(
		metadata(&p.ObjectMeta, &p.Spec),
		spec(&p.Spec, &p.ObjectMeta, specPath),
		creation(&p.Spec, specPath),
		seccompAnnotations(&p.ObjectMeta, &p.Spec, specPath),
		appArmorAnnotations(&p.ObjectMeta, &p.Spec, specPath),
	)
	return sorted(errs)
}

// sorted orders errors by path. Maps are walked in any order, but a manifest that
// did not change must read the same each time: somebody watches.
func sorted(errs field.ErrorList) field.ErrorList {
	slices.SortFunc(errs, func(a, b *field.Error) int {
		return cmp.Or(strings.Compare(a.Field, b.Field), strings.Compare(a.Error(), b.Error()))
	})
	return errs
}

// creation has what may come later in a pod's life and not with it.
func creation(spec *v1.PodSpec, path *field.Path) field.ErrorList {
	return slices.Concat(
		forbiddenIf(len(spec.EphemeralContainers) > 0, path.Child("ephemeralContainers"),
			"can be added to a running pod only"),
		forbiddenIf(spec.NodeName != "" && len(spec.SchedulingGates) > 0, path.Child("nodeName"),
			"must not be set while there are schedulingGates"),
	)
}

// surroundings are the parts of a pod that the rules of its containers look at.
type surroundings struct {
	spec *v1.PodSpec
	// volumes has the valid ones only: one that is broken was reported, and a
	// mount of it counts as one of an unknown volume.
	volumes   map[string]v1.VolumeSource
	claims    map[string]bool // names in resourceClaims
	hostUsers bool
}

// everyContainer yields init, regular and ephemeral containers with their paths.
func everyContainer(spec *v1.PodSpec, path *field.Path) iter.Seq2[*field.Path, *v1.Container] {
	return func(yield func(*field.Path, *v1.Container) bool) {
		for i := range spec.InitContainers {
			if !yield(path.Child("initContainers").Index(i), &spec.InitContainers[i]) {
				return
			}
		}
		for i := range spec.Containers {
			if !yield(path.Child("containers").Index(i), &spec.Containers[i]) {
				return
			}
		}
		for i := range spec.EphemeralContainers {
			c := (*v1.Container)(&spec.EphemeralContainers[i].EphemeralContainerCommon)
			if !yield(path.Child("ephemeralContainers").Index(i), c) {
				return
			}
		}
	}
}
