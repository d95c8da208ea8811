package validate

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The kinds of volume that the node writes as files.

func secret(s *v1.SecretVolumeSource, path *field.Path) field.ErrorList {
	return slices.Concat(
		required(path.Child("secretName"), s.SecretName),
		fileMode(path.Child("defaultMode"), s.DefaultMode, permissions),
		userID(path.Child("defaultUser"), s.DefaultUser),
		keysToPaths(s.Items, path.Child("items")),
	)
}

func configMap(c *v1.ConfigMapVolumeSource, path *field.Path) field.ErrorList {
	return slices.Concat(
		required(path.Child("name"), c.Name),
		fileMode(path.Child("defaultMode"), c.DefaultMode, permissions),
		userID(path.Child("defaultUser"), c.DefaultUser),
		keysToPaths(c.Items, path.Child("items")),
	)
}

func keysToPaths(items []v1.KeyToPath, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, item := range items {
		at := path.Index(i)
		errs = slices.Concat(errs,
			required(at.Child("key"), item.Key),
			required(at.Child("path"), item.Path),
			fileInVolume(at.Child("path"), item.Path),
			fileMode(at.Child("mode"), item.Mode, permissions),
			userID(at.Child("user"), item.User),
		)
	}
	return errs
}

func downwardAPI(d *v1.DownwardAPIVolumeSource, path *field.Path) field.ErrorList {
	return slices.Concat(
		fileMode(path.Child("defaultMode"), d.DefaultMode, permissions),
		userID(path.Child("defaultUser"), d.DefaultUser),
		downwardFiles(d.Items, path.Child("items")),
	)
}

func downwardFiles(items []v1.DownwardAPIVolumeFile, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range items {
		item, at := &items[i], path.Index(i)
		errs = slices.Concat(errs,
			required(at.Child("path"), item.Path),
			fileInVolume(at.Child("path"), item.Path),
			downwardContent(item, at),
			fileMode(at.Child("mode"), item.Mode, permissions),
			userID(at.Child("user"), item.User),
		)
	}
	return errs
}

func downwardContent(item *v1.DownwardAPIVolumeFile, path *field.Path) field.ErrorList {
	switch {
	case item.FieldRef != nil:
		errs := fieldRef(item.FieldRef, volumeFields, path.Child("fieldRef"))
		if item.ResourceFieldRef != nil {
			errs = append(errs, field.Invalid(path, item.Path, "must have one of fieldRef and resourceFieldRef only"))
		}
		return errs
	case item.ResourceFieldRef != nil:
		return resourceFieldRef(item.ResourceFieldRef, true, path.Child("resourceFieldRef"))
	}
	return one(field.Required(path, "must have fieldRef or resourceFieldRef"))
}
