package oracle

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/google/go-cmp/cmp"
	"github.com/podkeeper/podkeeper/manifests/defaults"
	"github.com/podkeeper/podkeeper/manifests/validate"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	podutil "k8s.io/kubernetes/pkg/api/pod"
	"k8s.io/kubernetes/pkg/apis/core"
	corev1 "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/capabilities"
)

// Judgement is what one side says of a pod.
type Judgement struct {
	Errors field.ErrorList
	// Defaulted is the pod with its defaults, and without its status and kind.
	Defaulted *v1.Pod
}

// Ours judges p with this project's code. p is not changed.
func Ours(p *v1.Pod) Judgement {
	p = p.DeepCopy()
	defaults.Pod(p)
	return Judgement{Errors: validate.Pod(p), Defaulted: bare(p)}
}

// Theirs judges p as the API server does a pod that is created, with privileged
// containers allowed as every kubelet allows them. p is not changed.
func Theirs(p *v1.Pod) (Judgement, error) {
	capabilities.Initialize(capabilities.Capabilities{AllowPrivileged: true}) // once; later calls do nothing
	p = p.DeepCopy()
	corev1.SetObjectDefaults_Pod(p)
	var internal core.Pod
	if err := corev1.Convert_v1_Pod_To_core_Pod(p, &internal, nil); err != nil {
		return Judgement{}, fmt.Errorf("convert to the internal version: %w", err)
	}
	podutil.DefaultPodLevelResources(&internal)
	options := podutil.GetValidationOptionsFromPodSpecAndMeta(&internal.Spec, nil, &internal.ObjectMeta, nil)
	options.ResourceIsPod = true
	errs := validation.ValidatePodCreate(&internal, options)
	var back v1.Pod
	if err := corev1.Convert_core_Pod_To_v1_Pod(&internal, &back, nil); err != nil {
		return Judgement{}, fmt.Errorf("convert from the internal version: %w", err)
	}
	return Judgement{Errors: errs, Defaulted: bare(&back)}, nil
}

// bare takes off what is not compared. The internal version has no kind.
func bare(p *v1.Pod) *v1.Pod {
	p.TypeMeta, p.Status = metav1.TypeMeta{}, v1.PodStatus{}
	return p
}

// Comparison is what came out for one pod.
type Comparison struct {
	// Diff is how the judgements differ beyond what is meant, or "".
	Diff string
	// Theirs are upstream's errors.
	Theirs field.ErrorList
}

// Compare lets both sides judge p.
func Compare(p *v1.Pod) (Comparison, error) {
	ours := Ours(p)
	theirs, err := Theirs(p)
	if err != nil {
		return Comparison{}, err
	}
	result := Comparison{Theirs: theirs.Errors}
	same, err := sameJSON(theirs.Defaulted, ours.Defaulted)
	if err != nil {
		return Comparison{}, err
	}
	want := applied(noIndex, applied(misspelt, without(quotedPort, theirs.Errors)))
	got := applied(noIndex, without(strictEnvName, ours.Errors))
	if !same {
		result.Diff = "defaulted object (-theirs +ours):\n" + cmp.Diff(theirs.Defaulted, ours.Defaulted)
	} else if diff := cmp.Diff(kinds(want), kinds(got)); diff != "" {
		result.Diff = "errors (-theirs +ours):\n" + diff + detail("theirs", theirs.Errors) + detail("ours", ours.Errors)
	}
	return result, nil
}

func sameJSON(a, b *v1.Pod) (bool, error) {
	first, err := json.Marshal(a)
	if err != nil {
		return false, fmt.Errorf("encode a defaulted pod: %w", err)
	}
	second, err := json.Marshal(b)
	if err != nil {
		return false, fmt.Errorf("encode a defaulted pod: %w", err)
	}
	return bytes.Equal(first, second), nil
}

// kinds are the errors without their words, sorted.
func kinds(errs field.ErrorList) []string {
	list := []string{}
	for _, err := range errs {
		list = append(list, err.Field+": "+string(err.Type))
	}
	slices.Sort(list)
	return list
}

func detail(who string, errs field.ErrorList) string {
	text := who + ":\n"
	for _, err := range errs {
		text += "  " + err.Error() + "\n"
	}
	return text
}
