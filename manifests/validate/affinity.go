package validate

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The names that affinities have for what is required and what is preferred.
const (
	requiredTerms  = "requiredDuringSchedulingIgnoredDuringExecution"
	preferredTerms = "preferredDuringSchedulingIgnoredDuringExecution"
)

func affinity(a *v1.Affinity, path *field.Path) field.ErrorList {
	if a == nil {
		return nil
	}
	var errs field.ErrorList
	if node := a.NodeAffinity; node != nil {
		errs = append(errs, nodeAffinity(node, path.Child("nodeAffinity"))...)
	}
	if pods := a.PodAffinity; pods != nil {
		errs = append(errs, podAffinity(pods.RequiredDuringSchedulingIgnoredDuringExecution,
			pods.PreferredDuringSchedulingIgnoredDuringExecution, path.Child("podAffinity"))...)
	}
	if pods := a.PodAntiAffinity; pods != nil {
		errs = append(errs, podAffinity(pods.RequiredDuringSchedulingIgnoredDuringExecution,
			pods.PreferredDuringSchedulingIgnoredDuringExecution, path.Child("podAntiAffinity"))...)
	}
	return errs
}

func nodeAffinity(a *v1.NodeAffinity, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if selector := a.RequiredDuringSchedulingIgnoredDuringExecution; selector != nil {
		terms := path.Child(requiredTerms, "nodeSelectorTerms")
		if len(selector.NodeSelectorTerms) == 0 {
			errs = append(errs, field.Required(terms, "must have one term at least"))
		}
		for i := range selector.NodeSelectorTerms {
			errs = append(errs, nodeTerm(&selector.NodeSelectorTerms[i], true, terms.Index(i))...)
		}
	}
	for i := range a.PreferredDuringSchedulingIgnoredDuringExecution {
		term, at := &a.PreferredDuringSchedulingIgnoredDuringExecution[i], path.Child(preferredTerms).Index(i)
		errs = slices.Concat(errs,
			weight(term.Weight, at.Child("weight")),
			nodeTerm(&term.Preference, false, at.Child("preference")),
		)
	}
	return errs
}

func weight(value int32, path *field.Path) field.ErrorList {
	return inRange(path, value, 1, 100)
}

// nodeTerm checks the values of labels only where asked: a preference for a
// value that no node can have does no harm.
func nodeTerm(t *v1.NodeSelectorTerm, checkValues bool, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range t.MatchExpressions {
		errs = append(errs, nodeLabels(&t.MatchExpressions[i], checkValues, path.Child("matchExpressions").Index(i))...)
	}
	for i := range t.MatchFields {
		errs = append(errs, nodeFields(&t.MatchFields[i], path.Child("matchFields").Index(i))...)
	}
	return errs
}

func nodeLabels(r *v1.NodeSelectorRequirement, checkValues bool, path *field.Path) field.ErrorList {
	errs := metavalidation.ValidateLabelName(r.Key, path.Child("key"))
	values := path.Child("values")
	switch r.Operator {
	case v1.NodeSelectorOpIn, v1.NodeSelectorOpNotIn:
		if len(r.Values) == 0 {
			errs = append(errs, field.Required(values, "must have one at least for In and NotIn"))
		}
	case v1.NodeSelectorOpExists, v1.NodeSelectorOpDoesNotExist:
		errs = append(errs, forbiddenIf(len(r.Values) > 0, values, "must not be set for Exists and DoesNotExist")...)
	case v1.NodeSelectorOpGt, v1.NodeSelectorOpLt:
		if len(r.Values) != 1 {
			errs = append(errs, field.Required(values, "must have just one for Gt and Lt"))
		}
	default:
		errs = append(errs, field.Invalid(path.Child("operator"), r.Operator, "must be In, NotIn, Exists, DoesNotExist, Gt or Lt"))
	}
	if !checkValues {
		return errs
	}
	for i, value := range r.Values {
		errs = append(errs, malformed(values.Index(i), value, validation.IsValidLabelValue(value))...)
	}
	return errs
}

func nodeFields(r *v1.NodeSelectorRequirement, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch r.Operator {
	case v1.NodeSelectorOpIn, v1.NodeSelectorOpNotIn:
		if len(r.Values) != 1 {
			errs = append(errs, field.Required(path.Child("values"), "must have just one"))
		}
	default:
		errs = append(errs, field.Invalid(path.Child("operator"), r.Operator, "must be In or NotIn"))
	}
	if r.Key != metav1.ObjectNameField {
		return append(errs, field.Invalid(path.Child("key"), r.Key, "must be metadata.name"))
	}
	for i, value := range r.Values {
		errs = append(errs, malformed(path.Child("values").Index(i), value, objectName(value))...)
	}
	return errs
}

func podAffinity(need []v1.PodAffinityTerm, like []v1.WeightedPodAffinityTerm, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range need {
		errs = append(errs, podTerm(&need[i], path.Child(requiredTerms).Index(i))...)
	}
	for i := range like {
		at := path.Child(preferredTerms).Index(i)
		errs = slices.Concat(errs,
			weight(like[i].Weight, at.Child("weight")),
			podTerm(&like[i].PodAffinityTerm, at.Child("podAffinityTerm")),
		)
	}
	return errs
}

func podTerm(t *v1.PodAffinityTerm, path *field.Path) field.ErrorList {
	errs := slices.Concat(
		selector(t.LabelSelector, path.Child("labelSelector")),
		selector(t.NamespaceSelector, path.Child("namespaceSelector")),
		labelKeys(t.MatchLabelKeys, t.MismatchLabelKeys, t.LabelSelector, path),
		required(path.Child("topologyKey"), t.TopologyKey),
		metavalidation.ValidateLabelName(t.TopologyKey, path.Child("topologyKey")),
	)
	for _, name := range t.Namespaces {
		errs = append(errs, malformed(path.Child("namespace"), name, namespaceName(name))...)
	}
	return errs
}

func selector(s *metav1.LabelSelector, path *field.Path) field.ErrorList {
	return metavalidation.ValidateLabelSelector(s, metavalidation.LabelSelectorValidationOptions{}, path)
}

// labelKeys checks the keys whose values are taken from the pod itself and added
// to its selector: they are labels, there is a selector, and none is in it or in
// both lists.
func labelKeys(match, mismatch []string, s *metav1.LabelSelector, path *field.Path) field.ErrorList {
	errs := slices.Concat(
		keysWithSelector(match, s, path.Child("matchLabelKeys")),
		keysWithSelector(mismatch, s, path.Child("mismatchLabelKeys")),
	)
	for i, key := range match {
		if slices.Contains(mismatch, key) {
			errs = append(errs, field.Invalid(path.Child("matchLabelKeys").Index(i), key, "must not be in mismatchLabelKeys too"))
		}
	}
	if s == nil {
		return errs
	}
	// The selector has an expression for each key already where Kubernetes stored
	// the pod before: only the second one of a key is somebody's own.
	selected := map[string]bool{}
	for key := range s.MatchLabels {
		selected[key] = true
	}
	for _, expression := range s.MatchExpressions {
		if i := lastIndex(match, expression.Key); i >= 0 && selected[expression.Key] {
			errs = append(errs, field.Invalid(path.Index(i), expression.Key, "must not be in both matchLabelKeys and labelSelector"))
		}
		selected[expression.Key] = true
	}
	return errs
}

func lastIndex(list []string, value string) int {
	for i, v := range slices.Backward(list) {
		if v == value {
			return i
		}
	}
	return -1
}

func keysWithSelector(keys []string, s *metav1.LabelSelector, path *field.Path) field.ErrorList {
	if len(keys) > 0 && s == nil {
		return one(field.Forbidden(path, "needs a labelSelector"))
	}
	var errs field.ErrorList
	for i, key := range keys {
		errs = append(errs, metavalidation.ValidateLabelName(key, path.Index(i))...)
	}
	return errs
}
