package reconcile_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/reconcile"
)

func projected(mode int32, sources ...v1.VolumeProjection) v1.VolumeSource {
	return v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{DefaultMode: &mode, Sources: sources}}
}

func named(name string) v1.LocalObjectReference { return v1.LocalObjectReference{Name: name} }

func TestContent(t *testing.T) {
	yes, mode, own := true, int32(0o640), int32(0o400)
	alice, bob := int64(1000), int64(1001)
	downward := []v1.DownwardAPIVolumeFile{
		{Path: "pod/labels", FieldRef: &v1.ObjectFieldSelector{FieldPath: "metadata.labels"}},
		{Path: "pod/annotations", FieldRef: &v1.ObjectFieldSelector{FieldPath: "metadata.annotations"}, Mode: &own},
		{Path: "name", FieldRef: &v1.ObjectFieldSelector{FieldPath: "metadata.name"}},
		{Path: "memory", ResourceFieldRef: &v1.ResourceFieldSelector{ContainerName: "c", Resource: "limits.memory", Divisor: resource.MustParse("1Gi")}},
	}
	for name, c := range map[string]struct {
		source v1.VolumeSource
		want   map[string]string
		err    string
	}{
		"all of a ConfigMap, bytes too": {
			source: v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{LocalObjectReference: named("cm")}},
			want:   map[string]string{"LEVEL": "one -rw-r--r--", "ONLY1": "x -rw-r--r--", "RAW": "$(LEVEL) -rw-r--r--", "my.key": "dot -rw-r--r--", "bytes": "\x00\xff -rw-r--r--"},
		},
		"some of it, under paths and modes of their own": {
			source: v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{LocalObjectReference: named("cm"), DefaultMode: &mode, Items: []v1.KeyToPath{
				{Key: "my.key", Path: "a/b.conf"}, {Key: "LEVEL", Path: "./a//level", Mode: &own}, {Key: "bytes", Path: "b"},
			}}},
			want: map[string]string{"a/b.conf": "dot -rw-r-----", "a/level": "one -r--------", "b": "\x00\xff -rw-r-----"},
		},
		"of users": {
			source: v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{LocalObjectReference: named("cm"), DefaultUser: &alice, Items: []v1.KeyToPath{
				{Key: "my.key", Path: "a"}, {Key: "LEVEL", Path: "b", User: &bob},
			}}},
			want: map[string]string{"a": "dot -rw-r--r-- 1000", "b": "one -rw-r--r-- 1001"},
		},
		"C074: a Secret": {
			source: v1.VolumeSource{Secret: &v1.SecretVolumeSource{SecretName: "s", DefaultMode: &own}},
			want:   map[string]string{"LEVEL": "two -r--------", "zero": "S3CR3T-4711\x00 -r--------"},
		},
		"a pod about itself": {
			source: v1.VolumeSource{DownwardAPI: &v1.DownwardAPIVolumeSource{Items: downward}},
			want: map[string]string{
				"pod/labels":      "app=\"web\"\nexample.com/tier=\"back\" -rw-r--r--",
				"pod/annotations": "note=\"a \\\"quoted\\\"\\nnote\" -r--------",
				"name":            "p -rw-r--r--", "memory": "8 -rw-r--r--",
			},
		},
		"all of these, the last of one path wins": {
			source: projected(0o444,
				v1.VolumeProjection{ConfigMap: &v1.ConfigMapProjection{LocalObjectReference: named("cm"), Items: []v1.KeyToPath{{Key: "LEVEL", Path: "level"}}}},
				v1.VolumeProjection{DownwardAPI: &v1.DownwardAPIProjection{Items: downward[2:3]}},
				v1.VolumeProjection{Secret: &v1.SecretProjection{LocalObjectReference: named("s"), Items: []v1.KeyToPath{{Key: "LEVEL", Path: "level", Mode: &own}}}},
				v1.VolumeProjection{Secret: &v1.SecretProjection{LocalObjectReference: named("none"), Optional: &yes}},
			),
			want: map[string]string{"level": "two -r--------", "name": "p -r--r--r--"},
		},
		"an optional object that is missing is empty": {
			source: v1.VolumeSource{Secret: &v1.SecretVolumeSource{SecretName: "none", Optional: &yes}},
			want:   map[string]string{},
		},
		"an optional key that is missing is left out": {
			source: v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{LocalObjectReference: named("cm"), Optional: &yes, Items: []v1.KeyToPath{{Key: "none", Path: "a"}, {Key: "LEVEL", Path: "b"}}}},
			want:   map[string]string{"b": "one -rw-r--r--"},
		},
		"C076: no such ConfigMap": {
			source: v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{LocalObjectReference: named("later")}},
			err:    `MountVolume.SetUp failed for volume "v" : configmap "later" not found`,
		},
		"no such key": {
			source: v1.VolumeSource{Secret: &v1.SecretVolumeSource{SecretName: "s", Items: []v1.KeyToPath{{Key: "none", Path: "a"}}}},
			err:    `MountVolume.SetUp failed for volume "v" : secret "s" references non-existent key: none`,
		},
		"no such claim": {
			source: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "later"}},
			err:    `MountVolume.SetUp failed for volume "v" : persistentvolumeclaim "later" not found`,
		},
		"every source that is missing is named": {
			source: projected(0o644,
				v1.VolumeProjection{ConfigMap: &v1.ConfigMapProjection{LocalObjectReference: named("a")}},
				v1.VolumeProjection{ConfigMap: &v1.ConfigMapProjection{LocalObjectReference: named("cm")}},
				v1.VolumeProjection{Secret: &v1.SecretProjection{LocalObjectReference: named("b")}},
			),
			err: `MountVolume.SetUp failed for volume "v" : [configmap "a" not found, secret "b" not found]`,
		},
		"a path that is a file and a folder": {
			source: v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{LocalObjectReference: named("cm"), Items: []v1.KeyToPath{{Key: "LEVEL", Path: "a"}, {Key: "RAW", Path: "a/b/c"}}}},
			err:    `MountVolume.SetUp failed for volume "v" : path "a" is a file, and the folder of "a/b/c"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := about()
			a.Objects[pod.ObjectKey{Kind: pod.ConfigMap, Namespace: "ns", Name: "cm"}].BinaryData = map[string]pod.Value{"bytes": pod.PlainValue("\x00\xff")}
			v := v1.Volume{Name: "v", VolumeSource: c.source}
			if err := reconcile.Lacks(v, a); fmt.Sprint(err) != c.err && (err != nil || c.err != "") {
				t.Errorf("missing %v, want %s", err, c.err)
			}
			files, _, err := reconcile.Content(v, a)
			if err != nil || c.err != "" {
				return
			}
			got := make(map[string]string)
			for _, f := range files {
				got[f.Path] = f.Data + " " + f.Mode.String()
				if f.User != nil {
					got[f.Path] += fmt.Sprint(" ", *f.User)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("content (-want +got):\n%s", diff)
			}
		})
	}
}
