package defaults

import v1 "k8s.io/api/core/v1"

// Secret fills in the absent fields of s, in place, and takes stringData into
// data, where it wins. It is idempotent.
func Secret(s *v1.Secret) {
	set(&s.Type, v1.SecretTypeOpaque)
	if len(s.StringData) > 0 && s.Data == nil {
		s.Data = make(map[string][]byte, len(s.StringData))
	}
	for key, value := range s.StringData {
		s.Data[key] = []byte(value)
	}
	s.StringData = nil
}

// PersistentVolumeClaim fills in the absent fields of c's spec, in place. It is
// idempotent.
func PersistentVolumeClaim(c *v1.PersistentVolumeClaim) { setClaim(&c.Spec) }

func setClaim(spec *v1.PersistentVolumeClaimSpec) {
	point(&spec.VolumeMode, v1.PersistentVolumeFilesystem)
	roundUp(spec.Resources.Limits)
	roundUp(spec.Resources.Requests)
}
