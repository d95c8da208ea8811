package validate

import (
	"math"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func spec(s *v1.PodSpec, meta *metav1.ObjectMeta, path *field.Path) field.ErrorList {
	usable, volumeErrs := volumes(s, meta, path.Child("volumes"))
	around := &surroundings{
		spec:      s,
		volumes:   usable,
		claims:    claimNames(s.ResourceClaims),
		hostUsers: s.HostUsers == nil || *s.HostUsers,
	}
	return slices.Concat(
		volumeErrs,
		containers(around, path.Child("containers")),
		initContainers(around, path.Child("initContainers")),
		ephemeralContainers(around, path.Child("ephemeralContainers")),
		fileKeyVolumes(s, path),
		resourceClaims(meta, s.ResourceClaims, path.Child("resourceClaims")),
		podResources(s, path.Child("resources")),
		amounts(&v1.ResourceRequirements{Limits: s.Overhead}, containerResourceName, path.Child("overhead")),
		network(s, path),
		security(s, path),
		scheduling(s, path),
		lifetime(s, path),
	)
}

// lifetime has when a pod ends and starts again, and under whose name it runs.
func lifetime(s *v1.PodSpec, path *field.Path) field.ErrorList {
	errs := slices.Concat(
		requiredChoice(path.Child("restartPolicy"), s.RestartPolicy,
			v1.RestartPolicyAlways, v1.RestartPolicyOnFailure, v1.RestartPolicyNever),
		gracePeriod(path.Child("terminationGracePeriodSeconds"), s.TerminationGracePeriodSeconds),
		optional(path.Child("serviceAccountName"), s.ServiceAccountName, objectName),
		optional(path.Child("nodeName"), s.NodeName, objectName),
		optional(path.Child("priorityClassName"), s.PriorityClassName, objectName),
	)
	if s.DeprecatedServiceAccount != s.ServiceAccountName {
		errs = append(errs, field.Invalid(path.Child("deprecatedServiceAccount"), s.DeprecatedServiceAccount,
			"must be the same as serviceAccountName"))
	}
	if s.RuntimeClassName != nil {
		errs = append(errs, malformed(path.Child("runtimeClassName"), *s.RuntimeClassName, objectName(*s.RuntimeClassName))...)
	}
	if deadline := s.ActiveDeadlineSeconds; deadline != nil && (*deadline < 1 || *deadline > math.MaxInt32) {
		errs = append(errs, field.Invalid(path.Child("activeDeadlineSeconds"), *deadline,
			validation.InclusiveRangeError(1, math.MaxInt32)))
	}
	return errs
}

func gracePeriod(path *field.Path, seconds *int64) field.ErrorList {
	switch {
	case seconds == nil:
		return one(field.Required(path, "must be set"))
	case *seconds < 0:
		return one(field.Invalid(path, *seconds, "must not be negative"))
	}
	return nil
}

// scheduling has what only a scheduler acts on. It is checked all the same: a
// manifest that is good here is good in a cluster.
func scheduling(s *v1.PodSpec, path *field.Path) field.ErrorList {
	errs := slices.Concat(
		metavalidation.ValidateLabels(s.NodeSelector, path.Child("nodeSelector")),
		affinity(s.Affinity, path.Child("affinity")),
		tolerations(s.Tolerations, path.Child("tolerations")),
		topologySpread(s.TopologySpreadConstraints, path.Child("topologySpreadConstraints")),
		optionalRequiredChoice(path.Child("preemptionPolicy"), s.PreemptionPolicy, v1.PreemptLowerPriority, v1.PreemptNever),
		schedulingGroup(s, path.Child("schedulingGroup")),
	)
	for i, gate := range s.ReadinessGates {
		errs = append(errs, malformed(path.Child("readinessGates").Index(i).Child("conditionType"),
			gate.ConditionType, validation.IsQualifiedName(string(gate.ConditionType)))...)
	}
	seen := map[string]bool{}
	for i, gate := range s.SchedulingGates {
		gatePath := path.Child("schedulingGates").Index(i)
		errs = append(errs, malformed(gatePath, gate.Name, validation.IsQualifiedName(gate.Name))...)
		if seen[gate.Name] {
			errs = append(errs, field.Duplicate(gatePath, gate.Name))
		}
		seen[gate.Name] = true
	}
	return errs
}

// optionalRequiredChoice is for a pointer which, when set, may not be empty.
func optionalRequiredChoice[T ~string](path *field.Path, value *T, allowed ...T) field.ErrorList {
	if value == nil {
		return nil
	}
	return requiredChoice(path, *value, allowed...)
}

func schedulingGroup(s *v1.PodSpec, path *field.Path) field.ErrorList {
	if s.SchedulingGroup == nil {
		return nil
	}
	errs := forbiddenIf(len(s.EvictionResponders) > 0, path, "must not be set together with evictionResponders")
	name := s.SchedulingGroup.PodGroupName
	if name == nil {
		return append(errs, field.Invalid(path.Child("podGroupName"), "", "must be set"))
	}
	return append(errs, malformed(path.Child("podGroupName"), *name, objectName(*name))...)
}
