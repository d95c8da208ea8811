package reconcile_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/cpuset"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/podkeeper/podkeeper/manifests/defaults"
	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/reconcile"
)

// machine has sockets of cores of two CPUs each, numbered as x86 machines do: the
// first CPU of every core, then the second of every one.
func machine(sockets, cores int) []reconcile.CPU {
	var list []reconcile.CPU
	for id := range sockets * cores * 2 {
		core := id % (sockets * cores)
		list = append(list, reconcile.CPU{ID: id, Core: core, Socket: core / cores})
	}
	return list
}

func set(text string) cpuset.CPUSet {
	s, err := cpuset.Parse(text)
	if err != nil {
		panic(err)
	}
	return s
}

// What is taken breaks up as little of the machine as can be. Here cores are
// 0,8 1,9 2,10 3,11 on socket 0 and 4,12 5,13 6,14 7,15 on socket 1.
func TestTakeCPUs(t *testing.T) {
	for name, c := range map[string]struct {
		free  string
		count int
		want  string
	}{
		"one of a whole machine":                     {"0-15", 1, "0"},
		"a whole core":                               {"0-15", 2, "0,8"},
		"a core and a half":                          {"0-15", 3, "0-1,8"},
		"a whole socket":                             {"0-15", 8, "0-3,8-11"},
		"a socket and a core of the other":           {"0-15", 10, "0-4,8-12"},
		"all":                                        {"0-15", 16, "0-15"},
		"the rest of a core before a new one":        {"1-15", 1, "8"},
		"whole cores although a half is free":        {"1-15", 2, "1,9"},
		"the socket that is broken up already":       {"1-15", 4, "1-2,9-10"},
		"the whole socket where the other is not":    {"1-15", 8, "4-7,12-15"},
		"halves where there are no whole cores":      {"0,2,12", 2, "0,2"},
		"single ones beside what was taken already":  {"0,8,2,12,13", 3, "0,2,8"},
		"the core, and a half of the socket that is": {"4,12,1,5", 3, "4-5,12"},
	} {
		if got := reconcile.TakeFreeCPUs(machine(2, 4), set(c.free), c.count).String(); got != c.want {
			t.Errorf("%s: %d of %s are %s, want %s", name, c.count, c.free, got, c.want)
		}
	}
}

func TestTakenCPUsAreFree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		online := machine(rapid.IntRange(1, 2).Draw(t, "sockets"), rapid.IntRange(1, 4).Draw(t, "cores"))
		free := cpuset.New(rapid.SliceOfDistinct(rapid.IntRange(0, len(online)-1), rapid.ID).Draw(t, "free")...)
		count := rapid.IntRange(0, free.Size()).Draw(t, "count")
		got := reconcile.TakeFreeCPUs(online, free, count)
		if got.Size() != count || !got.IsSubsetOf(free) {
			t.Fatalf("%d of %s are %s", count, free, got)
		}
		// No more cores are broken up than must be.
		broken, whole := 0, 0
		for _, c := range online {
			pair := cpuset.New()
			for _, o := range online {
				if o.Core == c.Core {
					pair = pair.Union(cpuset.New(o.ID))
				}
			}
			if c.ID != pair.List()[0] {
				continue
			}
			if pair.IsSubsetOf(free) {
				whole++
				if n := pair.Intersection(got).Size(); n == 1 {
					broken++
				}
			}
		}
		if need := max(0, count/2-whole); need == 0 && broken > count%2 {
			t.Fatalf("%d of %s are %s: %d cores broken up", count, free, got, broken)
		}
	})
}

// pinned is a pod with those containers; "!" before a name initialises, "+" is a
// sidecar. A number of CPUs makes it whole or not.
func pinnedPod(name string, containers ...string) *pod.Pod {
	var init, main []string
	for _, text := range containers {
		container, cpus, _ := strings.Cut(text, "=")
		entry := fmt.Sprintf("{name: %s, resources: {limits: {cpu: %q, memory: 64Mi}}%%s}", strings.TrimLeft(container, "!+"), cpus)
		switch container[0] {
		case '!':
			init = append(init, fmt.Sprintf(entry, ""))
		case '+':
			init = append(init, fmt.Sprintf(entry, ", restartPolicy: Always"))
		default:
			main = append(main, fmt.Sprintf(entry, ""))
		}
	}
	p := &v1.Pod{}
	if err := yaml.UnmarshalStrict([]byte(fmt.Sprintf("{initContainers: [%s], containers: [%s]}", strings.Join(init, ","), strings.Join(main, ","))), &p.Spec); err != nil {
		panic(err)
	}
	p.Namespace, p.Name = "default", name
	defaults.Pod(p)
	return &pod.Pod{Object: p}
}

// four is a machine of four CPUs in two cores, 0,2 and 1,3, with one kept back.
func four() *reconcile.CPULedger {
	return reconcile.NewCPULedger(reconcile.Pinning{Static: true, Online: machine(1, 2), Reserved: set("0")})
}

func TestOwnCPUs(t *testing.T) {
	for name, c := range map[string]struct {
		pod    *pod.Pod
		want   map[string]string
		shared string
	}{
		"whole ones":                   {pinnedPod("p", "a=2"), map[string]string{"a": "1,3"}, "0,2"},
		"parts of one":                 {pinnedPod("p", "a=1500m"), nil, "0-3"},
		"one of each":                  {pinnedPod("p", "a=1", "b=500m"), map[string]string{"a": "2"}, "0-1,3"},
		"init uses those of main":      {pinnedPod("p", "!i=1", "a=2"), map[string]string{"a": "1,3", "i": "1"}, "0,2"},
		"init that needs more":         {pinnedPod("p", "!i=3", "a=2"), map[string]string{"a": "1,3", "i": "1-3"}, "0"},
		"an init after a greedy one":   {pinnedPod("p", "!i=3", "!j=3", "a=1"), map[string]string{"a": "2", "i": "1-3", "j": "1-3"}, "0"},
		"a sidecar shares with nobody": {pinnedPod("p", "+s=1", "!i=2", "a=2"), map[string]string{"s": "2", "a": "1,3", "i": "1,3"}, "0"},
	} {
		l := four()
		if changed, refusal := l.Claim(c.pod); refusal != (reconcile.Waiting{}) || changed != (c.want != nil) {
			t.Errorf("%s: changed %v, refused %v", name, changed, refusal)
		}
		if diff := cmp.Diff(c.want, l.Own(c.pod)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if got := l.Shared(); got != c.shared {
			t.Errorf("%s: %s are shared, want %s", name, got, c.shared)
		}
		if changed, refusal := l.Claim(c.pod); changed || refusal != (reconcile.Waiting{}) {
			t.Errorf("%s, asked again: changed %v, refused %v", name, changed, refusal)
		}
	}
}

// Only Guaranteed pods have CPUs for themselves, and none with resources as a whole.
func TestNoCPUsOfTheirOwn(t *testing.T) {
	for name, spec := range map[string]string{
		"burstable":            `{containers: [{name: a, resources: {requests: {cpu: 1, memory: 1Gi}, limits: {cpu: 2, memory: 1Gi}}}]}`,
		"best effort":          `{containers: [{name: a}]}`,
		"burstable by another": `{containers: [{name: a, resources: {limits: {cpu: 1, memory: 1Gi}}}, {name: b}]}`,
		"as a whole":           `{resources: {limits: {cpu: 1, memory: 1Gi}}, containers: [{name: a, resources: {limits: {cpu: 1, memory: 1Gi}}}]}`,
	} {
		p := &v1.Pod{}
		if err := yaml.UnmarshalStrict([]byte(spec), &p.Spec); err != nil {
			t.Fatal(err)
		}
		defaults.Pod(p)
		l := four()
		if changed, refusal := l.Claim(&pod.Pod{Object: p}); changed || refusal != (reconcile.Waiting{}) || l.Shared() != "0-3" {
			t.Errorf("%s: changed %v, refused %v, shared %s", name, changed, refusal, l.Shared())
		}
	}
}

func TestTooFewCPUs(t *testing.T) {
	l := four()
	first, second := pinnedPod("first", "a=2"), pinnedPod("second", "a=1", "b=1")
	l.Claim(first)
	changed, refusal := l.Claim(second)
	want := reconcile.Waiting{Reason: "UnexpectedAdmissionError",
		Message: "Allocate failed due to not enough cpus available to satisfy request: requested=1, available=0, which is unexpected"}
	if changed || refusal != want || l.Own(second) != nil {
		t.Errorf("changed %v, %v, has %v; want all or nothing, and %v", changed, refusal, l.Own(second), want)
	}
	// What the first gives back is the second's.
	if !l.Keep(first.Key(), func(pod.Hash) bool { return false }) || l.Keep(first.Key(), func(pod.Hash) bool { return false }) {
		t.Error("the CPUs of the first did not come back, or twice")
	}
	if _, refusal := l.Claim(second); refusal != (reconcile.Waiting{}) {
		t.Errorf("still refused: %v", refusal)
	}
	if diff := cmp.Diff(map[string]string{"a": "2", "b": "1"}, l.Own(second)); diff != "" {
		t.Error(diff)
	}
}

// An edit in place keeps what can be kept.
func TestEditedCPUs(t *testing.T) {
	l := four()
	l.Claim(pinnedPod("p", "a=1", "b=1"))
	if diff := cmp.Diff(map[string]string{"a": "2", "b": "1"}, l.Own(pinnedPod("p"))); diff != "" {
		t.Fatal(diff)
	}
	for _, c := range []struct {
		containers []string
		want       map[string]string
		refused    bool
	}{
		{[]string{"a=1", "b=2"}, map[string]string{"a": "2", "b": "1,3"}, false},
		{[]string{"a=2", "b=2"}, map[string]string{"a": "2", "b": "1,3"}, true},
		{[]string{"a=500m", "b=2"}, map[string]string{"b": "1,3"}, false},
		{[]string{"a=500m", "b=1"}, map[string]string{"b": "1"}, false},
		{[]string{"a=500m", "b=500m"}, nil, false},
	} {
		p := pinnedPod("p", c.containers...)
		_, refusal := l.Claim(p)
		if (refusal != (reconcile.Waiting{})) != c.refused {
			t.Errorf("%v: %v", c.containers, refusal)
		}
		if diff := cmp.Diff(c.want, l.Own(p)); diff != "" {
			t.Errorf("%v (-want +got):\n%s", c.containers, diff)
		}
	}
}

// After a restart of the agent each container has what it had, unless that cannot be
// its own any more.
func TestRestoredCPUs(t *testing.T) {
	for name, cpus := range map[string]string{"its own": "1,3", "": ""} {
		l := four()
		p := pinnedPod("p", "a=2")
		l.Restore(p, "a", cpus)
		l.Claim(p)
		if got := l.Own(p)["a"]; got != "1,3" {
			t.Errorf("%s: %s", name, got)
		}
	}
	l := four()
	p, q := pinnedPod("p", "a=1"), pinnedPod("q", "a=1")
	l.Restore(p, "a", "3")
	l.Restore(q, "a", "3") // another's
	l.Restore(q, "a", "0") // reserved
	l.Restore(q, "a", "7") // gone
	l.Restore(q, "a", "x")
	if l.Own(p)["a"] != "3" || l.Own(q) != nil || l.Shared() != "0-2" {
		t.Errorf("p has %v, q has %v, shared are %s", l.Own(p), l.Own(q), l.Shared())
	}
}

// Whatever comes and goes: no CPU is two containers' that run beside each other, none
// is reserved, and each has as many as it asks for.
func TestCPULedgerProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		online := machine(2, rapid.IntRange(1, 3).Draw(t, "cores"))
		reserved := cpuset.New(rapid.IntRange(0, len(online)-1).Draw(t, "reserved"))
		l := reconcile.NewCPULedger(reconcile.Pinning{Static: true, Online: online, Reserved: reserved})
		held := map[string]map[string]int{}
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			name := rapid.SampledFrom([]string{"p", "q", "r"}).Draw(t, "pod")
			a, b := rapid.IntRange(1, 4).Draw(t, "a"), rapid.IntRange(1, 4).Draw(t, "b")
			p := pinnedPod(name, fmt.Sprintf("a=%d", a), fmt.Sprintf("b=%d", b))
			if rapid.Bool().Draw(t, "goes") {
				l.Keep(p.Key(), func(pod.Hash) bool { return false })
				delete(held, name)
			} else if _, refusal := l.Claim(p); refusal == (reconcile.Waiting{}) {
				held[name] = map[string]int{"a": a, "b": b}
			}
			left := cpuset.New()
			for _, c := range online {
				left = left.Union(cpuset.New(c.ID))
			}
			for name, containers := range held {
				own := l.Own(pinnedPod(name))
				for container, need := range containers {
					cpus := set(own[container])
					if cpus.Size() != need || !cpus.IsSubsetOf(left) || !cpus.Intersection(reserved).IsEmpty() {
						t.Fatalf("%s/%s has %s of %s, wants %d, %s is reserved", name, container, cpus, left, need, reserved)
					}
					left = left.Difference(cpus)
				}
			}
			if l.Shared() != left.String() {
				t.Fatalf("%s are shared, want %s", l.Shared(), left)
			}
		}
	})
}
