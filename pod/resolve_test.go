package pod_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/podkeeper/podkeeper/pod"
)

var (
	folder = pod.SourceID{Kind: pod.FileSource, Name: "/m"}
	url    = pod.SourceID{Kind: pod.HTTPSource, Name: "http://h/p"}

	fileA = pod.Origin{Source: folder, Name: "/m/a.yaml"}
	fileB = pod.Origin{Source: folder, Name: "/m/b.yaml"}
	web   = pod.Origin{Source: url, Name: "http://h/p"}
)

func key(name string) pod.Key { return pod.Key{Namespace: "default", Name: name} }

func claim(name string, origin pod.Origin, uid types.UID) *pod.Pod {
	return &pod.Pod{
		Object: &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: uid}},
		Origin: origin,
		Line:   1,
	}
}

// set builds the claims as a merge does: sorted by origin.
func set(pods ...*pod.Pod) pod.Set {
	claims := map[pod.Key][]*pod.Pod{}
	for _, p := range pods {
		claims[p.Key()] = append(claims[p.Key()], p)
	}
	for _, c := range claims {
		slices.SortStableFunc(c, func(a, b *pod.Pod) int { return a.Origin.Compare(b.Origin) })
	}
	return pod.Set{Claims: claims}
}

// brief tells a desired map as key -> origin.
func brief(desired map[pod.Key]*pod.Pod) map[string]string {
	out := map[string]string{}
	for k, p := range desired {
		out[k.Name] = p.Origin.Name
	}
	return out
}

func TestResolve(t *testing.T) {
	type want struct {
		desired   map[string]string
		conflicts []pod.Conflict
	}
	tests := map[string]struct {
		pods    []*pod.Pod
		holders map[pod.Key]pod.Holder
		want    want
	}{
		"a key with one claim is desired": {
			pods: []*pod.Pod{claim("x", fileB, "")},
			want: want{desired: map[string]string{"x": "/m/b.yaml"}},
		},
		"C029: the first file has the key where nothing runs, and both are named": {
			pods: []*pod.Pod{claim("x", fileB, ""), claim("x", fileA, "")},
			want: want{
				desired:   map[string]string{"x": "/m/a.yaml"},
				conflicts: []pod.Conflict{{Key: key("x"), Winner: fileA, Loser: fileB, Line: 1}},
			},
		},
		"a file wins over a URL": {
			pods: []*pod.Pod{claim("x", web, ""), claim("x", fileB, "")},
			want: want{
				desired:   map[string]string{"x": "/m/b.yaml"},
				conflicts: []pod.Conflict{{Key: key("x"), Winner: fileB, Loser: web, Line: 1}},
			},
		},
		"the origin whose pod runs keeps the key": {
			pods:    []*pod.Pod{claim("x", fileA, ""), claim("x", web, "")},
			holders: map[pod.Key]pod.Holder{key("x"): {Origin: web, UID: "u"}},
			want: want{
				desired:   map[string]string{"x": "http://h/p"},
				conflicts: []pod.Conflict{{Key: key("x"), Winner: web, Loser: fileA, Line: 1}},
			},
		},
		"a holder that no longer supplies the key loses it without a conflict": {
			pods:    []*pod.Pod{claim("x", fileB, "")},
			holders: map[pod.Key]pod.Holder{key("x"): {Origin: fileA, UID: "u"}},
			want:    want{desired: map[string]string{"x": "/m/b.yaml"}},
		},
		"of two keys with one uid, the first by origin has it": {
			pods: []*pod.Pod{claim("a", fileB, "u"), claim("b", fileA, "u")},
			want: want{
				desired:   map[string]string{"b": "/m/a.yaml"},
				conflicts: []pod.Conflict{{Key: key("a"), Winner: fileA, Loser: fileB, UID: "u", Holder: key("b"), Line: 1}},
			},
		},
		"of two keys with one uid, the one that runs with it keeps it": {
			pods:    []*pod.Pod{claim("a", fileB, "u"), claim("b", fileA, "u")},
			holders: map[pod.Key]pod.Holder{key("a"): {Origin: fileB, UID: "u"}},
			want: want{
				desired:   map[string]string{"a": "/m/b.yaml"},
				conflicts: []pod.Conflict{{Key: key("b"), Winner: fileB, Loser: fileA, UID: "u", Holder: key("a"), Line: 1}},
			},
		},
		"C033: a uid is in use as long as the pod of the old name runs with it": {
			pods:    []*pod.Pod{claim("new", fileA, "u")},
			holders: map[pod.Key]pod.Holder{key("old"): {Origin: fileA, UID: "u"}},
			want: want{
				desired:   map[string]string{},
				conflicts: []pod.Conflict{{Key: key("new"), Winner: fileA, Loser: fileA, UID: "u", Holder: key("old"), Line: 1}},
			},
		},
		"a uid that another pod was given, not set, is in use too": {
			pods:    []*pod.Pod{claim("a", fileA, "u"), claim("b", fileB, "")},
			holders: map[pod.Key]pod.Holder{key("b"): {Origin: fileB, UID: "u"}},
			want: want{
				desired:   map[string]string{"b": "/m/b.yaml"},
				conflicts: []pod.Conflict{{Key: key("a"), Winner: fileB, Loser: fileA, UID: "u", Holder: key("b"), Line: 1}},
			},
		},
		"pods without a uid never clash": {
			pods: []*pod.Pod{claim("a", fileA, ""), claim("b", fileA, "")},
			want: want{desired: map[string]string{"a": "/m/a.yaml", "b": "/m/a.yaml"}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			desired, conflicts := set(test.pods...).Resolve(test.holders)
			if diff := cmp.Diff(test.want.desired, brief(desired)); diff != "" {
				t.Errorf("desired (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.want.conflicts, conflicts); diff != "" {
				t.Errorf("conflicts (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMayRemove(t *testing.T) {
	spoken := func(id pod.SourceID, origins ...pod.OriginStatus) pod.Source {
		return pod.Source{ID: id, Spoken: true, Present: true, Origins: origins}
	}
	failed := func(o pod.Origin) pod.OriginStatus {
		return pod.OriginStatus{Origin: o, Problems: []pod.Problem{{Severity: pod.Error, Message: "bad"}}}
	}
	fine := func(o pod.Origin) pod.OriginStatus {
		return pod.OriginStatus{Origin: o, Problems: []pod.Problem{{Severity: pod.Warning, Message: "odd"}}}
	}
	away := func(id pod.SourceID) pod.Source { return pod.Source{ID: id, Problem: "not there"} }
	other := pod.Origin{Source: pod.SourceID{Kind: pod.FileSource, Name: "/other"}, Name: "/other/a.yaml"}
	tests := map[string]struct {
		sources []pod.Source
		kind    pod.SourceKind
		origin  *pod.Origin
		why     string // "": may be removed
	}{
		"nothing is removed when no source is configured":            {why: "no source is configured", kind: pod.FileSource, origin: &fileA},
		"the origin's source has spoken":                             {sources: []pod.Source{spoken(folder)}, origin: &fileA},
		"warnings of the origin do not hold a pod":                   {sources: []pod.Source{spoken(folder, fine(fileA))}, origin: &fileA},
		"the origin has errors":                                      {sources: []pod.Source{spoken(folder, failed(fileA))}, origin: &fileA, why: "/m/a.yaml has errors"},
		"another origin of the source has errors":                    {sources: []pod.Source{spoken(folder, failed(fileB))}, origin: &fileA},
		"the origin is a last good version":                          {sources: []pod.Source{spoken(folder, pod.OriginStatus{Origin: fileA, Stale: true})}, origin: &fileA, why: "/m/a.yaml is not read yet"},
		"the origin's source has not spoken":                         {sources: []pod.Source{{ID: folder, Present: true}, spoken(url)}, origin: &fileA, why: "source file:/m has not spoken"},
		"the origin's source went away":                              {sources: []pod.Source{{ID: folder, Spoken: true, Problem: "no such folder"}}, origin: &fileA, why: "source file:/m is silent: no such folder"},
		"another source was not looked at yet":                       {sources: []pod.Source{spoken(folder), {ID: url}}, origin: &fileA, why: "source http:http://h/p has not been looked at yet"},
		"another source is absent for good":                          {sources: []pod.Source{spoken(folder), away(url)}, origin: &fileA},
		"another source supplies what it said before":                {sources: []pod.Source{spoken(folder), {ID: url, Origins: []pod.OriginStatus{{Origin: web, Stale: true}}}}, origin: &fileA},
		"another source is still being read":                         {sources: []pod.Source{spoken(url), {ID: folder, Present: true}}, origin: &web},
		"a source no longer configured, and all others have spoken":  {sources: []pod.Source{spoken(folder), spoken(url)}, origin: &other},
		"a source no longer configured, and another has not spoken":  {sources: []pod.Source{spoken(folder), away(url)}, origin: &other, why: "source http:http://h/p has not spoken"},
		"a source no longer configured, and another went away":       {sources: []pod.Source{{ID: folder, Spoken: true}, spoken(url)}, origin: &other, why: "source file:/m is silent"},
		"an unknown origin, and every source of the kind has spoken": {sources: []pod.Source{spoken(folder), away(url)}, kind: pod.FileSource},
		"an unknown origin, and one source of the kind has not":      {sources: []pod.Source{spoken(folder), away(other.Source)}, kind: pod.FileSource, why: "source file:/other has not spoken"},
		"an unknown origin, and any origin of the kind has errors":   {sources: []pod.Source{spoken(folder, fine(fileA), failed(fileB))}, kind: pod.FileSource, why: "/m/b.yaml has errors"},
		"an unknown origin, and errors of another kind":              {sources: []pod.Source{spoken(folder), spoken(url, failed(web))}, kind: pod.FileSource},
		"an unknown origin of a kind that is not configured":         {sources: []pod.Source{spoken(folder)}, kind: pod.HTTPSource},
		"an unknown origin of such a kind while another is silent":   {sources: []pod.Source{away(folder)}, kind: pod.HTTPSource, why: "source file:/m has not spoken"},
	}
	for name, test := range tests {
		t.Run("law 1: "+name, func(t *testing.T) {
			ok, why := pod.Set{Sources: test.sources}.MayRemove(test.kind, test.origin)
			if ok != (test.why == "") || why != test.why {
				t.Errorf("MayRemove = %v, %q; want %v, %q", ok, why, test.why == "", test.why)
			}
		})
	}
}

func TestHeard(t *testing.T) {
	spoken := pod.Source{ID: folder, Spoken: true, Present: true, Origins: []pod.OriginStatus{{Origin: fileA}}}
	broken := spoken
	broken.Origins = []pod.OriginStatus{{Origin: fileA, Problems: []pod.Problem{{Severity: pod.Error}}}}
	for name, test := range map[string]struct {
		sources []pod.Source
		why     string
	}{
		"all have spoken":         {sources: []pod.Source{spoken, {ID: url, Spoken: true, Present: true}}},
		"one has not":             {sources: []pod.Source{spoken, {ID: url, Present: true}}, why: "source http:http://h/p has not spoken"},
		"one is away now":         {sources: []pod.Source{spoken, {ID: url, Spoken: true}}, why: "source http:http://h/p is silent"},
		"a file has errors":       {sources: []pod.Source{broken}, why: "/m/a.yaml has errors"},
		"no source is configured": {why: "no source is configured"},
	} {
		if ok, why := (pod.Set{Sources: test.sources}).Heard(); ok != (test.why == "") || why != test.why {
			t.Errorf("law 1: %s: Heard = %v, %q; want %q", name, ok, why, test.why)
		}
	}
}

// drawWorld returns claims and holders over few enough names that they clash.
func drawWorld(t *rapid.T) ([]*pod.Pod, map[pod.Key]pod.Holder) {
	origins := []pod.Origin{fileA, fileB, web, {Source: url, Name: "http://h/q"}}
	uids := []types.UID{"", "", "u", "v", "w"}
	var pods []*pod.Pod
	for k := range 4 {
		for _, o := range origins {
			if rapid.Bool().Draw(t, "supplied") {
				pods = append(pods, claim(fmt.Sprint(k), o, rapid.SampledFrom(uids).Draw(t, "uid")))
			}
		}
	}
	holders := map[pod.Key]pod.Holder{}
	for k := range 5 {
		if rapid.Bool().Draw(t, "runs") {
			holders[key(fmt.Sprint(k))] = pod.Holder{
				Origin: rapid.SampledFrom(origins).Draw(t, "held by"),
				UID:    rapid.SampledFrom([]types.UID{"m" + types.UID(fmt.Sprint(k)), "u", "v", "w"}).Draw(t, "runs as"),
			}
		}
	}
	return pods, holders
}

func TestResolveIsIndependentOfOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pods, holders := drawWorld(t)
		desired, conflicts := set(pods...).Resolve(holders)
		for range 4 {
			again, same := set(rapid.Permutation(pods).Draw(t, "order")...).Resolve(holders)
			if diff := cmp.Diff(brief(desired), brief(again)); diff != "" {
				t.Fatalf("desired depends on order:\n%s", diff)
			}
			if diff := cmp.Diff(conflicts, same); diff != "" {
				t.Fatalf("conflicts depend on order:\n%s", diff)
			}
		}
	})
}

func TestResolveNeverFlaps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pods, holders := drawWorld(t)
		s := set(pods...)
		desired, _ := s.Resolve(holders)
		// What is refused is removed first, which may free a uid: so the second
		// round may add a key. It never changes a winner, and the third is the end.
		second, _ := s.Resolve(follow(desired, holders))
		for k, p := range desired {
			if second[k] != p {
				t.Fatalf("%s was decided for %s and is now %v", k, p.Origin, second[k])
			}
		}
		third, _ := s.Resolve(follow(second, holders))
		fourth, _ := s.Resolve(follow(third, follow(second, holders)))
		if diff := cmp.Diff(brief(third), brief(fourth), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("flaps:\n%s", diff)
		}
	})
}

// follow returns who runs once desired is reached: exactly what it names.
func follow(desired map[pod.Key]*pod.Pod, before map[pod.Key]pod.Holder) map[pod.Key]pod.Holder {
	after := map[pod.Key]pod.Holder{}
	for k, p := range desired {
		uid := p.ExplicitUID()
		if uid == "" {
			uid = before[k].UID
		}
		if uid == "" {
			uid = "minted-" + types.UID(k.Name)
		}
		after[k] = pod.Holder{Origin: p.Origin, UID: uid}
	}
	return after
}

func TestResolveGivesAUIDOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pods, holders := drawWorld(t)
		desired, _ := set(pods...).Resolve(holders)
		seen := map[types.UID]pod.Key{}
		for k, p := range desired {
			uid := p.ExplicitUID()
			if other, ok := seen[uid]; ok && uid != "" {
				t.Fatalf("%s and %s both have uid %s", k, other, uid)
			}
			seen[uid] = k
		}
	})
}
