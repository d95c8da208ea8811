package oracle

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"

	"github.com/google/go-cmp/cmp"
	"github.com/podkeeper/podkeeper/manifests/defaults"
	"github.com/podkeeper/podkeeper/manifests/validate"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/apis/core"
	corev1 "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/kubernetes/pkg/apis/core/validation"
)

// CompareObject lets both sides judge an object that stands beside pods: a
// *v1.ConfigMap, *v1.Secret or *v1.PersistentVolumeClaim. It is not changed.
//
// What an API server does to the data sources of a claim before it validates them
// is left out: any of them is refused here.
func CompareObject(object metav1.Object) (Comparison, error) {
	var ours, theirs field.ErrorList
	var ourObject, theirObject any
	var err error
	switch o := object.(type) {
	case *v1.ConfigMap:
		mine := o.DeepCopy()
		mine.TypeMeta = metav1.TypeMeta{} // the internal version has no kind
		ours, ourObject = validate.ConfigMap(mine), mine
		theirs, theirObject, err = configMapUpstream(o.DeepCopy())
	case *v1.Secret:
		mine := o.DeepCopy()
		mine.TypeMeta = metav1.TypeMeta{}
		defaults.Secret(mine)
		ours, ourObject = validate.Secret(mine), mine
		theirs, theirObject, err = secretUpstream(o.DeepCopy())
	case *v1.PersistentVolumeClaim:
		mine := o.DeepCopy()
		mine.TypeMeta, mine.Status = metav1.TypeMeta{}, v1.PersistentVolumeClaimStatus{}
		defaults.PersistentVolumeClaim(mine)
		ours, ourObject = validate.PersistentVolumeClaim(mine), mine
		theirs, theirObject, err = claimUpstream(o.DeepCopy())
	default:
		return Comparison{}, fmt.Errorf("%T is nothing that stands beside pods", object)
	}
	if err != nil {
		return Comparison{}, fmt.Errorf("convert: %w", err)
	}
	result := Comparison{Theirs: theirs}
	first, firstErr := json.Marshal(theirObject)
	second, secondErr := json.Marshal(ourObject)
	if firstErr != nil || secondErr != nil {
		return Comparison{}, fmt.Errorf("encode a defaulted object: %w, %w", firstErr, secondErr)
	}
	if !bytes.Equal(first, second) {
		result.Diff = "defaulted object (-theirs +ours):\n" + cmp.Diff(string(first), string(second))
	} else if diff := cmp.Diff(kinds(theirs), kinds(ours)); diff != "" {
		result.Diff = "errors (-theirs +ours):\n" + diff + detail("theirs", theirs) + detail("ours", ours)
	}
	return result, nil
}

func configMapUpstream(o *v1.ConfigMap) (field.ErrorList, *v1.ConfigMap, error) {
	corev1.SetObjectDefaults_ConfigMap(o)
	var internal core.ConfigMap
	if err := corev1.Convert_v1_ConfigMap_To_core_ConfigMap(o, &internal, nil); err != nil {
		return nil, nil, err
	}
	var back v1.ConfigMap
	err := corev1.Convert_core_ConfigMap_To_v1_ConfigMap(&internal, &back, nil)
	return validation.ValidateConfigMap(&internal), &back, err
}

func secretUpstream(o *v1.Secret) (field.ErrorList, *v1.Secret, error) {
	corev1.SetObjectDefaults_Secret(o)
	var internal core.Secret
	if err := corev1.Convert_v1_Secret_To_core_Secret(o, &internal, nil); err != nil {
		return nil, nil, err
	}
	var back v1.Secret
	err := corev1.Convert_core_Secret_To_v1_Secret(&internal, &back, nil)
	return validation.ValidateSecret(&internal), &back, err
}

func claimUpstream(o *v1.PersistentVolumeClaim) (field.ErrorList, *v1.PersistentVolumeClaim, error) {
	corev1.SetObjectDefaults_PersistentVolumeClaim(o)
	var internal core.PersistentVolumeClaim
	if err := corev1.Convert_v1_PersistentVolumeClaim_To_core_PersistentVolumeClaim(o, &internal, nil); err != nil {
		return nil, nil, err
	}
	internal.Status = core.PersistentVolumeClaimStatus{}
	var back v1.PersistentVolumeClaim
	err := corev1.Convert_core_PersistentVolumeClaim_To_v1_PersistentVolumeClaim(&internal, &back, nil)
	return validation.ValidatePersistentVolumeClaim(&internal, validation.ValidationOptionsForPersistentVolumeClaim(&internal, nil)), &back, err
}

// GenerateObject returns the object of a seed, always the same one. About half of
// them are valid.
func GenerateObject(seed uint64) metav1.Object {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 0x6f626a65637473)), density: 0.2}
	if g.chance(0.5) {
		g.wild = []float64{0.02, 0.1, 0.4}[g.IntN(3)]
	}
	var object metav1.Object
	switch g.IntN(3) {
	case 0:
		c := &v1.ConfigMap{Data: g.data(), BinaryData: bytesOf(g.data())}
		for key := range c.BinaryData {
			if !g.chance(g.wild) {
				delete(c.Data, key)
			}
		}
		object = c
	case 1:
		s := &v1.Secret{Data: bytesOf(g.data()), StringData: g.data(), Type: v1.SecretType(pick(g, secretTypes))}
		for _, key := range neededKeys(s.Type) {
			if !g.chance(0.2) {
				s.StringData[key] = pick(g, []string{`{"auths": {}}`, "{}", "{}", "text", ""})
			}
		}
		object = s
	default:
		c := &v1.PersistentVolumeClaim{}
		g.fill(reflect.ValueOf(&c.Spec).Elem(), "Spec")
		if !g.chance(g.wild) {
			c.Spec.AccessModes = []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}
			c.Spec.Resources.Requests = v1.ResourceList{v1.ResourceStorage: resource.MustParse(pick(g, quantities[1:]))}
		}
		if g.wild == 0 {
			c.Spec.Selector, c.Spec.DataSource, c.Spec.DataSourceRef, c.Spec.StorageClassName = nil, nil, nil, new("local")
			c.Spec.VolumeMode, c.Spec.VolumeAttributesClassName = nil, nil
		}
		object = c
	}
	object.SetName(g.key(goodNames))
	object.SetNamespace("default")
	if g.chance(0.3) {
		object.SetLabels(map[string]string{g.key(goodKeys): "web"})
		object.SetAnnotations(map[string]string{g.key(goodKeys): pick(g, goodLabelValues)})
	}
	return object
}

var secretTypes = []string{
	"", "Opaque", "example.com/mine", "bootstrap.kubernetes.io/token", string(v1.SecretTypeServiceAccountToken), string(v1.SecretTypeDockercfg),
	string(v1.SecretTypeDockerConfigJson), string(v1.SecretTypeBasicAuth), string(v1.SecretTypeSSHAuth), string(v1.SecretTypeTLS),
}

func neededKeys(t v1.SecretType) []string {
	switch t {
	case v1.SecretTypeDockercfg:
		return []string{v1.DockerConfigKey}
	case v1.SecretTypeDockerConfigJson:
		return []string{v1.DockerConfigJsonKey}
	case v1.SecretTypeBasicAuth:
		return []string{v1.BasicAuthUsernameKey, v1.BasicAuthPasswordKey}
	case v1.SecretTypeSSHAuth:
		return []string{v1.SSHAuthPrivateKey}
	case v1.SecretTypeTLS:
		return []string{v1.TLSCertKey, v1.TLSPrivateKeyKey}
	}
	return nil
}

func (g *generator) key(good []string) string {
	if g.chance(g.wild) {
		return pick(g, strange[pick(g, looksOfAll)])
	}
	return pick(g, good)
}

// data is never nil, and now and then of the size that is the limit.
func (g *generator) data() map[string]string {
	all := map[string]string{}
	for range g.IntN(4) {
		all[g.key([]string{"a", "b.c", "d-e_f", "G", "..x", ".x"})] = pick(g, goodLabelValues)
	}
	if g.chance(0.02) {
		all["large"] = strings.Repeat("x", v1.MaxSecretSize-2+g.IntN(4))
	}
	return all
}

func bytesOf(data map[string]string) map[string][]byte {
	all := map[string][]byte{}
	for key, value := range data {
		all[key] = []byte(value)
	}
	return all
}
