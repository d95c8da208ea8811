package validate

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Pod returns every rule that p breaks, each with the path of its field. None
// means that Kubernetes would accept p for creation.
func Pod(p *v1.Pod) field.ErrorList {
	var errs field.ErrorList
	if p.Name == "" {
		errs = append(errs, field.Required(field.NewPath("metadata", "name"), "a pod needs a name"))
	}
	return errs
}
