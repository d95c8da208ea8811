package reconcile

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podkeeper/podkeeper/pod"
)

// surroundings are what a pod may be told about itself, beyond its manifest.
type surroundings struct {
	pod  *v1.Pod
	uid  types.UID
	node Node
	// podIPs are those of its sandbox; nil while that is not known.
	podIPs  []string
	objects objects
	// file reads one of an emptyDir, which may not be there; where it is nil,
	// variables that come from files are left out.
	file func(volume, path string) (text string, found bool, err error)
}

// errConfig classes what the configuration of a container needs and does not find.
type errConfig struct{ err error }

func (e errConfig) Error() string { return e.err.Error() }
func (e errConfig) Unwrap() error { return e.err }

// environ is an environment in the order in which its names were first set.
type environ struct {
	names  []string
	values map[string]string
}

func (e *environ) set(name, value string) {
	if _, seen := e.values[name]; !seen {
		e.names = append(e.names, name)
	}
	e.values[name] = value
}

func (e *environ) lookup(name string) (string, bool) {
	value, ok := e.values[name]
	return value, ok
}

func (e *environ) list() []string {
	var list []string
	for _, name := range e.names {
		list = append(list, name+"="+e.values[name])
	}
	return list
}

// environment evaluates the variables of a container: those of envFrom first,
// then env in order. Each value of env may refer to variables before it, the
// last of one name wins and is listed once. An error never repeats a value.
func environment(c *v1.Container, s surroundings) (environ, error) {
	env := environ{values: make(map[string]string, len(c.Env))}
	for _, from := range c.EnvFrom {
		object, err := s.envObject(from)
		if err != nil {
			return env, err
		}
		if object == nil {
			continue
		}
		for _, key := range slices.Sorted(maps.Keys(object.Data)) {
			env.set(from.Prefix+key, object.Data[key].Reveal())
		}
	}
	for i := range c.Env {
		v := &c.Env[i]
		if v.ValueFrom == nil {
			env.set(v.Name, expand(v.Value, env.lookup))
			continue
		}
		value, found, err := s.valueFrom(c, v.ValueFrom)
		if err != nil {
			return env, err
		}
		if found {
			env.set(v.Name, value)
		}
	}
	for _, name := range env.names {
		if strings.ContainsRune(env.values[name], 0) {
			return env, fmt.Errorf("environment variable %s: its value has a zero byte", name)
		}
	}
	return env, nil
}

func (s surroundings) envObject(from v1.EnvFromSource) (*pod.Object, error) {
	if ref := from.ConfigMapRef; ref != nil {
		return s.objects.find(s.pod, pod.ConfigMap, ref.Name, ref.Optional)
	}
	ref := from.SecretRef
	return s.objects.find(s.pod, pod.Secret, ref.Name, ref.Optional)
}

// valueFrom returns what a variable's source says; found is false where it is
// missing and optional.
func (s surroundings) valueFrom(c *v1.Container, from *v1.EnvVarSource) (value string, found bool, err error) {
	switch {
	case from.FieldRef != nil:
		value, err = s.field(from.FieldRef.FieldPath)
		return value, true, err
	case from.ResourceFieldRef != nil:
		value, err = s.resource(c, from.ResourceFieldRef)
		return value, true, err
	case from.ConfigMapKeyRef != nil:
		ref := from.ConfigMapKeyRef
		return s.key(pod.ConfigMap, ref.Name, ref.Key, ref.Optional)
	case from.SecretKeyRef != nil:
		ref := from.SecretKeyRef
		return s.key(pod.Secret, ref.Name, ref.Key, ref.Optional)
	case s.file == nil:
		return "", false, nil
	default:
		return s.fileKey(from.FileKeyRef)
	}
}

func (s surroundings) key(kind pod.ObjectKind, name, key string, optional *bool) (string, bool, error) {
	object, err := s.objects.find(s.pod, kind, name, optional)
	if object == nil {
		return "", false, err
	}
	value, ok := object.Data[key]
	if !ok && !isTrue(optional) {
		return "", false, errMissing{fmt.Sprintf("couldn't find key %s in %s %s/%s", key, kind, s.pod.Namespace, name)}
	}
	return value.Reveal(), ok, nil
}

func (s surroundings) fileKey(ref *v1.FileKeySelector) (value string, found bool, err error) {
	text, found, err := s.file(ref.VolumeName, ref.Path)
	switch {
	case err != nil:
	case found:
		value, found, err = envFile(text, ref.Key)
	case !isTrue(ref.Optional):
		err = errMissing{"not found"}
	}
	if err == nil && !found && !isTrue(ref.Optional) {
		err = errMissing{fmt.Sprintf("environment variable key %q not found", ref.Key)}
	}
	if err != nil {
		err = fmt.Errorf("file %q of volume %q: %w", ref.Path, ref.VolumeName, err)
	}
	return value, found, err
}
