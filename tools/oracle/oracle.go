package oracle

import (
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
	// Defaulted is the pod with its defaults and without status, as JSON.
	Defaulted string
}

// Ours judges p with this project's code. p is not changed.
func Ours(p *v1.Pod) (Judgement, error) {
	p = p.DeepCopy()
	defaults.Pod(p)
	object, err := withoutStatus(p)
	return Judgement{Errors: validate.Pod(p), Defaulted: object}, err
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
	object, err := withoutStatus(&back)
	return Judgement{Errors: errs, Defaulted: object}, err
}

func withoutStatus(p *v1.Pod) (string, error) {
	bare := *p
	bare.TypeMeta = metav1.TypeMeta{} // not in the internal version
	bare.Status = v1.PodStatus{}
	text, err := json.MarshalIndent(&bare, "", " ")
	if err != nil {
		return "", fmt.Errorf("encode the defaulted pod: %w", err)
	}
	return string(text), nil
}

// Compare returns how the judgements of p differ beyond what is meant, or "".
func Compare(p *v1.Pod) (string, error) {
	ours, err := Ours(p)
	if err != nil {
		return "", err
	}
	theirs, err := Theirs(p)
	if err != nil {
		return "", err
	}
	if ours.Defaulted != theirs.Defaulted {
		return "defaulted object (-theirs +ours):\n" + cmp.Diff(theirs.Defaulted, ours.Defaulted), nil
	}
	want := applied(noIndex, applied(misspelt, without(quotedPort, theirs.Errors)))
	got := applied(noIndex, without(strictEnvName, ours.Errors))
	if diff := cmp.Diff(kinds(want), kinds(got)); diff != "" {
		return "errors (-theirs +ours):\n" + diff + detail("theirs", theirs.Errors) + detail("ours", ours.Errors), nil
	}
	return "", nil
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
