package validate

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// one is a list of one error.
func one(err *field.Error) field.ErrorList { return field.ErrorList{err} }

// malformed makes an error of each message that a syntax check has about value.
func malformed(path *field.Path, value any, messages []string) field.ErrorList {
	var errs field.ErrorList
	for _, message := range messages {
		errs = append(errs, field.Invalid(path, value, message))
	}
	return errs
}

// required reports an empty value.
func required[T ~string](path *field.Path, value T) field.ErrorList {
	if value == "" {
		return one(field.Required(path, "must not be empty"))
	}
	return nil
}

// syntax is a check of apimachinery's kind: nil, or what is wrong with value.
type syntax func(value string) []string

// checked reports a value that is empty, or does not pass check.
func checked(path *field.Path, value string, check syntax) field.ErrorList {
	if value == "" {
		return required(path, value)
	}
	return malformed(path, value, check(value))
}

// optional reports a value that is set and does not pass check.
func optional(path *field.Path, value string, check syntax) field.ErrorList {
	if value == "" {
		return nil
	}
	return malformed(path, value, check(value))
}

// objectName is the syntax of most objects' names.
func objectName(value string) []string { return validation.NameIsDNSSubdomain(value, false) }

// prefixedObjectName is the same, except that it may end in a dash.
func prefixedObjectName(value string) []string { return validation.NameIsDNSSubdomain(value, true) }

// namespaceName is the syntax of the name of a namespace.
func namespaceName(value string) []string { return validation.ValidateNamespaceName(value, false) }

// choice reports a value that is none of allowed.
func choice[T ~string](path *field.Path, value T, allowed ...T) field.ErrorList {
	if slices.Contains(allowed, value) {
		return nil
	}
	return one(field.NotSupported(path, value, allowed))
}

// requiredChoice reports a value that is empty or none of allowed.
func requiredChoice[T ~string](path *field.Path, value T, allowed ...T) field.ErrorList {
	if value == "" {
		return required(path, value)
	}
	return choice(path, value, allowed...)
}

// optionalChoice reports a value that is set and none of allowed.
func optionalChoice[T ~string](path *field.Path, value *T, allowed ...T) field.ErrorList {
	if value == nil {
		return nil
	}
	return choice(path, *value, allowed...)
}

// forbiddenIf reports a field that is set and may not be.
func forbiddenIf(set bool, path *field.Path, why string) field.ErrorList {
	if !set {
		return nil
	}
	return one(field.Forbidden(path, why))
}

// userID reports a numeric user that is set and out of range.
func userID(path *field.Path, id *int64) field.ErrorList {
	if id == nil {
		return nil
	}
	return malformed(path, *id, utilvalidation.IsValidUserID(*id))
}

// groupID reports a numeric group that is set and out of range.
func groupID(path *field.Path, id *int64) field.ErrorList {
	if id == nil {
		return nil
	}
	return malformed(path, *id, utilvalidation.IsValidGroupID(*id))
}

// fileMode reports permission bits that are set and are not between 0 and most.
func fileMode(path *field.Path, mode *int32, most int32) field.ErrorList {
	if mode == nil || 0 <= *mode && *mode <= most {
		return nil
	}
	if most == permissions {
		return one(field.Invalid(path, *mode, "must be between 0 and 0777 (octal; in JSON 511)"))
	}
	return one(field.Invalid(path, *mode, "must be between 0 and 01777 (octal; in JSON 1023)"))
}

// permissions are all permission bits, sticky is one more.
const (
	permissions = 0o777
	sticky      = 0o1777
)

// relativePath reports a path that is absolute or climbs up.
func relativePath(path *field.Path, value string) field.ErrorList {
	var errs field.ErrorList
	if strings.HasPrefix(value, "/") {
		errs = append(errs, field.Invalid(path, value, "must be relative, without a leading '/'"))
	}
	return append(errs, noClimbing(path, value)...)
}

// noClimbing reports a path with an element "..".
func noClimbing(path *field.Path, value string) field.ErrorList {
	if climbs(value) {
		return one(field.Invalid(path, value, "must not have '..' as an element"))
	}
	return nil
}

func climbs(path string) bool { return slices.Contains(strings.Split(path, "/"), "..") }

// fileInVolume reports a path that cannot be that of a file in a volume which is
// written by the node. Names that begin with ".." are what the node itself uses
// to swap such a volume's content at once.
func fileInVolume(path *field.Path, value string) field.ErrorList {
	errs := relativePath(path, value)
	if strings.HasPrefix(value, "..") && !strings.HasPrefix(value, "../") {
		errs = append(errs, field.Invalid(path, value, "must not begin with '..'"))
	}
	return errs
}
