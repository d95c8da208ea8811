package reconcile

import (
	"fmt"
	"maps"
	"path"
	"slices"

	v1 "k8s.io/api/core/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/podkeeper/podkeeper/node/volume"
	"github.com/podkeeper/podkeeper/pod"
)

// payload collects the files of a volume by their paths. What comes later under
// a path wins, as in Kubernetes.
type payload struct {
	about surroundings
	files map[string]volume.File
	// mode and user are of the files that say no other.
	mode *int32
	user *int64
}

// content returns the files of a volume that shows objects or the pod itself,
// sorted by path; ok is false for the other kinds. An error names the object and
// the key that are missing, in the kubelet's words, and no value.
func (s surroundings) content(v v1.Volume) (files []volume.File, ok bool, err error) {
	p := payload{about: s, files: make(map[string]volume.File)}
	switch {
	case v.ConfigMap != nil:
		p.mode, p.user = v.ConfigMap.DefaultMode, v.ConfigMap.DefaultUser
		err = p.object(pod.ConfigMap, v.ConfigMap.Name, v.ConfigMap.Items, v.ConfigMap.Optional)
	case v.Secret != nil:
		p.mode, p.user = v.Secret.DefaultMode, v.Secret.DefaultUser
		err = p.object(pod.Secret, v.Secret.SecretName, v.Secret.Items, v.Secret.Optional)
	case v.DownwardAPI != nil:
		p.mode, p.user = v.DownwardAPI.DefaultMode, v.DownwardAPI.DefaultUser
		err = p.downward(v.DownwardAPI.Items)
	case v.Projected != nil:
		p.mode, p.user = v.Projected.DefaultMode, v.Projected.DefaultUser
		err = p.projected(v.Projected.Sources)
	default:
		return nil, false, nil
	}
	if err == nil {
		err = p.clash()
	}
	if err != nil {
		return nil, true, &volume.Error{Volume: v.Name, Message: err.Error(), Err: err}
	}
	files = make([]volume.File, 0, len(p.files))
	for _, name := range slices.Sorted(maps.Keys(p.files)) {
		files = append(files, p.files[name])
	}
	return files, true, nil
}

func (p *payload) projected(sources []v1.VolumeProjection) error {
	var errs []error
	for _, s := range sources {
		switch {
		case s.ConfigMap != nil:
			errs = append(errs, p.object(pod.ConfigMap, s.ConfigMap.Name, s.ConfigMap.Items, s.ConfigMap.Optional))
		case s.Secret != nil:
			errs = append(errs, p.object(pod.Secret, s.Secret.Name, s.Secret.Items, s.Secret.Optional))
		case s.DownwardAPI != nil:
			errs = append(errs, p.downward(s.DownwardAPI.Items))
		}
	}
	return utilerrors.NewAggregate(errs)
}

// object adds the values of an object: all of them under their keys, or those
// that are asked for.
func (p *payload) object(kind pod.ObjectKind, name string, items []v1.KeyToPath, optional *bool) error {
	object, err := p.about.objects.find(p.about.pod, kind, name, optional)
	if object == nil {
		return err
	}
	if len(items) == 0 {
		for _, data := range []map[string]pod.Value{object.Data, object.BinaryData} {
			for key, value := range data {
				p.add(key, value.Reveal(), nil, nil)
			}
		}
	}
	for _, item := range items {
		value, ok := object.Value(item.Key)
		switch {
		case ok:
			p.add(item.Path, value.Reveal(), item.Mode, item.User)
		case !isTrue(optional):
			return errMissing{fmt.Sprintf("%s %q references non-existent key: %s", resourceName(kind), name, item.Key)}
		}
	}
	return nil
}

func (p *payload) downward(items []v1.DownwardAPIVolumeFile) error {
	for _, item := range items {
		var text string
		var err error
		if item.FieldRef != nil {
			text, err = p.about.field(item.FieldRef.FieldPath)
		} else {
			text, err = p.about.resource(nil, item.ResourceFieldRef)
		}
		if err != nil {
			return err
		}
		p.add(item.Path, text, item.Mode, item.User)
	}
	return nil
}

func (p *payload) add(name, text string, mode *int32, user *int64) {
	if mode == nil {
		mode = p.mode
	}
	if user == nil {
		user = p.user
	}
	name = path.Clean(name)
	p.files[name] = volume.File{Path: name, Data: text, Mode: fileMode(mode), User: user}
}

// clash reports a path that is to be a file and the folder of another.
func (p *payload) clash() error {
	for _, name := range slices.Sorted(maps.Keys(p.files)) {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if _, ok := p.files[dir]; ok {
				return fmt.Errorf("path %q is a file, and the folder of %q", dir, name)
			}
		}
	}
	return nil
}

// missing returns why a volume cannot be had: an object that it shows, or the
// claim behind it, is not there.
func (s surroundings) missing(v v1.Volume) error {
	if claim := v.PersistentVolumeClaim; claim != nil {
		if _, err := s.objects.find(s.pod, pod.PersistentVolumeClaim, claim.ClaimName, nil); err != nil {
			return &volume.Error{Volume: v.Name, Message: err.Error(), Err: err}
		}
		return nil
	}
	_, _, err := s.content(v)
	return err
}

func sameFiles(a, b []volume.File) bool {
	return slices.EqualFunc(a, b, func(a, b volume.File) bool {
		return a.Path == b.Path && a.Mode == b.Mode && a.Data == b.Data && (a.User == b.User || a.User != nil && b.User != nil && *a.User == *b.User)
	})
}
