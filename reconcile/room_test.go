package reconcile_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/podkeeper/podkeeper/manifests/defaults"
	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/reconcile"
)

// demanding returns a pod with the defaults of a manifest.
func demanding(t testing.TB, name, spec string) *pod.Pod {
	t.Helper()
	p := &v1.Pod{}
	if err := yaml.UnmarshalStrict([]byte("spec: {"+spec+"}"), p); err != nil {
		t.Fatal(err)
	}
	p.Namespace, p.Name = "default", name
	defaults.Pod(p)
	return &pod.Pod{Object: p}
}

// sized returns a pod that asks for that much CPU, in thousandths: with a trailing
// j one that comes to its end, with a trailing ! a critical one.
func sized(t testing.TB, name, cpu string) *pod.Pod {
	t.Helper()
	more := ""
	if strings.HasSuffix(cpu, "j") {
		more = ", restartPolicy: Never"
	}
	if strings.HasSuffix(cpu, "!") {
		more = ", priority: 2000000000"
	}
	return demanding(t, name, fmt.Sprintf("containers: [{name: c, resources: {requests: {cpu: %sm}}}]%s", strings.Trim(cpu, "j!"), more))
}

// What a pod asks for as a whole, as Kubernetes reckons it.
func TestDemand(t *testing.T) {
	for name, c := range map[string]struct {
		spec string
		want reconcile.Demand
	}{
		"nothing": {"containers: [{name: c}]", reconcile.Demand{"pods": 1}},
		"the sum of its containers": {
			"containers: [{name: c, resources: {requests: {cpu: 1500m, memory: 1Ki}}}, {name: d, resources: {requests: {cpu: 1, ephemeral-storage: 5}}}]",
			reconcile.Demand{"pods": 1, "cpu": 2500, "memory": 1024, "ephemeral-storage": 5},
		},
		"limits where there are no requests": {
			"containers: [{name: c, resources: {limits: {cpu: 2}}}]", reconcile.Demand{"pods": 1, "cpu": 2000},
		},
		"an init container that needs more": {
			"initContainers: [{name: i, resources: {requests: {cpu: 3}}}, {name: j, resources: {requests: {cpu: 1}}}], containers: [{name: c, resources: {requests: {cpu: 2}}}]",
			reconcile.Demand{"pods": 1, "cpu": 3000},
		},
		"a sidecar runs beside the containers": {
			"initContainers: [{name: i, restartPolicy: Always, resources: {requests: {cpu: 1}}}], containers: [{name: c, resources: {requests: {cpu: 2}}}]",
			reconcile.Demand{"pods": 1, "cpu": 3000},
		},
		"an init container after a sidecar": {
			"initContainers: [{name: s, restartPolicy: Always, resources: {requests: {cpu: 1}}}, {name: i, resources: {requests: {cpu: 4}}}], containers: [{name: c, resources: {requests: {cpu: 2}}}]",
			reconcile.Demand{"pods": 1, "cpu": 5000},
		},
		"an init container before a sidecar": {
			"initContainers: [{name: i, resources: {requests: {cpu: 4}}}, {name: s, restartPolicy: Always, resources: {requests: {cpu: 1}}}], containers: [{name: c, resources: {requests: {cpu: 2}}}]",
			reconcile.Demand{"pods": 1, "cpu": 4000},
		},
		"the pod's own, for what it names": {
			"resources: {requests: {cpu: 1}}, containers: [{name: c, resources: {requests: {cpu: 500m, memory: 7}}}]",
			reconcile.Demand{"pods": 1, "cpu": 1000, "memory": 7},
		},
		"overhead": {
			"overhead: {cpu: 100m, memory: 3}, containers: [{name: c, resources: {requests: {cpu: 1}}}]",
			reconcile.Demand{"pods": 1, "cpu": 1100, "memory": 3},
		},
		"huge pages": {
			"containers: [{name: a, resources: {limits: {hugepages-2Mi: 32Mi}}}, {name: b, resources: {limits: {hugepages-2Mi: 34Mi}}}]",
			reconcile.Demand{"pods": 1, "hugepages-2Mi": 66 << 20},
		},
		"huge pages in a row": {
			"initContainers: [{name: i, resources: {limits: {hugepages-2Mi: 64Mi}}}], containers: [{name: a, resources: {limits: {hugepages-2Mi: 64Mi}}}]",
			reconcile.Demand{"pods": 1, "hugepages-2Mi": 64 << 20},
		},
		"huge pages of the pod": {
			"resources: {limits: {hugepages-2Mi: 66Mi}}, containers: [{name: c}]", reconcile.Demand{"pods": 1, "hugepages-2Mi": 66 << 20},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, reconcile.DemandOf(demanding(t, "p", c.spec).Object)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The kubelet's reasons, with its numbers.
func TestRoomRefuses(t *testing.T) {
	node := reconcile.Node{
		HugePages:   map[v1.ResourceName]int64{"hugepages-2Mi": 64 << 20},
		Allocatable: reconcile.Allocatable{CPU: 4000, Memory: 4096, Storage: 100, Pods: 2},
	}
	for name, c := range map[string]struct {
		has, asks string // requests
		more      int    // pods beside it
		want      string
	}{
		"what is left":                            {has: "cpu: 3", asks: "cpu: 1"},
		"too little CPU":                          {has: "cpu: 3500m", asks: "cpu: 2", want: "OutOfcpu: Node didn't have enough resource: cpu, requested: 2000, used: 3500, capacity: 4000"},
		"too little memory":                       {has: "memory: 4Ki", asks: "memory: 1", want: "OutOfmemory: Node didn't have enough resource: memory, requested: 1, used: 4096, capacity: 4096"},
		"too little disk":                         {has: "ephemeral-storage: 99", asks: "ephemeral-storage: 2", want: "OutOfephemeral-storage: Node didn't have enough resource: ephemeral-storage, requested: 2, used: 99, capacity: 100"},
		"too many pods":                           {more: 1, want: "OutOfpods: Node didn't have enough resource: pods, requested: 1, used: 2, capacity: 2"},
		"pods before the CPU":                     {has: "cpu: 4", more: 1, asks: "cpu: 1", want: "OutOfpods: Node didn't have enough resource: pods, requested: 1, used: 2, capacity: 2"},
		"too few huge pages":                      {has: "hugepages-2Mi: 60Mi", asks: "hugepages-2Mi: 6Mi", want: "OutOfhugepages-2Mi: Node didn't have enough resource: hugepages-2Mi, requested: 6291456, used: 62914560, capacity: 67108864"},
		"huge pages of no size that the node has": {asks: "hugepages-1Gi: 1Gi", want: "OutOfhugepages-1Gi: Node didn't have enough resource: hugepages-1Gi, requested: 1073741824, used: 0, capacity: 0"},
		"nothing, of what there is none left":     {has: "cpu: 5", asks: "memory: 1"},
	} {
		t.Run(name, func(t *testing.T) {
			room := reconcile.NewRoom(node.Capacity())
			request := func(name, list string) *pod.Pod {
				return demanding(t, name, "containers: [{name: c, resources: {requests: {"+list+"}}}]")
			}
			room.Hold(request("has", c.has))
			for i := range c.more {
				room.Hold(request(fmt.Sprint("more", i), ""))
			}
			got := room.Lacks(request("asks", c.asks))
			if text := got.String(); got != (reconcile.Waiting{}) && text != c.want || (got == reconcile.Waiting{}) != (c.want == "") {
				t.Errorf("got %q, want %q", text, c.want)
			}
		})
	}
	unknown := reconcile.NewRoom(reconcile.Node{}.Capacity())
	if w := unknown.Lacks(sized(t, "a", "1000000")); w != (reconcile.Waiting{}) {
		t.Errorf("a node of which nothing is known: %s", w)
	}
}

// Who waits longest is served first; who is in nobody's way does not wait for that.
func TestRoomIsFair(t *testing.T) {
	for name, c := range map[string]struct {
		// Pods by name with what they ask for of 4000: those that are in, those that
		// wait, the first one first, and the one that asks.
		in, waiting, asks string
		want              string
	}{
		"nobody waits":                          {in: "a3000", asks: "z1000"},
		"a big one waits for a removal":         {in: "a3000", waiting: "big2000", asks: "z1000"},
		"a big one can never run":               {in: "a1000", waiting: "big9000", asks: "z3000"},
		"a big one waits for a job to end":      {in: "a1000 job2000j", waiting: "big3000", asks: "z1000j", want: "big"},
		"there is room beside it then":          {in: "a1000 job2000j", waiting: "big2000", asks: "z1000"},
		"and beside what came in meanwhile":     {in: "job3000j", waiting: "big3000", asks: "z1000"},
		"it is the first itself":                {in: "a1000 job2000j", waiting: "z3000 big3000", asks: "z3000", want: "no room"},
		"two of them wait":                      {in: "job3000j", waiting: "big2000 huge2000", asks: "z500", want: "big"},
		"the second of them could never run":    {in: "a1000 job2000j", waiting: "big2000 huge4000", asks: "z1000"},
		"a critical pod passes all":             {in: "a1000 job2000j", waiting: "big3000", asks: "z1000!"},
		"a critical pod waits, however shortly": {in: "job3500j", waiting: "z500 crit4000!", asks: "z500", want: "crit"},
	} {
		t.Run(name, func(t *testing.T) {
			room := reconcile.NewRoom(reconcile.Demand{"cpu": 4000})
			parse := func(text string) (list []*pod.Pod) {
				for _, word := range strings.Fields(text) {
					at := strings.IndexAny(word, "0123456789")
					list = append(list, sized(t, word[:at], word[at:]))
				}
				return list
			}
			for _, p := range parse(c.in) {
				room.Hold(p)
			}
			for _, p := range parse(c.waiting) {
				room.Wait(p)
			}
			got, kept := room.Lacks(parse(c.asks)[0]).Message, ""
			if c.want == "no room" {
				if !strings.HasPrefix(got, "Node didn't") || strings.Contains(got, "kept") {
					t.Errorf("got %q", got)
				}
				return
			}
			if c.want != "" {
				kept = "what is left is kept for pod default/" + c.want + ", which waits longer"
			}
			if _, why, _ := strings.Cut(got, "; "); why != kept || kept == "" && got != "" {
				t.Errorf("got %q, want %q", got, kept)
			}
		})
	}
}

// What a pod has already is no obstacle to its next version, and is not taken from
// it: neither by an edit that asks for the same nor by a node that has shrunk.
func TestRoomOfAnEdit(t *testing.T) {
	room := reconcile.NewRoom(reconcile.Demand{"cpu": 4000})
	room.Hold(sized(t, "a", "3000"))
	room.Hold(sized(t, "b", "2000")) // the node was larger
	for edit, want := range map[string]bool{"3000": true, "2500": true, "3001": false, "1000": true} {
		if w := room.Lacks(sized(t, "a", edit)); (w == reconcile.Waiting{}) != want {
			t.Errorf("an edit to %s: %q", edit, w.Message)
		}
	}
	room.Hold(sized(t, "a", "1000"))
	if w := room.Lacks(sized(t, "b", "3000")); w.Message != "Node didn't have enough resource: cpu, requested: 3000, used: 3000, capacity: 4000" {
		t.Errorf("before the edit has taken effect: %q", w.Message)
	}
	if !room.Settle(sized(t, "a", "1000")) || room.Settle(sized(t, "a", "1000")) {
		t.Error("an edit that takes less leaves room, once")
	}
	if w := room.Lacks(sized(t, "b", "3000")); w != (reconcile.Waiting{}) {
		t.Errorf("after the edit has taken effect: %s", w)
	}
}

// Whoever comes and goes: what was let in never asks for more than there is, and
// who waits is let in once those before him are gone, however many come meanwhile.
func TestRoomProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		const most = 8
		room := reconcile.NewRoom(reconcile.Demand{"cpu": most})
		in := map[string]int{}
		name := func(i int) string { return fmt.Sprintf("p%02d", i) }
		kinds := []string{"", "j"}
		sizes, kindOf := map[string]int{}, map[string]string{}
		try := func(n string) bool {
			p := sized(t, n, fmt.Sprint(sizes[n])+kindOf[n])
			if room.Lacks(p) != (reconcile.Waiting{}) {
				room.Wait(p)
				return false
			}
			room.Hold(p)
			in[n] = sizes[n]
			return true
		}
		// The one that is watched: it fits beside those that stay.
		permanent := 0
		for i := range 30 {
			n := name(i)
			sizes[n], kindOf[n] = rapid.IntRange(1, most).Draw(rt, "size"), rapid.SampledFrom(kinds).Draw(rt, "kind")
			try(n)
			if leaver := rapid.IntRange(0, 60).Draw(rt, "leaves"); leaver <= i && kindOf[name(leaver)] == "j" && in[name(leaver)] > 0 {
				room.Release(pod.Key{Namespace: "default", Name: name(leaver)})
				delete(in, name(leaver))
				for _, p := range room.Queue() {
					try(p.Key().Name)
				}
			}
			sum := 0
			for _, size := range in {
				sum += size
			}
			if sum > most {
				rt.Fatalf("%d of %d are taken", sum, most)
			}
		}
		for n, size := range in {
			if kindOf[n] == "" {
				permanent += size
			}
		}
		queue := room.Queue()
		watched := slices.IndexFunc(queue, func(p *pod.Pod) bool { return permanent+sizes[p.Key().Name] <= most })
		if watched < 0 {
			return
		}
		first := queue[watched].Key().Name
		there := slices.Collect(maps.Keys(in))
		for i := 30; i < 60; i++ { // others come and go before those that are there end
			n := name(i)
			sizes[n], kindOf[n] = rapid.IntRange(1, most).Draw(rt, "size"), rapid.SampledFrom(kinds).Draw(rt, "kind")
			try(n)
		}
		for _, n := range there {
			if kindOf[n] == "j" {
				room.Release(pod.Key{Namespace: "default", Name: n})
				delete(in, n)
			}
		}
		for _, p := range room.Queue() {
			try(p.Key().Name)
		}
		if in[first] == 0 {
			rt.Fatalf("%s still waits: %v are in", first, in)
		}
	})
}

// Whom a critical pod takes the room of, as the kubelet chooses.
func TestPreempt(t *testing.T) {
	const (
		guaranteed = "containers: [{name: c, resources: {limits: {cpu: %dm, memory: 1}}}]"
		burstable  = "containers: [{name: c, resources: {requests: {cpu: %dm}}}]"
		bestEffort = "containers: [{name: c}]"
	)
	pods := map[string]string{
		"g1": fmt.Sprintf(guaranteed, 1000), "g2": fmt.Sprintf(guaranteed, 2000),
		"b1": fmt.Sprintf(burstable, 1000), "b2": fmt.Sprintf(burstable, 2000), "b3": fmt.Sprintf(burstable, 3000),
		"low1": "priority: -5, " + fmt.Sprintf(burstable, 1000),
		"e1":   bestEffort, "e2": bestEffort,
		"node":    "priorityClassName: system-node-critical, priority: 2000001000, " + fmt.Sprintf(burstable, 1000),
		"cluster": "priority: 2000000000, " + fmt.Sprintf(burstable, 2000),
	}
	for name, c := range map[string]struct {
		in       string
		critical string // what the critical pod asks for; a trailing ! is more than one of the cluster
		yields   string
		want     string
	}{
		"there is room":                         {in: "b1 b2", critical: "1000"},
		"the one that is enough":                {in: "b1 b3", critical: "2000", want: "b3"},
		"the smallest that is enough":           {in: "b1 b2 g1", critical: "1000", want: "b1"},
		"burstable before guaranteed":           {in: "g1 g2 b1", critical: "1000", want: "b1"},
		"guaranteed where the others do not do": {in: "g2 b1 e1", critical: "2500", want: "g2"},
		"best effort gives no CPU":              {in: "e1 e2 b3 g1", critical: "1000", want: "b3"},
		"several where none is enough":          {in: "b1 b2 g1", critical: "3000", want: "b1 b2"},
		"the lower priority of two alike":       {in: "b1 low1 g2", critical: "1000", want: "low1"},
		"others cannot make enough":             {in: "b1 b2", critical: "5000"},
		"critical ones stay":                    {in: "node b3", critical: "4000"},
		"unless this one is more so":            {in: "cluster g2", critical: "2000!", want: "cluster"},
		"what is on its way out counts as gone": {in: "b1 b3", critical: "2000", yields: "b3"},
		"and only the rest is taken":            {in: "b1 b2 g1", critical: "2000", yields: "b1", want: "b2"},
	} {
		t.Run(name, func(t *testing.T) {
			room := reconcile.NewRoom(reconcile.Demand{"cpu": 4000})
			for _, n := range strings.Fields(c.in) {
				room.Hold(demanding(t, n, pods[n]))
			}
			for _, n := range strings.Fields(c.yields) {
				room.Yield(pod.Key{Namespace: "default", Name: n})
			}
			priority := 2000000000
			if strings.HasSuffix(c.critical, "!") {
				priority = 2000001000
			}
			critical := demanding(t, "crit", fmt.Sprintf("priority: %d, containers: [{name: c, resources: {requests: {cpu: %sm}}}]", priority, strings.Trim(c.critical, "!")))
			var got []string
			for _, p := range room.Preempt(critical) {
				got = append(got, p.Key().Name)
			}
			if diff := cmp.Diff(c.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	room := reconcile.NewRoom(reconcile.Demand{"pods": 2})
	room.Hold(demanding(t, "e1", bestEffort))
	room.Hold(demanding(t, "g1", pods["g1"]))
	if got := room.Preempt(demanding(t, "crit", "priority: 2000000000, "+bestEffort)); len(got) != 1 || got[0].Key().Name != "e1" {
		t.Errorf("for a pod too many %d go", len(got))
	}
	if got := room.Preempt(demanding(t, "plain", bestEffort)); got != nil {
		t.Error("a pod that is not critical takes the room of others")
	}
}
