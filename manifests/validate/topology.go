package validate

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func topologySpread(list []v1.TopologySpreadConstraint, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range list {
		c, at := &list[i], path.Index(i)
		errs = slices.Concat(errs,
			aboveZero(c.MaxSkew, at.Child("maxSkew")),
			required(at.Child("topologyKey"), c.TopologyKey),
			choice(at.Child("whenUnsatisfiable"), c.WhenUnsatisfiable, v1.DoNotSchedule, v1.ScheduleAnyway),
			optionalChoice(at.Child("nodeAffinityPolicy"), c.NodeAffinityPolicy, v1.NodeInclusionPolicyIgnore, v1.NodeInclusionPolicyHonor),
			optionalChoice(at.Child("nodeTaintsPolicy"), c.NodeTaintsPolicy, v1.NodeInclusionPolicyIgnore, v1.NodeInclusionPolicyHonor),
			labelKeys(c.MatchLabelKeys, nil, c.LabelSelector, at),
			selector(c.LabelSelector, at.Child("labelSelector")),
		)
		if c.MinDomains != nil {
			errs = append(errs, aboveZero(*c.MinDomains, at.Child("minDomains"))...)
			if c.WhenUnsatisfiable != v1.DoNotSchedule {
				errs = append(errs, field.Invalid(at.Child("minDomains"), *c.MinDomains, "needs whenUnsatisfiable DoNotSchedule"))
			}
		}
		again := func(o v1.TopologySpreadConstraint) bool {
			return o.TopologyKey == c.TopologyKey && o.WhenUnsatisfiable == c.WhenUnsatisfiable
		}
		if slices.ContainsFunc(list[i+1:], again) {
			errs = append(errs, field.Duplicate(at.Child("{topologyKey, whenUnsatisfiable}"),
				c.TopologyKey+", "+string(c.WhenUnsatisfiable)))
		}
	}
	return errs
}

func aboveZero(value int32, path *field.Path) field.ErrorList {
	if value <= 0 {
		return one(field.Invalid(path, value, "must be above 0"))
	}
	return nil
}

func tolerations(list []v1.Toleration, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range list {
		t, at := &list[i], path.Index(i)
		operator := at.Child("operator")
		if t.Key != "" {
			errs = append(errs, metavalidation.ValidateLabelName(t.Key, at.Child("key"))...)
		} else if t.Operator != v1.TolerationOpExists {
			errs = append(errs, field.Invalid(operator, t.Operator, "must be Exists where there is no key: it tolerates everything"))
		}
		switch t.Operator {
		case v1.TolerationOpEqual, "":
			if messages := validation.IsValidLabelValue(t.Value); len(messages) > 0 {
				errs = append(errs, field.Invalid(operator, t.Value, "must have a value that a label can have: "+strings.Join(messages, "; ")))
			}
		case v1.TolerationOpExists:
			if t.Value != "" {
				errs = append(errs, field.Invalid(operator, t.Value, "must have no value for Exists"))
			}
		default:
			errs = append(errs, choice(operator, t.Operator, v1.TolerationOpEqual, v1.TolerationOpExists)...)
		}
		if t.TolerationSeconds != nil && t.Effect != v1.TaintEffectNoExecute {
			errs = append(errs, field.Invalid(at.Child("effect"), t.Effect, "must be NoExecute where tolerationSeconds is set"))
		}
		if t.Effect != "" {
			errs = append(errs, choice(at.Child("effect"), t.Effect,
				v1.TaintEffectNoSchedule, v1.TaintEffectPreferNoSchedule, v1.TaintEffectNoExecute)...)
		}
	}
	return errs
}
