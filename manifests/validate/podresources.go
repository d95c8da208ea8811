package validate

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// podResources checks what is requested for the pod as a whole, by itself and
// against what its containers request.
func podResources(s *v1.PodSpec, path *field.Path) field.ErrorList {
	r := s.Resources
	switch {
	case r == nil:
		return nil
	case isWindows(s):
		return one(field.Forbidden(path, "must not be set for a pod of Windows"))
	}
	return slices.Concat(
		forbiddenIf(r.Claims != nil, path.Child("claims"), "must be set on containers"),
		amounts(r, podResourceName, path),
		claimsUsed(r.Claims, claimNames(s.ResourceClaims), path.Child("claims")),
		coversRequests(s, path.Child("requests")),
		coversLimits(s, path),
	)
}

func podResourceName(path *field.Path, name v1.ResourceName) field.ErrorList {
	if errs := resourceName(path, name); errs != nil {
		return errs
	}
	if hugePages(name) {
		return nil
	}
	return choice(path, name, v1.ResourceCPU, v1.ResourceMemory, v1.ResourceHugePagesPrefix)
}

func coversRequests(s *v1.PodSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	together := sum(s, func(r *v1.ResourceRequirements) v1.ResourceList { return r.Requests })
	for name, need := range together {
		if have, set := s.Resources.Requests[name]; set && need.Cmp(have) > 0 {
			errs = append(errs, field.Invalid(path.Key(string(name)), have.String(),
				fmt.Sprintf("must not be below %s, which the containers request together", need.String())))
		}
	}
	return errs
}

// coversLimits: huge pages are limited to what is requested, so the limits add
// up; of all else a single container may not have more than the pod.
func coversLimits(s *v1.PodSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	together := sum(s, func(r *v1.ResourceRequirements) v1.ResourceList { return r.Limits })
	for name, need := range together {
		if have, set := s.Resources.Limits[name]; set && hugePages(name) && need.Cmp(have) > 0 {
			errs = append(errs, field.Invalid(path.Child("limits").Key(string(name)), have.String(),
				fmt.Sprintf("must not be below %s, which is the limit of the containers together", need.String())))
		}
	}
	for i := range s.Containers {
		for name, limit := range s.Containers[i].Resources.Limits {
			if most, set := s.Resources.Limits[name]; set && limit.Cmp(most) > 0 {
				errs = append(errs, field.Invalid(path.Child("containers").Index(i).Key(string(name)).Child("limits"), limit.String(),
					fmt.Sprintf("must not be above the pod's limit of %s", most.String())))
			}
		}
	}
	return errs
}

// sum is what the containers need together: the containers and sidecars that run
// side by side, or an init container with the sidecars that were started before
// it, whichever is more.
func sum(s *v1.PodSpec, of func(*v1.ResourceRequirements) v1.ResourceList) v1.ResourceList {
	total, sidecars, peak := v1.ResourceList{}, v1.ResourceList{}, v1.ResourceList{}
	for i := range s.Containers {
		add(total, of(&s.Containers[i].Resources))
	}
	for i := range s.InitContainers {
		own := of(&s.InitContainers[i].Resources)
		step := sidecars.DeepCopy()
		add(step, own)
		if sidecar(&s.InitContainers[i]) {
			add(total, own)
			sidecars = step
		}
		raise(peak, step)
	}
	raise(total, peak)
	return total
}

func add(list, more v1.ResourceList) {
	for name, quantity := range more {
		have := list[name]
		have.Add(quantity)
		list[name] = have
	}
}

func raise(list, least v1.ResourceList) {
	for name, quantity := range least {
		if have, has := list[name]; !has || quantity.Cmp(have) > 0 {
			list[name] = quantity
		}
	}
}
