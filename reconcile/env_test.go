package reconcile_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/reconcile"
)

// objectsOf returns a ConfigMap cm and a Secret s of the namespace ns.
func objectsOf() map[pod.ObjectKey]*pod.Object {
	list := map[pod.ObjectKey]*pod.Object{}
	add := func(kind pod.ObjectKind, name string, data map[string]pod.Value) {
		key := pod.ObjectKey{Kind: kind, Namespace: "ns", Name: name}
		list[key] = &pod.Object{Key: key, Data: data}
	}
	add(pod.ConfigMap, "cm", map[string]pod.Value{
		"LEVEL": pod.PlainValue("one"), "my.key": pod.PlainValue("dot"), "ONLY1": pod.PlainValue("x"), "RAW": pod.PlainValue("$(LEVEL)"),
	})
	add(pod.Secret, "s", map[string]pod.Value{
		"LEVEL": pod.SecretValue("two"), "zero": pod.SecretValue("S3CR3T-4711\x00"),
	})
	return list
}

func configMapRef(name string) *v1.ConfigMapEnvSource {
	return &v1.ConfigMapEnvSource{LocalObjectReference: v1.LocalObjectReference{Name: name}}
}

func literal(name, value string) v1.EnvVar { return v1.EnvVar{Name: name, Value: value} }

func from(name string, source v1.EnvVarSource) v1.EnvVar {
	return v1.EnvVar{Name: name, ValueFrom: &source}
}

func fieldRef(name, path string) v1.EnvVar {
	return from(name, v1.EnvVarSource{FieldRef: &v1.ObjectFieldSelector{APIVersion: "v1", FieldPath: path}})
}

func resourceRef(name, container, what, divisor string) v1.EnvVar {
	return from(name, v1.EnvVarSource{ResourceFieldRef: &v1.ResourceFieldSelector{ContainerName: container, Resource: what, Divisor: resource.MustParse(divisor)}})
}

func configMapKey(name, object, key string, optional bool) v1.EnvVar {
	return from(name, v1.EnvVarSource{ConfigMapKeyRef: &v1.ConfigMapKeySelector{LocalObjectReference: v1.LocalObjectReference{Name: object}, Key: key, Optional: &optional}})
}

func secretKey(name, object, key string, optional bool) v1.EnvVar {
	return from(name, v1.EnvVarSource{SecretKeyRef: &v1.SecretKeySelector{LocalObjectReference: v1.LocalObjectReference{Name: object}, Key: key, Optional: &optional}})
}

func fileKey(name, path, key string, optional bool) v1.EnvVar {
	return from(name, v1.EnvVarSource{FileKeyRef: &v1.FileKeySelector{VolumeName: "v", Path: path, Key: key, Optional: &optional}})
}

// about is a pod with two containers on a node with two addresses.
func about() reconcile.About {
	p := podOf("p", v1.PodSpec{NodeName: "node", ServiceAccountName: "robot", Containers: []v1.Container{{Name: "c"}, {Name: "limited"}}})
	p.Spec.Containers[1].Resources = v1.ResourceRequirements{
		Limits:   v1.ResourceList{"cpu": resource.MustParse("1500m"), "memory": resource.MustParse("64Mi"), "hugepages-2Mi": resource.MustParse("4Mi")},
		Requests: v1.ResourceList{"cpu": resource.MustParse("250m"), "memory": resource.MustParse("32Mi")},
	}
	p.Labels = map[string]string{"app": "web", "example.com/tier": "back"}
	p.Annotations = map[string]string{"note": "a \"quoted\"\nnote"}
	return reconcile.About{
		Pod: p, UID: "u", PodIPs: []string{"10.0.0.1", "fd00::1"}, Objects: objectsOf(),
		Node: reconcile.Node{Name: "node", CPUs: 4, Memory: 8 << 30, Storage: 100 << 30, Addresses: []string{"192.0.2.1", "2001:db8::1"}},
		File: func(_, path string) (string, bool, error) {
			return "# made by an init container\nA='one'\nB=''\n", path == "env", nil
		},
	}
}

func TestEnvironment(t *testing.T) {
	for name, c := range map[string]struct {
		container v1.Container
		host      bool // in the host's network
		want      []string
		err       string
	}{
		"C024: envFrom first, later sources win, env wins over it and may refer to it": {
			container: v1.Container{
				EnvFrom: []v1.EnvFromSource{
					{ConfigMapRef: configMapRef("cm")},
					{Prefix: "S_", SecretRef: &v1.SecretEnvSource{LocalObjectReference: v1.LocalObjectReference{Name: "login"}}},
					{Prefix: "CFG_", ConfigMapRef: configMapRef("cm")},
				},
				Env: []v1.EnvVar{literal("ONLY1", "override"), literal("SUM", "$(S_LEVEL)-$(CFG_LEVEL)")},
			},
			want: []string{
				"LEVEL=one", "ONLY1=override", "RAW=$(LEVEL)", "my.key=dot", "S_LEVEL=two",
				"CFG_LEVEL=one", "CFG_ONLY1=x", "CFG_RAW=$(LEVEL)", "CFG_my.key=dot", "SUM=two-one",
			},
		},
		"C023: references look back only, once, and $$ escapes": {
			container: v1.Container{Env: []v1.EnvVar{
				literal("EARLY", "$(PORT)"), literal("PORT", "80"), literal("HOST", "db"), literal("URL", "http://$(HOST):$(PORT)/"),
				literal("LATE", "$(EARLY)"), literal("ESC", "$$(PORT)"),
			}},
			want: []string{"EARLY=$(PORT)", "PORT=80", "HOST=db", "URL=http://db:80/", "LATE=$(PORT)", "ESC=$(PORT)"},
		},
		"C026: the last of one name wins and is there once": {
			container: v1.Container{Env: []v1.EnvVar{literal("DUP", "1"), literal("B", "x=y"), literal("DUP", "2")}},
			want:      []string{"DUP=2", "B=x=y"},
		},
		"every field that a pod may read": {
			container: v1.Container{Env: []v1.EnvVar{
				fieldRef("NAME", "metadata.name"), fieldRef("NS", "metadata.namespace"), fieldRef("UID", "metadata.uid"),
				fieldRef("TIER", "metadata.labels['example.com/tier']"), fieldRef("NOTE", "metadata.annotations['note']"),
				fieldRef("NONE", "metadata.labels['none']"),
				fieldRef("NODE", "spec.nodeName"), fieldRef("SA", "spec.serviceAccountName"),
				fieldRef("HOST_IP", "status.hostIP"), fieldRef("HOST_IPS", "status.hostIPs"),
				fieldRef("POD_IP", "status.podIP"), fieldRef("POD_IPS", "status.podIPs"), literal("AT", "$(POD_IP):80"),
			}},
			want: []string{
				"NAME=p", "NS=ns", "UID=u", "TIER=back", "NOTE=a \"quoted\"\nnote", "NONE=", "NODE=node", "SA=robot",
				"HOST_IP=192.0.2.1", "HOST_IPS=192.0.2.1,2001:db8::1", "POD_IP=10.0.0.1", "POD_IPS=10.0.0.1,fd00::1", "AT=10.0.0.1:80",
			},
		},
		"in the host's network the pod's addresses are the node's": {
			container: v1.Container{Env: []v1.EnvVar{fieldRef("IP", "status.podIP"), fieldRef("IPS", "status.podIPs")}},
			host:      true,
			want:      []string{"IP=192.0.2.1", "IPS=192.0.2.1,2001:db8::1"},
		},
		"resources in units of the divisor, rounded up": {
			container: v1.Container{Env: []v1.EnvVar{
				resourceRef("CPUS", "limited", "limits.cpu", "0"), resourceRef("MILLI", "limited", "limits.cpu", "1m"),
				resourceRef("REQUEST", "limited", "requests.cpu", "1"), resourceRef("BYTES", "limited", "limits.memory", "0"),
				resourceRef("MEGA", "limited", "limits.memory", "1M"), resourceRef("MEBI", "limited", "requests.memory", "1Mi"),
				resourceRef("HUGE", "limited", "limits.hugepages-2Mi", "1Mi"),
			}},
			want: []string{"CPUS=2", "MILLI=1500", "REQUEST=1", "BYTES=67108864", "MEGA=68", "MEBI=32", "HUGE=4"},
		},
		"a limit that is not set is what the node has, a request is none": {
			container: v1.Container{Env: []v1.EnvVar{
				resourceRef("CPU", "", "limits.cpu", "0"), resourceRef("MEMORY", "c", "limits.memory", "1Gi"),
				resourceRef("DISK", "", "limits.ephemeral-storage", "1Gi"), resourceRef("HUGE", "", "limits.hugepages-2Mi", "0"),
				resourceRef("REQUEST", "", "requests.memory", "0"),
			}},
			want: []string{"CPU=4", "MEMORY=8", "DISK=100", "HUGE=0", "REQUEST=0"},
		},
		"keys of objects": {
			container: v1.Container{Env: []v1.EnvVar{configMapKey("A", "cm", "my.key", false), secretKey("B", "s", "LEVEL", false), literal("C", "$(B)")}},
			want:      []string{"A=dot", "B=two", "C=two"},
		},
		"what is missing and optional is left out": {
			container: v1.Container{
				EnvFrom: []v1.EnvFromSource{{ConfigMapRef: &v1.ConfigMapEnvSource{LocalObjectReference: v1.LocalObjectReference{Name: "none"}, Optional: new(true)}}},
				Env: []v1.EnvVar{
					configMapKey("A", "none", "k", true), secretKey("B", "s", "none", true), fileKey("C", "none", "k", true), fileKey("D", "env", "none", true), literal("E", "$(A)"),
				},
			},
			want: []string{"E=$(A)"},
		},
		"keys of files": {
			container: v1.Container{Env: []v1.EnvVar{fileKey("X", "env", "A", false), fileKey("Y", "env", "B", false)}},
			want:      []string{"X=one", "Y="},
		},
		"no such ConfigMap": {
			container: v1.Container{EnvFrom: []v1.EnvFromSource{{ConfigMapRef: configMapRef("none")}}},
			err:       `configmap "none" not found`,
		},
		"no such Secret": {
			container: v1.Container{Env: []v1.EnvVar{secretKey("A", "none", "k", false)}},
			err:       `secret "none" not found`,
		},
		"no such key of a ConfigMap": {
			container: v1.Container{Env: []v1.EnvVar{configMapKey("A", "cm", "none", false)}},
			err:       `couldn't find key none in ConfigMap ns/cm`,
		},
		"no such key of a Secret": {
			container: v1.Container{Env: []v1.EnvVar{secretKey("A", "s", "none", false)}},
			err:       `couldn't find key none in Secret ns/s`,
		},
		"no such file": {
			container: v1.Container{Env: []v1.EnvVar{fileKey("A", "none", "k", false)}},
			err:       `file "none" of volume "v": not found`,
		},
		"no such key in a file": {
			container: v1.Container{Env: []v1.EnvVar{fileKey("A", "env", "none", false)}},
			err:       `file "env" of volume "v": environment variable key "none" not found`,
		},
		"C104: a value that no environment can hold is not repeated": {
			container: v1.Container{Env: []v1.EnvVar{secretKey("A", "s", "zero", false)}},
			err:       `environment variable A: its value has a zero byte`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := about()
			a.Pod.Spec.HostNetwork = c.host
			login := pod.ObjectKey{Kind: pod.Secret, Namespace: "ns", Name: "login"}
			a.Objects[login] = &pod.Object{Key: login, Data: map[string]pod.Value{"LEVEL": pod.SecretValue("two")}}
			got, err := reconcile.Environment(&c.container, a)
			if err != nil || c.err != "" {
				if err == nil || err.Error() != c.err {
					t.Errorf("error %v, want %s", err, c.err)
				}
				return
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("environment (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPodLevelLimitIsTheContainers(t *testing.T) {
	a := about()
	a.Pod.Spec.Resources = &v1.ResourceRequirements{Limits: v1.ResourceList{"memory": resource.MustParse("1Gi")}}
	got, err := reconcile.Environment(&v1.Container{Env: []v1.EnvVar{resourceRef("M", "", "limits.memory", "1Mi"), resourceRef("C", "", "limits.cpu", "0")}}, a)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"M=1024", "C=4"}, got); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
}

func TestEnvFile(t *testing.T) {
	for name, c := range map[string]struct {
		text, value, err string
		missing          bool
	}{
		"a value":                         {text: "K='v'", value: "v"},
		"among others":                    {text: "\n# K='no'\n  A='x'\n\tK='v' # why\nB='y'\n", value: "v"},
		"kept as it is":                   {text: `K=' a "b" \n $C = #d '`, value: ` a "b" \n $C = #d `},
		"over lines":                      {text: "A='x\nK=1\n'\nK='one\n\n two'\n", value: "one\n\n two"},
		"lines of another system":         {text: "A='x'\r\nK='v'\r\n", value: "v"},
		"the first of two":                {text: "K='1'\nK='2'", value: "1"},
		"empty":                           {text: "K=''", value: ""},
		"empty, as a shell would read it": {text: "K= 'v'", value: ""},
		"not there":                       {text: "A='x'", missing: true},
		"nothing there":                   {text: "", missing: true},
		"what follows is not looked at":   {text: "K='v'\nrubbish", value: "v"},
		"no quotes":                       {text: "K=v", err: "line 1: its value is not in single quotes"},
		"double quotes":                   {text: "A='x'\nK=\"v\"", err: "line 2: its value is not in single quotes"},
		"no equals sign":                  {text: "K", err: "line 1: has no '='"},
		"no name":                         {text: "='v'", err: "line 1: has no name before '='"},
		"a space before the equals sign":  {text: "K ='v'", err: "line 1: has a space before '='"},
		"more after the quote":            {text: "A='x'\n\nK='v'w", err: "line 3: has something after the closing quote"},
		"a quote that stays open":         {text: "A='x'\nK='v\nw", err: "line 2: its quote is not closed"},
	} {
		value, found, err := reconcile.EnvFile(c.text, "K")
		switch {
		case c.err != "":
			if err == nil || err.Error() != c.err {
				t.Errorf("%s: error %v, want %s", name, err, c.err)
			}
		case err != nil || found == c.missing || value != c.value:
			t.Errorf("%s: %q, %v, %v; want %q", name, value, found, err, c.value)
		}
	}
}

// What a value holds is not in any error about it.
func TestEnvFileErrorsRepeatNothing(t *testing.T) {
	for _, text := range []string{"S3CR3T", "S3CR3T ='x'", "K=S3CR3T", "K='S3CR3T", "K='x'S3CR3T"} {
		if _, _, err := reconcile.EnvFile(text, "K"); err == nil || strings.Contains(err.Error(), "S3CR3T") {
			t.Errorf("%q: error %v", text, err)
		}
	}
}

func TestReferences(t *testing.T) {
	yes := true
	p := podOf("p", v1.PodSpec{
		InitContainers: []v1.Container{{Name: "i", EnvFrom: []v1.EnvFromSource{{SecretRef: &v1.SecretEnvSource{LocalObjectReference: v1.LocalObjectReference{Name: "a"}, Optional: &yes}}}}},
		Containers:     []v1.Container{{Name: "c", EnvFrom: []v1.EnvFromSource{{ConfigMapRef: configMapRef("b")}}, Env: []v1.EnvVar{literal("X", ""), configMapKey("Y", "c", "k", false), secretKey("Z", "d", "k", true)}}},
		Volumes: []v1.Volume{
			{Name: "v1", VolumeSource: v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{LocalObjectReference: v1.LocalObjectReference{Name: "e"}}}},
			{Name: "v2", VolumeSource: v1.VolumeSource{Secret: &v1.SecretVolumeSource{SecretName: "f", Optional: &yes}}},
			{Name: "v3", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "g"}}},
			{Name: "v4", VolumeSource: v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{Sources: []v1.VolumeProjection{
				{ConfigMap: &v1.ConfigMapProjection{LocalObjectReference: v1.LocalObjectReference{Name: "h"}}},
				{DownwardAPI: &v1.DownwardAPIProjection{}},
				{Secret: &v1.SecretProjection{LocalObjectReference: v1.LocalObjectReference{Name: "i"}}},
			}}}},
			{Name: "v5", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}},
		},
		ImagePullSecrets: []v1.LocalObjectReference{{Name: "j"}},
	})
	key := func(kind pod.ObjectKind, name string) pod.ObjectKey {
		return pod.ObjectKey{Kind: kind, Namespace: "ns", Name: name}
	}
	want := []reconcile.Reference{
		{Object: key(pod.Secret, "a"), Optional: true, Container: "i"},
		{Object: key(pod.ConfigMap, "b"), Container: "c"},
		{Object: key(pod.ConfigMap, "c"), Container: "c"},
		{Object: key(pod.Secret, "d"), Optional: true, Container: "c"},
		{Object: key(pod.ConfigMap, "e"), Volume: "v1"},
		{Object: key(pod.Secret, "f"), Optional: true, Volume: "v2"},
		{Object: key(pod.PersistentVolumeClaim, "g"), Volume: "v3"},
		{Object: key(pod.ConfigMap, "h"), Volume: "v4"},
		{Object: key(pod.Secret, "i"), Volume: "v4"},
		{Object: key(pod.Secret, "j"), Optional: true},
	}
	if diff := cmp.Diff(want, reconcile.References(p)); diff != "" {
		t.Errorf("references (-want +got):\n%s", diff)
	}
}
