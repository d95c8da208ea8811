package validate

import (
	"reflect"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// claimTemplate checks the claim that is made for an ephemeral volume. Its name
// and all else that identifies it follow from the pod, so labels and annotations
// are all the metadata that it has.
func claimTemplate(t *v1.PersistentVolumeClaimTemplate, path *field.Path) field.ErrorList {
	meta := path.Child("metadata")
	return slices.Concat(
		validation.ValidateAnnotations(t.Annotations, meta.Child("annotations")),
		metavalidation.ValidateLabels(t.Labels, meta.Child("labels")),
		onlyFields(t.ObjectMeta, []string{"labels", "annotations"}, "must not be set: it follows from the pod", meta),
		claimSpec(&t.Spec, path.Child("spec")),
	)
}

func claimSpec(s *v1.PersistentVolumeClaimSpec, path *field.Path) field.ErrorList {
	errs := slices.Concat(
		accessModes(s.AccessModes, path.Child("accessModes")),
		claimSize(s.Resources.Requests, path.Child("resources").Key(string(v1.ResourceStorage))),
		optionalChoice(path.Child("volumeMode"), s.VolumeMode, v1.PersistentVolumeBlock, v1.PersistentVolumeFilesystem),
		dataSource(s, path),
	)
	if s.Selector != nil {
		errs = append(errs, metavalidation.ValidateLabelSelector(s.Selector,
			metavalidation.LabelSelectorValidationOptions{}, path.Child("selector"))...)
	}
	if s.StorageClassName != nil {
		errs = append(errs, optional(path.Child("storageClassName"), *s.StorageClassName, objectName)...)
	}
	if s.VolumeAttributesClassName != nil {
		errs = append(errs, optional(path.Child("volumeAttributesClassName"), *s.VolumeAttributesClassName, objectName)...)
	}
	return errs
}

func accessModes(modes []v1.PersistentVolumeAccessMode, path *field.Path) field.ErrorList {
	if len(modes) == 0 {
		return one(field.Required(path, "must have one mode at least"))
	}
	shared := []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce, v1.ReadOnlyMany, v1.ReadWriteMany}
	var errs field.ErrorList
	alone, others := false, false
	for _, mode := range modes {
		errs = append(errs, choice(path, mode, append(shared, v1.ReadWriteOncePod)...)...)
		alone = alone || mode == v1.ReadWriteOncePod
		others = others || slices.Contains(shared, mode)
	}
	return append(errs, forbiddenIf(alone && others, path, "must not have other modes beside ReadWriteOncePod")...)
}

func claimSize(requests v1.ResourceList, path *field.Path) field.ErrorList {
	size, has := requests[v1.ResourceStorage]
	switch {
	case !has:
		return one(field.Required(path, "must be set in requests"))
	case size.Sign() <= 0:
		return one(field.Invalid(path, size.String(), "must be above 0"))
	}
	return nil
}

// dataSource checks what the volume is filled from, which an old and a new field
// can name.
func dataSource(s *v1.PersistentVolumeClaimSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if ref := s.DataSource; ref != nil {
		errs = append(errs, dataReference(ref.APIGroup, ref.Kind, ref.Name, path.Child("dataSource"))...)
	}
	ref := s.DataSourceRef
	if ref == nil {
		return errs
	}
	errs = append(errs, dataReference(ref.APIGroup, ref.Kind, ref.Name, path.Child("dataSourceRef"))...)
	elsewhere := ref.Namespace != nil && *ref.Namespace != ""
	if elsewhere {
		errs = append(errs, malformed(path.Child("dataSourceRef", "namespace"), *ref.Namespace, namespaceName(*ref.Namespace))...)
	}
	if s.DataSource == nil {
		return errs
	}
	same := reflect.DeepEqual(*s.DataSource, v1.TypedLocalObjectReference{
		APIGroup: ref.APIGroup, Kind: ref.Kind, Name: ref.Name,
	})
	switch {
	case elsewhere:
		errs = append(errs, field.Invalid(path, "dataSource", "must not be set where dataSourceRef has a namespace"))
	case !same:
		errs = append(errs, field.Invalid(path, "dataSource", "must be the same as dataSourceRef"))
	}
	return errs
}

func dataReference(group *string, kind, name string, path *field.Path) field.ErrorList {
	errs := slices.Concat(
		required(path.Child("name"), name),
		required(path.Child("kind"), kind),
	)
	if group != nil && *group != "" {
		return append(errs, malformed(path.Child("apiGroup"), *group, utilvalidation.IsDNS1123Subdomain(*group))...)
	}
	if kind != "PersistentVolumeClaim" {
		errs = append(errs, field.Invalid(path, kind, "must be PersistentVolumeClaim where there is no apiGroup"))
	}
	return errs
}
