package validate

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func metadata(meta *metav1.ObjectMeta, spec *v1.PodSpec) field.ErrorList {
	return append(anyMetadata(meta), annotations(meta.Annotations, spec, field.NewPath("metadata", "annotations"))...)
}

// anyMetadata has the rules that hold for every kind of object here.
func anyMetadata(meta *metav1.ObjectMeta) field.ErrorList {
	path := field.NewPath("metadata")
	errs := validation.ValidateObjectMeta(meta, true, validation.NameIsDNSSubdomain, path)
	for i, name := range meta.Finalizers {
		if !strings.Contains(name, "/") && !slices.Contains(plainFinalizers, name) {
			errs = append(errs, field.Invalid(path.Child("finalizers").Index(i), name,
				"must have a domain prefix, as in example.com/"+name))
		}
	}
	return errs
}

// plainFinalizers are those that Kubernetes knows without a domain.
var plainFinalizers = []string{
	string(v1.FinalizerKubernetes),
	metav1.FinalizerOrphanDependents,
	metav1.FinalizerDeleteDependents,
}

// annotations has rules for those annotations that Kubernetes reads.
func annotations(all map[string]string, spec *v1.PodSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if value, mirror := all[v1.MirrorPodAnnotationKey]; mirror && spec.NodeName == "" {
		errs = append(errs, field.Invalid(path.Key(v1.MirrorPodAnnotationKey), value,
			"needs spec.nodeName: a mirror pod stands for one on a node"))
	}
	if value := all[v1.TolerationsAnnotationKey]; value != "" {
		errs = append(errs, annotatedTolerations(value, path)...)
	}
	if cost, has := all[v1.PodDeletionCost]; has && !deletionCost(cost) {
		errs = append(errs, field.Invalid(path.Key(v1.PodDeletionCost), cost,
			"must be a 32 bit integer without sign '+' and leading zeros"))
	}
	for key, profile := range all {
		if key == v1.SeccompPodAnnotationKey || strings.HasPrefix(key, v1.SeccompContainerAnnotationKeyPrefix) {
			errs = append(errs, seccompName(path.Child(key), profile)...)
		}
		if container, ok := strings.CutPrefix(key, v1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix); ok {
			errs = append(errs, appArmorName(path.Key(key), spec, container, profile)...)
		}
	}
	return errs
}

func annotatedTolerations(value string, path *field.Path) field.ErrorList {
	var list []v1.Toleration
	if err := json.Unmarshal([]byte(value), &list); err != nil {
		return one(field.Invalid(path, v1.TolerationsAnnotationKey, "must be a JSON list of tolerations: "+err.Error()))
	}
	return tolerations(list, path.Child(v1.TolerationsAnnotationKey))
}

func deletionCost(value string) bool {
	if value == "" || value[0] == '+' || value[0] == '0' && value != "0" {
		return false
	}
	_, err := strconv.ParseInt(value, 10, 32)
	return err == nil
}

func seccompName(path *field.Path, profile string) field.ErrorList {
	switch profile {
	//nolint:staticcheck // the old name is still accepted
	case v1.SeccompProfileRuntimeDefault, v1.DeprecatedSeccompProfileDockerDefault, v1.SeccompProfileNameUnconfined:
		return nil
	}
	file, local := strings.CutPrefix(profile, v1.SeccompLocalhostProfileNamePrefix)
	if !local {
		return one(field.Invalid(path, profile, "must be runtime/default, unconfined or localhost/<file>"))
	}
	return relativePath(path, file)
}

func appArmorName(path *field.Path, spec *v1.PodSpec, container, profile string) field.ErrorList {
	var errs field.ErrorList
	known := false
	for _, c := range everyContainer(spec, nil) {
		known = known || c.Name == container
	}
	if !known {
		errs = append(errs, field.Invalid(path, container, "there is no container of this name"))
	}
	switch {
	case profile == "", profile == v1.DeprecatedAppArmorBetaProfileRuntimeDefault,
		profile == v1.DeprecatedAppArmorBetaProfileNameUnconfined,
		strings.HasPrefix(profile, v1.DeprecatedAppArmorBetaProfileNamePrefix):
	default:
		errs = append(errs, field.Invalid(path, profile, "must be runtime/default, unconfined or localhost/<profile>"))
	}
	return errs
}
