package validate

import (
	"encoding/json"
	"slices"

	v1 "k8s.io/api/core/v1"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// WholeObject is the field of an error that is about the object as a whole.
const WholeObject = "[]"

// ConfigMap returns every rule that c breaks, as Pod does. The object has its
// namespace set; it is not changed.
func ConfigMap(c *v1.ConfigMap) field.ErrorList {
	errs := anyMetadata(&c.ObjectMeta)
	size := 0
	for key, value := range c.Data {
		path := field.NewPath("data").Key(key)
		errs = append(errs, malformed(path, key, utilvalidation.IsConfigMapKey(key))...)
		if _, twice := c.BinaryData[key]; twice {
			errs = append(errs, field.Invalid(path, key, "must not stand in binaryData too"))
		}
		size += len(value)
	}
	for key, value := range c.BinaryData {
		errs = append(errs, malformed(field.NewPath("binaryData").Key(key), key, utilvalidation.IsConfigMapKey(key))...)
		size += len(value)
	}
	return sorted(append(errs, tooLarge(field.NewPath(""), size)...))
}

// Secret returns every rule that s breaks, as Pod does. The object has its
// defaults and its namespace set; it is not changed. The errors hold no values of
// data.
func Secret(s *v1.Secret) field.ErrorList {
	data := field.NewPath("data")
	errs := anyMetadata(&s.ObjectMeta)
	size := 0
	for key, value := range s.Data {
		errs = append(errs, malformed(data.Key(key), key, utilvalidation.IsConfigMapKey(key))...)
		size += len(value)
	}
	errs = append(errs, tooLarge(data, size)...)
	return sorted(append(errs, secretType(s, data)...))
}

func tooLarge(path *field.Path, size int) field.ErrorList {
	if size <= v1.MaxSecretSize {
		return nil
	}
	return one(field.TooLong(path, "", v1.MaxSecretSize))
}

// secretType checks that the keys are there which readers of the type expect.
func secretType(s *v1.Secret, data *field.Path) field.ErrorList {
	needed := func(keys ...string) (errs field.ErrorList) {
		for _, key := range keys {
			if _, has := s.Data[key]; !has {
				errs = append(errs, field.Required(data.Key(key), "must be there in a secret of type "+string(s.Type)))
			}
		}
		return errs
	}
	switch s.Type {
	case v1.SecretTypeServiceAccountToken:
		return required(field.NewPath("metadata", "annotations").Key(v1.ServiceAccountNameKey), s.Annotations[v1.ServiceAccountNameKey])
	case v1.SecretTypeDockercfg:
		return append(needed(v1.DockerConfigKey), mapping(s, data, v1.DockerConfigKey)...)
	case v1.SecretTypeDockerConfigJson:
		return append(needed(v1.DockerConfigJsonKey), mapping(s, data, v1.DockerConfigJsonKey)...)
	case v1.SecretTypeBasicAuth:
		if errs := needed(v1.BasicAuthUsernameKey, v1.BasicAuthPasswordKey); len(errs) == 2 {
			return errs // one of them is enough
		}
	case v1.SecretTypeSSHAuth:
		return required(data.Key(v1.SSHAuthPrivateKey), string(s.Data[v1.SSHAuthPrivateKey]))
	case v1.SecretTypeTLS:
		return needed(v1.TLSCertKey, v1.TLSPrivateKeyKey)
	}
	return nil
}

// mapping reports a value that is there and is no JSON object. What the reader of
// JSON says is not passed on: it quotes.
func mapping(s *v1.Secret, data *field.Path, key string) field.ErrorList {
	value, has := s.Data[key]
	if !has || json.Unmarshal(value, new(map[string]any)) == nil {
		return nil
	}
	return one(field.Invalid(data.Key(key), "", "must be a JSON object"))
}

// PersistentVolumeClaim returns every rule that c breaks, as Pod does. The object
// has its defaults and its namespace set; it is not changed.
func PersistentVolumeClaim(c *v1.PersistentVolumeClaim) field.ErrorList {
	return sorted(slices.Concat(anyMetadata(&c.ObjectMeta), claimSpec(&c.Spec, field.NewPath("spec"))))
}
