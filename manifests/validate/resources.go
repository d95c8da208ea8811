package validate

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// containerResources checks what a container requests and what limits it.
func containerResources(r *v1.ResourceRequirements, claims map[string]bool, path *field.Path) field.ErrorList {
	return slices.Concat(
		amounts(r, containerResourceName, path),
		claimsUsed(r.Claims, claims, path.Child("claims")),
	)
}

// amounts checks requests and limits, whose names have to pass nameCheck.
func amounts(r *v1.ResourceRequirements, nameCheck func(*field.Path, v1.ResourceName) field.ErrorList, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	pages, computes := false, false
	for kind, list := range map[string]v1.ResourceList{"limits": r.Limits, "requests": r.Requests} {
		for name, quantity := range list {
			at := path.Child(kind).Key(string(name))
			errs = slices.Concat(errs, nameCheck(at, name), amount(at, name, quantity))
			pages = pages || hugePages(name)
			computes = computes || name == v1.ResourceCPU || name == v1.ResourceMemory
		}
	}
	for name, request := range r.Requests {
		limit, limited := r.Limits[name]
		errs = append(errs, withinLimit(name, request, limit, limited, path)...)
	}
	return append(errs, forbiddenIf(pages && !computes, path, "must have cpu or memory where it has huge pages")...)
}

// amount checks one quantity.
func amount(path *field.Path, name v1.ResourceName, quantity resource.Quantity) field.ErrorList {
	var errs field.ErrorList
	if quantity.Sign() < 0 {
		errs = append(errs, field.Invalid(path, quantity.String(), "must not be negative"))
	}
	if wholeOnly(name) && quantity.MilliValue()%1000 != 0 {
		errs = append(errs, field.Invalid(path, quantity.String(), "must be a whole number"))
	}
	if hugePages(name) && !wholePages(name, quantity) {
		errs = append(errs, field.Invalid(path, quantity.String(), "must be a multiple of the size of a page"))
	}
	return errs
}

// withinLimit checks a request against the limit of the same resource. What a
// node can hand out only once (huge pages, devices) has to be limited to just
// what is requested.
func withinLimit(name v1.ResourceName, request, limit resource.Quantity, limited bool, path *field.Path) field.ErrorList {
	shared := isNative(name) && !hugePages(name)
	above := request.Cmp(limit)
	switch {
	case !limited && !shared:
		return one(field.Required(path.Child("limits"), "must limit "+string(name)+" to what is requested"))
	case limited && !shared && above != 0:
		return one(field.Invalid(path.Child("requests"), request.String(),
			"must be the same as the limit of "+string(name)+", which is "+limit.String()))
	case limited && above > 0:
		return one(field.Invalid(path.Child("requests"), request.String(),
			"must not be above the limit of "+string(name)+", which is "+limit.String()))
	}
	return nil
}

func hugePages(name v1.ResourceName) bool {
	return strings.HasPrefix(string(name), v1.ResourceHugePagesPrefix)
}

// wholePages reports whether quantity is made of pages of the size in the name.
func wholePages(name v1.ResourceName, quantity resource.Quantity) bool {
	size, err := resource.ParseQuantity(strings.TrimPrefix(string(name), v1.ResourceHugePagesPrefix))
	if err != nil || size.Sign() <= 0 || size.MilliValue()%1000 != 0 {
		return false
	}
	return quantity.Value()%size.Value() == 0
}

// isNative reports whether a resource is one of Kubernetes' own: without a
// domain, or with its.
func isNative(name v1.ResourceName) bool {
	return !strings.Contains(string(name), "/") || strings.Contains(string(name), v1.ResourceDefaultNamespacePrefix)
}

// isExtended reports whether a resource is of somebody else, such as a device.
// It has to fit behind "requests." in a quota.
func isExtended(name v1.ResourceName) bool {
	return !isNative(name) && !strings.HasPrefix(string(name), v1.DefaultResourceRequestsPrefix) &&
		len(validation.IsQualifiedName(v1.DefaultResourceRequestsPrefix+string(name))) == 0
}

// wholeOnly reports whether a resource is counted.
func wholeOnly(name v1.ResourceName) bool {
	return slices.Contains(objectCounts, name) || isExtended(name)
}

// Kubernetes has more names for resources than containers can have. For one that
// no container can have it says so; one that it does not know at all is reported
// as both.
var (
	objectCounts = []v1.ResourceName{
		v1.ResourcePods, v1.ResourceQuotas, v1.ResourceServices, v1.ResourceReplicationControllers, v1.ResourceSecrets,
		v1.ResourceConfigMaps, v1.ResourcePersistentVolumeClaims, v1.ResourceServicesNodePorts, v1.ResourceServicesLoadBalancers,
	}
	containerNames = []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory, v1.ResourceEphemeralStorage}
	quotaNames     = []v1.ResourceName{
		v1.ResourceRequestsCPU, v1.ResourceRequestsMemory, v1.ResourceRequestsEphemeralStorage, v1.ResourceLimitsCPU,
		v1.ResourceLimitsMemory, v1.ResourceLimitsEphemeralStorage, v1.ResourceStorage, v1.ResourceRequestsStorage,
	}
)

// resourceName reports what is no name of a resource at all.
func resourceName(path *field.Path, name v1.ResourceName) field.ErrorList {
	if errs := malformed(path, name, validation.IsQualifiedName(string(name))); errs != nil {
		return errs
	}
	known := slices.Contains(containerNames, name) || slices.Contains(objectCounts, name) || slices.Contains(quotaNames, name) ||
		hugePages(name) || strings.HasPrefix(string(name), v1.ResourceRequestsHugePagesPrefix)
	if !known && !strings.Contains(string(name), "/") {
		return one(field.Invalid(path, name, "must be a resource that Kubernetes knows, or one with a domain"))
	}
	return nil
}

func containerResourceName(path *field.Path, name v1.ResourceName) field.ErrorList {
	errs := resourceName(path, name)
	switch qualified := strings.Count(string(name), "/") > 0; {
	case !qualified && !slices.Contains(containerNames, name) && !hugePages(name):
		errs = append(errs, field.Invalid(path, name, "must be one that a container can have: cpu, memory, ephemeral-storage or hugepages-<size>"))
	case qualified && !isNative(name) && !isExtended(name):
		errs = append(errs, field.Invalid(path, name, "must be of the form example.com/name, short enough for a quota"))
	}
	return errs
}

func resizePolicy(list []v1.ContainerResizePolicy, restart v1.RestartPolicy, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := map[v1.ResourceName]bool{}
	for i, policy := range list {
		if seen[policy.ResourceName] {
			errs = append(errs, field.Duplicate(path.Index(i), policy.ResourceName))
		}
		seen[policy.ResourceName] = true
		errs = slices.Concat(errs,
			requiredChoice(path, policy.ResourceName, v1.ResourceCPU, v1.ResourceMemory),
			requiredChoice(path, policy.RestartPolicy, v1.NotRequired, v1.RestartContainer),
		)
		if restart == v1.RestartPolicyNever && policy.RestartPolicy != v1.NotRequired {
			errs = append(errs, field.Invalid(path, policy.RestartPolicy, "must be NotRequired where the pod's restartPolicy is Never"))
		}
	}
	return errs
}

func claimNames(list []v1.PodResourceClaim) map[string]bool {
	names := map[string]bool{}
	for i := range list {
		if list[i].Name != "" {
			names[list[i].Name] = true
		}
	}
	return names
}

func resourceClaims(meta *metav1.ObjectMeta, list []v1.PodResourceClaim, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	_, mirror := meta.Annotations[v1.MirrorPodAnnotationKey]
	seen := map[string]bool{}
	for i, claim := range list {
		if mirror {
			errs = append(errs, field.Forbidden(field.NewPath(""), "a static pod cannot have resourceClaims"))
			continue
		}
		at := path.Index(i)
		if claim.Name != "" && seen[claim.Name] {
			errs = append(errs, field.Duplicate(at.Child("name"), claim.Name))
		} else {
			errs = append(errs, checked(at.Child("name"), claim.Name, validation.IsDNS1123Label)...)
		}
		seen[claim.Name] = true
		if (claim.ResourceClaimName == nil) == (claim.ResourceClaimTemplateName == nil) {
			errs = append(errs, field.Invalid(at, claim.Name, "must have one of resourceClaimName and resourceClaimTemplateName"))
		}
		if name := claim.ResourceClaimName; name != nil {
			errs = append(errs, malformed(at.Child("resourceClaimName"), *name, objectName(*name))...)
		}
		if name := claim.ResourceClaimTemplateName; name != nil {
			errs = append(errs, malformed(at.Child("resourceClaimTemplateName"), *name, objectName(*name))...)
		}
	}
	return errs
}

// claimsUsed checks a container's references to the pod's resourceClaims: each
// claim, or each request of a claim, once, and not a claim and its parts.
func claimsUsed(list []v1.ResourceClaim, known map[string]bool, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]bool{} // "claim" or "claim/request"
	for i, claim := range list {
		at := path.Index(i)
		switch {
		case claim.Name == "":
			errs = append(errs, field.Required(at, "must have a name"))
			continue
		case seen[claim.Name]:
			errs = append(errs, field.Duplicate(at, claim.Name))
		case claim.Request != "":
			errs = append(errs, malformed(at.Child("request"), claim.Request, validation.IsDNS1123Label(claim.Request))...)
			part := claim.Name + "/" + claim.Request
			if seen[part] {
				errs = append(errs, field.Duplicate(at, part))
			}
			seen[part] = true
		default:
			for part := range seen {
				if whole, _, split := strings.Cut(part, "/"); split && whole == claim.Name {
					errs = append(errs, field.Duplicate(at, claim.Name))
				}
			}
			seen[claim.Name] = true
		}
		if !known[claim.Name] {
			errs = append(errs, field.NotFound(at, claim.Name))
		}
	}
	return errs
}
