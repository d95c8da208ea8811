package reconcile_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podkeeper/podkeeper/node/volume"
	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/reconcile"
	"github.com/podkeeper/podkeeper/runtime"
)

// What the engine is asked for of a mount.
func TestMounts(t *testing.T) {
	both, toContainer, none := v1.MountPropagationBidirectional, v1.MountPropagationHostToContainer, v1.MountPropagationNone
	enabled, possible := v1.RecursiveReadOnlyEnabled, v1.RecursiveReadOnlyIfPossible
	empty := v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}
	claim := func(readOnly bool) v1.VolumeSource {
		return v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ReadOnly: readOnly}}
	}
	for name, c := range map[string]struct {
		volume v1.VolumeSource
		mount  v1.VolumeMount
		want   runtime.Mount
	}{
		"to write":                     {empty, v1.VolumeMount{}, runtime.Mount{}},
		"to read":                      {empty, v1.VolumeMount{ReadOnly: true}, runtime.Mount{ReadOnly: true}},
		"a ConfigMap is only read":     {v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{}}, v1.VolumeMount{}, runtime.Mount{ReadOnly: true}},
		"a Secret is only read":        {v1.VolumeSource{Secret: &v1.SecretVolumeSource{}}, v1.VolumeMount{}, runtime.Mount{ReadOnly: true}},
		"a projection is only read":    {v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{}}, v1.VolumeMount{}, runtime.Mount{ReadOnly: true}},
		"the pod itself is only read":  {v1.VolumeSource{DownwardAPI: &v1.DownwardAPIVolumeSource{}}, v1.VolumeMount{}, runtime.Mount{ReadOnly: true}},
		"a claim":                      {claim(false), v1.VolumeMount{}, runtime.Mount{}},
		"a claim that the pod reads":   {claim(true), v1.VolumeMount{}, runtime.Mount{ReadOnly: true}},
		"an export that the pod reads": {v1.VolumeSource{NFS: &v1.NFSVolumeSource{ReadOnly: true}}, v1.VolumeMount{}, runtime.Mount{ReadOnly: true}},
		"mounts that go both ways":     {empty, v1.VolumeMount{MountPropagation: &both}, runtime.Mount{Propagation: both}},
		"mounts that come in":          {empty, v1.VolumeMount{MountPropagation: &toContainer}, runtime.Mount{Propagation: toContainer}},
		"mounts that stay where":       {empty, v1.VolumeMount{MountPropagation: &none}, runtime.Mount{}},
		"to read all the way down":     {empty, v1.VolumeMount{ReadOnly: true, RecursiveReadOnly: &enabled}, runtime.Mount{ReadOnly: true, Recursive: enabled}},
		"to read as deep as it can be": {empty, v1.VolumeMount{ReadOnly: true, RecursiveReadOnly: &possible}, runtime.Mount{ReadOnly: true, Recursive: possible}},
	} {
		c.mount.MountPath, c.want.ContainerPath = "/m", "/m"
		if diff := cmp.Diff(c.want, reconcile.MountOf(v1.Volume{Name: "v", VolumeSource: c.volume}, c.mount)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestSubPathExpr(t *testing.T) {
	env := map[string]string{"POD": "web", "UP": "a/../..", "ABS": "/etc", "SECRET": "/S3CR3T", "EMPTY": ""}
	lookup := func(name string) (string, bool) { v, ok := env[name]; return v, ok }
	for expr, c := range map[string]struct{ want, err string }{
		"logs/$(POD)": {"logs/web", ""},
		"$$(POD)":     {"$(POD)", ""},
		"$(EMPTY)":    {"", ""},
		"a..b/c..":    {"a..b/c..", ""},
		"$(NONE)/x":   {"", `subPathExpr $(NONE)/x: missing value for "NONE"`},
		"$(ABS)":      {"", "subPathExpr $(ABS): must not be an absolute path"},
		"$(SECRET)":   {"", "subPathExpr $(SECRET): must not be an absolute path"},
		"x/$(UP)":     {"", "subPathExpr x/$(UP): must not contain '..'"},
	} {
		got, err := reconcile.SubPath(v1.VolumeMount{SubPathExpr: expr}, lookup)
		if got != c.want || (err != nil || c.err != "") && fmt.Sprint(err) != c.err {
			t.Errorf("%s: %q, %v, want %q, %s", expr, got, err, c.want, c.err)
		}
	}
	if got, err := reconcile.SubPath(v1.VolumeMount{SubPath: "$(POD)"}, lookup); got != "$(POD)" || err != nil {
		t.Errorf("subPath: %q, %v", got, err)
	}
}

// What the host is told of a pod, beside the volume.
func TestVolumeRequest(t *testing.T) {
	group, policy, both := int64(2000), v1.FSGroupChangeOnRootMismatch, v1.MountPropagationBidirectional
	always := v1.ContainerRestartPolicyAlways
	container := func(memory string) v1.Container {
		c := v1.Container{}
		if memory != "" {
			c.Resources.Limits = v1.ResourceList{v1.ResourceMemory: resource.MustParse(memory)}
		}
		return c
	}
	side := container("8Mi")
	side.RestartPolicy = &always
	huge := container("32Mi")
	huge.Resources.Limits["hugepages-2Mi"] = resource.MustParse("4Mi")
	huge.Resources.Requests = v1.ResourceList{"hugepages-2Mi": resource.MustParse("4Mi")} // as defaulted
	mounting := container("")
	mounting.VolumeMounts = []v1.VolumeMount{{Name: "v", MountPropagation: &both}}
	for name, c := range map[string]struct {
		spec v1.PodSpec
		want volume.Request
	}{
		"nothing":                           {v1.PodSpec{Containers: []v1.Container{container("")}}, volume.Request{}},
		"one without a limit":               {v1.PodSpec{Containers: []v1.Container{container("16Mi"), container("")}}, volume.Request{}},
		"limits of all":                     {v1.PodSpec{Containers: []v1.Container{container("16Mi"), container("16Mi")}}, volume.Request{MemoryLimit: 32 << 20}},
		"an init container that needs more": {v1.PodSpec{InitContainers: []v1.Container{side, container("64Mi")}, Containers: []v1.Container{container("16Mi")}}, volume.Request{MemoryLimit: 72 << 20}},
		"one that needs less":               {v1.PodSpec{InitContainers: []v1.Container{container("1Mi"), side}, Containers: []v1.Container{container("16Mi")}}, volume.Request{MemoryLimit: 24 << 20}},
		"that of the pod": {v1.PodSpec{
			Containers: []v1.Container{container("")}, Resources: &v1.ResourceRequirements{Limits: v1.ResourceList{v1.ResourceMemory: resource.MustParse("1Mi")}},
		}, volume.Request{MemoryLimit: 1 << 20}},
		"huge pages":             {v1.PodSpec{Containers: []v1.Container{huge}}, volume.Request{MemoryLimit: 32 << 20, PageSize: 2 << 20}},
		"mounts that come later": {v1.PodSpec{Containers: []v1.Container{mounting}}, volume.Request{Shared: true}},
		"a group": {v1.PodSpec{
			Containers: []v1.Container{container("")}, SecurityContext: &v1.PodSecurityContext{FSGroup: &group, FSGroupChangePolicy: &policy},
		}, volume.Request{FSGroup: &group, ChangePolicy: policy}},
	} {
		p := &v1.Pod{Spec: c.spec}
		p.Namespace = "ns"
		c.want.UID, c.want.Namespace = "u", "ns"
		c.want.Volume = v1.Volume{Name: "v", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}}
		if diff := cmp.Diff(c.want, reconcile.VolumeRequest(&pod.Pod{Object: p}, "u", c.want.Volume)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
