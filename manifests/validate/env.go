package validate

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// env checks names as Kubernetes did until 1.33: letters, digits, '_', '-' and
// '.', no digit first. Later releases take all printable characters but '=',
// which no shell can read: here such a name is taken for a slip.
func env(list []v1.EnvVar, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range list {
		at := path.Index(i)
		errs = append(errs, checked(at.Child("name"), list[i].Name, envName)...)
		errs = append(errs, valueFrom(&list[i], at.Child("valueFrom"))...)
	}
	return errs
}

// envName has one message for a name however it is wrong.
func envName(name string) []string {
	if len(validation.IsEnvVarName(name)) == 0 {
		return nil
	}
	return []string{"must be letters, digits, '_', '-' and '.' without a digit first, and not begin with '..'"}
}

func valueFrom(variable *v1.EnvVar, path *field.Path) field.ErrorList {
	from := variable.ValueFrom
	if from == nil {
		return nil
	}
	var errs field.ErrorList
	sources := 0
	if ref := from.FieldRef; ref != nil {
		sources++
		errs = append(errs, fieldRef(ref, envFields, path.Child("fieldRef"))...)
	}
	if ref := from.ResourceFieldRef; ref != nil {
		sources++
		errs = append(errs, resourceFieldRef(ref, false, path.Child("resourceFieldRef"))...)
	}
	if ref := from.ConfigMapKeyRef; ref != nil {
		sources++
		errs = append(errs, keyRef(ref.Name, ref.Key, path.Child("configMapKeyRef"))...)
	}
	if ref := from.SecretKeyRef; ref != nil {
		sources++
		errs = append(errs, keyRef(ref.Name, ref.Key, path.Child("secretKeyRef"))...)
	}
	if ref := from.FileKeyRef; ref != nil {
		sources++
		errs = append(errs, fileKeyRef(ref, path.Child("fileKeyRef"))...)
	}
	switch {
	case sources == 0:
		errs = append(errs, field.Invalid(path, "",
			"must have one of fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef and fileKeyRef"))
	case variable.Value != "":
		errs = append(errs, field.Invalid(path, "", "must not be set together with value"))
	case sources > 1:
		errs = append(errs, field.Invalid(path, "", "must have one source only"))
	}
	return errs
}

func keyRef(name, key string, path *field.Path) field.ErrorList {
	return slices.Concat(
		malformed(path.Child("name"), name, objectName(name)),
		checked(path.Child("key"), key, validation.IsConfigMapKey),
	)
}

func fileKeyRef(ref *v1.FileKeySelector, path *field.Path) field.ErrorList {
	return slices.Concat(
		checked(path.Child("key"), ref.Key, validation.IsRelaxedEnvVarName),
		checked(path.Child("volumeName"), ref.VolumeName, validation.IsDNS1123Label),
		required(path.Child("path"), ref.Path),
		noClimbing(path.Child("path"), ref.Path),
	)
}

// fileKeyVolumes checks that variables from files come from an emptyDir.
func fileKeyVolumes(s *v1.PodSpec, path *field.Path) field.ErrorList {
	emptyDir := map[string]bool{}
	for i := range s.Volumes {
		emptyDir[s.Volumes[i].Name] = s.Volumes[i].EmptyDir != nil
	}
	var errs field.ErrorList
	for at, c := range everyContainer(s, path) {
		for i := range c.Env {
			if c.Env[i].ValueFrom == nil || c.Env[i].ValueFrom.FileKeyRef == nil {
				continue
			}
			name := c.Env[i].ValueFrom.FileKeyRef.VolumeName
			namePath := at.Child("env").Index(i).Child("valueFrom", "fileKeyRef", "volumeName")
			if is, known := emptyDir[name]; !known {
				errs = append(errs, field.NotFound(namePath, name))
			} else if !is {
				errs = append(errs, field.Invalid(namePath, name, "must be a volume of type emptyDir"))
			}
		}
	}
	return errs
}

func envFrom(list []v1.EnvFromSource, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, from := range list {
		at := path.Index(i)
		errs = append(errs, optional(at.Child("prefix"), from.Prefix, validation.IsRelaxedEnvVarName)...)
		if ref := from.ConfigMapRef; ref != nil {
			errs = append(errs, checked(at.Child("configMapRef", "name"), ref.Name, prefixedObjectName)...)
		}
		if ref := from.SecretRef; ref != nil {
			errs = append(errs, checked(at.Child("secretRef", "name"), ref.Name, prefixedObjectName)...)
		}
		switch {
		case from.ConfigMapRef == nil && from.SecretRef == nil:
			errs = append(errs, field.Invalid(at, "", "must have configMapRef or secretRef"))
		case from.ConfigMapRef != nil && from.SecretRef != nil:
			errs = append(errs, field.Invalid(at, "", "must have one of configMapRef and secretRef only"))
		}
	}
	return errs
}

// The fields of a pod that it may read about itself. Labels and annotations are
// only whole in volumes; variables take one of them by its key.
var (
	envFields = []string{
		"metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
		"status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
	}
	volumeFields = []string{
		"metadata.name", "metadata.namespace", "metadata.labels", "metadata.annotations", "metadata.uid",
	}
	// readableFields exist for either; a path that is none of these is no field
	// at all, which is another kind of error.
	readableFields = append([]string{
		"metadata.labels", "metadata.annotations", "spec.restartPolicy", "spec.schedulerName", "status.phase",
		"spec.host", // the name of spec.nodeName before v1
	}, envFields...)
)

func fieldRef(ref *v1.ObjectFieldSelector, allowed []string, path *field.Path) field.ErrorList {
	fieldPath := path.Child("fieldPath")
	switch {
	case ref.APIVersion == "":
		return one(field.Required(path.Child("apiVersion"), "must be set"))
	case ref.FieldPath == "":
		return one(field.Required(fieldPath, "must be set"))
	case ref.APIVersion != "v1":
		return one(field.Invalid(fieldPath, ref.FieldPath, "must be of apiVersion v1, not "+ref.APIVersion))
	}
	if parent, key, ok := subscript(ref.FieldPath); ok {
		switch parent {
		case "metadata.annotations":
			return malformed(path, key, validation.IsQualifiedName(strings.ToLower(key)))
		case "metadata.labels":
			return malformed(path, key, validation.IsQualifiedName(key))
		}
		return one(field.Invalid(fieldPath, ref.FieldPath, "only labels and annotations are taken by key"))
	}
	if !slices.Contains(readableFields, ref.FieldPath) {
		return one(field.Invalid(fieldPath, ref.FieldPath, "is not a field that a pod can read"))
	}
	name := ref.FieldPath
	if name == "spec.host" {
		name = "spec.nodeName"
	}
	return choice(fieldPath, name, allowed...)
}

// subscript splits metadata.labels['key'] into what is before the bracket and
// the key.
func subscript(path string) (parent, key string, ok bool) {
	inner, ok := strings.CutSuffix(path, "']")
	if !ok {
		return "", "", false
	}
	parent, key, ok = strings.Cut(inner, "['")
	return parent, key, ok && parent != ""
}

// containerFields are the resources of a container that it may read, besides
// those of huge pages.
var containerFields = []string{
	"limits.cpu", "limits.memory", "limits.ephemeral-storage",
	"requests.cpu", "requests.memory", "requests.ephemeral-storage",
}

// resourceFieldRef checks a reference of a variable, which is to the container
// itself unless it names one; that of a file (inFile) has to name one.
func resourceFieldRef(ref *v1.ResourceFieldSelector, inFile bool, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch {
	case inFile && ref.ContainerName == "":
		errs = one(field.Required(path.Child("containerName"), "must be set"))
	case ref.Resource == "":
		errs = one(field.Required(path.Child("resource"), "must be set"))
	case !hugePagesField(ref.Resource):
		errs = choice(path.Child("resource"), ref.Resource, containerFields...)
	}
	return append(errs, divisor(ref.Resource, ref.Divisor, path.Child("divisor"))...)
}

func hugePagesField(name string) bool {
	return strings.HasPrefix(name, "limits.hugepages-") || strings.HasPrefix(name, "requests.hugepages-")
}

var (
	cpuDivisors  = []string{"1m", "1"}
	byteDivisors = []string{"1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"}
)

func divisor(name string, value resource.Quantity, path *field.Path) field.ErrorList {
	if value.IsZero() {
		return nil
	}
	divisors := byteDivisors
	switch {
	case name == "limits.cpu" || name == "requests.cpu":
		divisors = cpuDivisors
	case !slices.Contains(containerFields, name) && !hugePagesField(name):
		return nil // an unknown resource was reported
	}
	if slices.Contains(divisors, value.String()) {
		return nil
	}
	return one(field.Invalid(path, value.String(), "must be one of "+strings.Join(divisors, ", ")))
}
