package pod_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"github.com/podkeeper/podkeeper/pod"
)

func objectKey(name string) pod.ObjectKey {
	return pod.ObjectKey{Kind: pod.ConfigMap, Namespace: "default", Name: name}
}

func supply(name string, origin pod.Origin) *pod.Object {
	return &pod.Object{Key: objectKey(name), Origin: origin, Line: 1}
}

// objects builds a set as a merge does: supplies sorted by origin, and every
// source was looked at.
func objects(list ...*pod.Object) pod.Set {
	s := pod.Set{Objects: map[pod.ObjectKey][]*pod.Object{}}
	for _, o := range list {
		s.Objects[o.Key] = append(s.Objects[o.Key], o)
	}
	for _, supplies := range s.Objects {
		slices.SortStableFunc(supplies, func(a, b *pod.Object) int { return a.Origin.Compare(b.Origin) })
	}
	s.Sources = []pod.Source{{ID: folder, Spoken: true, Present: true}, {ID: url, Problem: "no answer yet"}}
	return s
}

func briefObjects(held map[pod.ObjectKey]*pod.Object) map[string]string {
	out := map[string]string{}
	for k, o := range held {
		out[k.Name] = o.Origin.Name
	}
	return out
}

func TestObjectKeyText(t *testing.T) {
	key := pod.ObjectKey{Kind: pod.Secret, Namespace: "n", Name: "x"}
	text, err := key.MarshalText()
	if err != nil || string(text) != "Secret n/x" {
		t.Errorf("written as %q, %v", text, err)
	}
	var back pod.ObjectKey
	if err := back.UnmarshalText(text); err != nil || back != key {
		t.Errorf("%s is read back as %s, %v", text, back, err)
	}
	for _, bad := range []string{"", "Secret", "Secret x", "n/x"} {
		if err := back.UnmarshalText([]byte(bad)); err == nil {
			t.Errorf("%q is taken for a key", bad)
		}
	}
}

func TestResolveObjects(t *testing.T) {
	tests := map[string]struct {
		objects   []*pod.Object
		unheard   bool // one source was not looked at yet
		held      pod.Origin
		want      map[string]string
		conflicts []pod.Conflict
	}{
		"an object with one supply is there": {
			objects: []*pod.Object{supply("x", fileB)},
			want:    map[string]string{"x": "/m/b.yaml"},
		},
		"C029: of two files the first supplies it, and both are named": {
			objects:   []*pod.Object{supply("x", fileB), supply("x", fileA)},
			want:      map[string]string{"x": "/m/a.yaml"},
			conflicts: []pod.Conflict{{Object: objectKey("x"), Winner: fileA, Loser: fileB, Line: 1}},
		},
		"a file goes before a URL": {
			objects:   []*pod.Object{supply("x", web), supply("x", fileB)},
			want:      map[string]string{"x": "/m/b.yaml"},
			conflicts: []pod.Conflict{{Object: objectKey("x"), Winner: fileB, Loser: web, Line: 1}},
		},
		"who supplies it goes on to": {
			objects:   []*pod.Object{supply("x", fileA), supply("x", web)},
			held:      web,
			want:      map[string]string{"x": "http://h/p"},
			conflicts: []pod.Conflict{{Object: objectKey("x"), Winner: web, Loser: fileA, Line: 1}},
		},
		"nobody takes it over before all were looked at": {
			objects: []*pod.Object{supply("x", fileA), supply("y", fileA)},
			held:    web,
			unheard: true,
			want:    map[string]string{"y": "/m/a.yaml"},
		},
		"who no longer supplies it loses it without a conflict": {
			objects: []*pod.Object{supply("x", fileB)},
			held:    fileA,
			want:    map[string]string{"x": "/m/b.yaml"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := objects(test.objects...)
			if test.unheard {
				s.Sources = append(s.Sources, pod.Source{})
			}
			held := map[pod.ObjectKey]pod.Origin{}
			if test.held != (pod.Origin{}) {
				held[objectKey("x")] = test.held
			}
			got, conflicts := s.ResolveObjects(held)
			if diff := cmp.Diff(test.want, briefObjects(got)); diff != "" {
				t.Errorf("objects (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.conflicts, conflicts); diff != "" {
				t.Errorf("conflicts (-want +got):\n%s", diff)
			}
		})
	}
}

func TestResolveObjectsNeverFlaps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		origins := []pod.Origin{fileA, fileB, web}
		draw := func() []*pod.Object {
			var list []*pod.Object
			for _, name := range []string{"x", "y"} {
				for _, o := range origins {
					if rapid.Bool().Draw(t, "supplied") {
						list = append(list, supply(name, o))
					}
				}
			}
			return list
		}
		before, _ := objects(draw()...).ResolveObjects(nil)
		list := draw()
		s := objects(list...)
		got, conflicts := s.ResolveObjects(pod.Origins(before))
		again, same := objects(rapid.Permutation(list).Draw(t, "order")...).ResolveObjects(pod.Origins(got))
		if diff := cmp.Diff(briefObjects(got), briefObjects(again)); diff != "" {
			t.Fatalf("flaps:\n%s", diff)
		}
		if diff := cmp.Diff(conflicts, same); diff != "" {
			t.Fatalf("conflicts flap:\n%s", diff)
		}
		for k, o := range before {
			still := slices.ContainsFunc(s.Objects[k], func(p *pod.Object) bool { return p.Origin == o.Origin })
			if still && got[k].Origin != o.Origin {
				t.Fatalf("%s went from %s to %s, and was still supplied", k, o.Origin, got[k].Origin)
			}
		}
	})
}

func TestSameContent(t *testing.T) {
	base := func() *pod.Object {
		return &pod.Object{
			Key: objectKey("x"), Origin: fileA, Line: 1, Type: v1.SecretTypeOpaque,
			Data:  map[string]pod.Value{"a": pod.PlainValue("1")},
			Claim: &pod.Claim{AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}, Size: resource.MustParse("1Gi"), Reclaim: pod.Retain},
		}
	}
	for name, test := range map[string]struct {
		change func(*pod.Object)
		same   bool
	}{
		"nothing changed":      {func(*pod.Object) {}, true},
		"moved":                {func(o *pod.Object) { o.Origin, o.Line = fileB, 7 }, true},
		"sealed":               {func(o *pod.Object) { o.Immutable = true }, true},
		"size spelt otherwise": {func(o *pod.Object) { o.Claim.Size = resource.MustParse("1024Mi") }, true},
		"another value":        {func(o *pod.Object) { o.Data["a"] = pod.PlainValue("2") }, false},
		"one more key":         {func(o *pod.Object) { o.Data["b"] = pod.PlainValue("2") }, false},
		"a binary key":         {func(o *pod.Object) { o.BinaryData = map[string]pod.Value{"b": {}} }, false},
		"another type":         {func(o *pod.Object) { o.Type = v1.SecretTypeTLS }, false},
		"another size":         {func(o *pod.Object) { o.Claim.Size = resource.MustParse("2Gi") }, false},
		"no claim":             {func(o *pod.Object) { o.Claim = nil }, false},
		"another access mode":  {func(o *pod.Object) { o.Claim.AccessModes[0] = v1.ReadOnlyMany }, false},
		"another reclaim":      {func(o *pod.Object) { o.Claim.Reclaim = pod.Delete }, false},
		"another storageClass": {func(o *pod.Object) { o.Claim.StorageClass = "local" }, false},
		"another kind":         {func(o *pod.Object) { o.Key.Kind = pod.Secret }, false},
	} {
		t.Run(name, func(t *testing.T) {
			o := base()
			test.change(o)
			if got := base().SameContent(o); got != test.same {
				t.Errorf("SameContent = %v", got)
			}
		})
	}
}
