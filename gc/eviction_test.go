package gc_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/podkeeper/podkeeper/gc"
	"github.com/podkeeper/podkeeper/node/stats"
	"github.com/podkeeper/podkeeper/pod"
)

const mi = 1 << 20

func ptr[T any](v T) *T { return &v }

// candidate returns a pod that uses and asked for that much memory, in Mi; used -1
// is not known.
func candidate(name string, used, asked int64, priority int32) gc.Candidate {
	c := gc.Candidate{UID: types.UID(name), Pod: &pod.Pod{Object: &v1.Pod{Spec: v1.PodSpec{Priority: &priority, Containers: []v1.Container{{Name: "app"}}}}}}
	c.Pod.Object.Name = name
	c.Pod.Object.Spec.Volumes = []v1.Volume{{Name: "data", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}}}
	if asked > 0 {
		c.Pod.Object.Spec.Containers[0].Resources.Requests = v1.ResourceList{
			v1.ResourceMemory:           *resource.NewQuantity(asked*mi, resource.BinarySI),
			v1.ResourceEphemeralStorage: *resource.NewQuantity(asked*mi, resource.BinarySI),
		}
	}
	if used >= 0 {
		c.Stats = &stats.Pod{
			Cgroup:     stats.Cgroup{WorkingSet: ptr(used * mi), Processes: ptr(used)},
			Containers: map[string]stats.Container{"app": {RootFS: &stats.Usage{Bytes: used * mi, Inodes: used}}},
			Volumes:    map[string]stats.Usage{"data": {Bytes: used * mi / 2, Inodes: used / 2}},
		}
	}
	return c
}

func names(list []gc.Candidate) (out []string) {
	for _, c := range list {
		out = append(out, string(c.UID))
	}
	return out
}

// oneDisk is a node on which everything lies on one filesystem.
func oneDisk() stats.Node {
	fs := &stats.Filesystem{Path: "/", Device: "1", Capacity: 100 << 30, Available: 50 << 30, Inodes: ptr(int64(1000)), InodesFree: ptr(int64(500))}
	return stats.Node{NodeFS: fs, ImageFS: fs, ContainerFS: fs}
}

// TestRank holds C113.
func TestRank(t *testing.T) {
	list := []gc.Candidate{
		candidate("A", 500, 1024, 0), candidate("B", 300, 100, 0), candidate("C", 900, 100, 1000),
		candidate("D", 50, 0, 0), candidate("E", 400, 100, 0), candidate("F", -1, 0, 0),
		candidate("critical", 2000, 0, 2_000_000_000), candidate("exempt", 2000, 0, 0),
	}
	list[7].Pod.Object.Annotations = map[string]string{"podkeeper.io/evict": "never"}
	other := oneDisk()
	other.NodeFS = &stats.Filesystem{Path: "/var/lib/podkeeper", Device: "2"}
	for name, c := range map[string]struct {
		signal gc.Signal
		node   stats.Node
		want   string
	}{
		"memory":                     {gc.MemoryAvailable, oneDisk(), "F E B D C A"},
		"the one disk":               {gc.NodeFSAvailable, oneDisk(), "F E B D C A"},
		"the disk of the images":     {gc.ImageFSAvailable, other, "F E B D C A"},
		"the disk of the volumes":    {gc.NodeFSAvailable, other, "F E B D C A"},
		"inodes, nobody asks for":    {gc.NodeFSInodesFree, oneDisk(), "F A E B D C"},
		"processes, by their number": {gc.PIDAvailable, oneDisk(), "A E B D F C"},
	} {
		t.Run(name, func(t *testing.T) {
			got := gc.Rank(gc.Shortfall{Threshold: gc.Threshold{Signal: c.signal}}, c.node, list)
			if diff := cmp.Diff(c.want, strings.Join(names(got), " ")); diff != "" {
				t.Errorf("order (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRankKnowsWhatLiesWhere holds that only what lies on the filesystem that is
// short counts: a pod full of data elsewhere is not ended for it.
func TestRankKnowsWhatLiesWhere(t *testing.T) {
	layers, volumes := candidate("layers", 300, 0, 0), candidate("volumes", 200, 0, 0)
	layers.Stats.Volumes = map[string]stats.Usage{"data": {}}
	volumes.Stats.Containers = map[string]stats.Container{"app": {RootFS: &stats.Usage{}}}
	node := oneDisk()
	node.NodeFS = &stats.Filesystem{Path: "/var/lib/podkeeper", Device: "2"}
	none := candidate("none", 100, 0, 0)
	none.Pod.Object.Spec.Volumes, none.Stats.Containers = nil, map[string]stats.Container{}
	for signal, want := range map[gc.Signal]string{gc.NodeFSAvailable: "volumes", gc.ImageFSAvailable: "layers", gc.ContainerFSAvailable: "layers"} {
		got := gc.Rank(gc.Shortfall{Threshold: gc.Threshold{Signal: signal}}, node, []gc.Candidate{none, layers, volumes})
		if string(got[0].UID) != want {
			t.Errorf("for %s they go in the order %s", signal, names(got))
		}
	}
	unseen := candidate("unseen", 1, 0, 0)
	unseen.Stats.Volumes = nil
	got := gc.Rank(gc.Shortfall{Threshold: gc.Threshold{Signal: gc.NodeFSAvailable}}, node, []gc.Candidate{volumes, none, unseen})
	if string(got[0].UID) != "unseen" {
		t.Errorf("one of which nobody knows goes as in %s", names(got))
	}
}

// TestRankProperties compares the order with a naive twin that looks for who
// comes first among those that are left.
func TestRankProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var list []gc.Candidate
		for i := range rapid.IntRange(0, 12).Draw(t, "pods") {
			c := candidate(fmt.Sprintf("p%02d", i), rapid.Int64Range(-1, 5).Draw(t, "used"), rapid.Int64Range(0, 5).Draw(t, "asked"),
				rapid.SampledFrom([]int32{0, 1, 1000, 1_999_999_999, 2_000_000_000}).Draw(t, "priority"))
			list = append(list, c)
		}
		shuffled := rapid.Permutation(list).Draw(t, "order")
		got := gc.Rank(gc.Shortfall{Threshold: gc.Threshold{Signal: gc.MemoryAvailable}}, oneDisk(), shuffled)
		var want []string
		left := slices.DeleteFunc(slices.Clone(list), func(c gc.Candidate) bool { return *c.Pod.Object.Spec.Priority >= 2_000_000_000 })
		for len(left) > 0 {
			at := 0
			for i := range left {
				if goesBefore(left[i], left[at]) {
					at = i
				}
			}
			want = append(want, string(left[at].UID))
			left = slices.Delete(left, at, at+1)
		}
		if diff := cmp.Diff(want, names(got)); diff != "" {
			t.Errorf("order (-want +got):\n%s", diff)
		}
	})
}

func goesBefore(a, b gc.Candidate) bool {
	if (a.Stats == nil) != (b.Stats == nil) {
		return a.Stats == nil
	}
	over := func(c gc.Candidate) int64 {
		asked := c.Pod.Object.Spec.Containers[0].Resources.Requests.Memory().Value()
		if c.Stats == nil {
			return -asked
		}
		return *c.Stats.WorkingSet - asked
	}
	if (over(a) > 0) != (over(b) > 0) {
		return over(a) > 0
	}
	if p, q := *a.Pod.Object.Spec.Priority, *b.Pod.Object.Spec.Priority; p != q {
		return p < q
	}
	if over(a) != over(b) {
		return over(a) > over(b)
	}
	return a.UID < b.UID
}

func TestThresholds(t *testing.T) {
	for name, c := range map[string]struct {
		text gc.EvictionText
		want []gc.Threshold
		errs []string // part: part of the message
	}{
		"hard": {
			text: gc.EvictionText{Hard: map[string]string{"nodefs.available": "10%", "memory.available": "100Mi", "pid.available": "1000"}, Reclaim: map[string]string{"nodefs.available": "500Mi"}},
			want: []gc.Threshold{
				{Signal: gc.MemoryAvailable, Amount: gc.Amount{Value: 100 * mi}},
				{Signal: gc.NodeFSAvailable, Amount: gc.Amount{Percent: 10}, Reclaim: gc.Amount{Value: 500 * mi}},
				{Signal: gc.PIDAvailable, Amount: gc.Amount{Value: 1000}},
			},
		},
		"soft": {
			text: gc.EvictionText{Soft: map[string]string{"memory.available": "1.5%"}, SoftGrace: map[string]string{"memory.available": "1m30s"}},
			want: []gc.Threshold{{Signal: gc.MemoryAvailable, Amount: gc.Amount{Percent: 1.5}, Soft: true, Grace: 90 * time.Second}},
		},
		"switched off as in a kubelet": {text: gc.EvictionText{Hard: map[string]string{"memory.available": "0%", "nodefs.available": "100%"}}},
		"soft without a grace period":  {text: gc.EvictionText{Soft: map[string]string{"memory.available": "1Gi"}}, errs: []string{"eviction-soft: memory.available: a soft threshold needs a grace period"}},
		"unknown signal":               {text: gc.EvictionText{Hard: map[string]string{"memory.free": "1Gi"}, SoftGrace: map[string]string{"x": "1s"}}, errs: []string{`eviction-soft-grace-period: unknown signal "x"`, `eviction-hard: unknown signal "memory.free"`}},
		"no quantity":                  {text: gc.EvictionText{Hard: map[string]string{"memory.available": "lots"}}, errs: []string{`eviction-hard: memory.available: "lots": want a quantity such as 100Mi, or a percentage`}},
		"no percentage":                {text: gc.EvictionText{Hard: map[string]string{"nodefs.available": "x%"}}, errs: []string{`eviction-hard: nodefs.available: "x%": want a percentage`}},
		"not a number":                 {text: gc.EvictionText{Hard: map[string]string{"nodefs.available": "NaN%"}}, errs: []string{`eviction-hard: nodefs.available: "NaN%": want a percentage`}},
		"more than all":                {text: gc.EvictionText{Hard: map[string]string{"nodefs.available": "101%"}}, errs: []string{`eviction-hard: nodefs.available: "101%": want a percentage`}},
		"negative":                     {text: gc.EvictionText{Hard: map[string]string{"memory.available": "-1Gi"}}, errs: []string{"eviction-hard: memory.available: -1Gi: want 0 or more"}},
		"nothing":                      {text: gc.EvictionText{Hard: map[string]string{"memory.available": "0"}}, errs: []string{"eviction-hard: memory.available: 0: want more than 0"}},
		"no duration":                  {text: gc.EvictionText{SoftGrace: map[string]string{"memory.available": "90"}}, errs: []string{`eviction-soft-grace-period: memory.available: "90": want a duration`}},
		"negative duration":            {text: gc.EvictionText{SoftGrace: map[string]string{"memory.available": "-1s"}}, errs: []string{"eviction-soft-grace-period: memory.available: -1s: want 0 or more"}},
		"reclaim that is none":         {text: gc.EvictionText{Reclaim: map[string]string{"memory.available": "?"}}, errs: []string{`eviction-minimum-reclaim: memory.available: "?": want a quantity`}},
	} {
		t.Run(name, func(t *testing.T) {
			var errs []error
			got := c.text.Thresholds(func(part string, err error) { errs = append(errs, fmt.Errorf("%s: %w", part, err)) })
			if diff := cmp.Diff(c.want, got); len(c.errs) == 0 && diff != "" {
				t.Errorf("thresholds (-want +got):\n%s", diff)
			}
			for i, want := range c.errs {
				if i >= len(errs) || !strings.HasPrefix(errs[i].Error(), want) {
					t.Errorf("errors: %v, want %q", errors.Join(errs...), want)
				}
			}
			if len(errs) > len(c.errs) {
				t.Errorf("errors: %v", errors.Join(errs...))
			}
		})
	}
}

// TestOverLimit holds whom its own limit evicts, and what is said of it.
func TestOverLimit(t *testing.T) {
	now := time.Now()
	quantity := func(n int64) v1.ResourceList {
		return v1.ResourceList{v1.ResourceEphemeralStorage: *resource.NewQuantity(n*mi, resource.BinarySI)}
	}
	used := func(n int64) *stats.Usage { return &stats.Usage{Time: now, Bytes: n * mi} }
	for name, c := range map[string]struct {
		change func(*gc.Candidate)
		want   string
	}{
		"nothing":                   {func(*gc.Candidate) {}, ""},
		"a volume beyond its limit": {func(c *gc.Candidate) { c.Stats.Volumes["v"] = *used(11) }, `Usage of EmptyDir volume "v" exceeds the limit "10Mi": it is 11Mi.`},
		"a volume at its limit":     {func(c *gc.Candidate) { c.Stats.Volumes["v"] = *used(10) }, ""},
		"another volume":            {func(c *gc.Candidate) { c.Stats.Volumes["w"] = *used(60) }, ""},
		"a container":               {func(c *gc.Candidate) { c.Stats.Containers["a"] = stats.Container{RootFS: used(30), Logs: used(25)} }, `Container a exceeded its local ephemeral storage limit "50Mi": it is using 55Mi.`},
		"all of them together":      {func(c *gc.Candidate) { c.Stats.Volumes["w"] = *used(101) }, `Pod ephemeral local storage usage exceeds the total limit of containers 100Mi: it is 101Mi.`},
		"nobody has looked":         {func(c *gc.Candidate) { c.Stats = nil }, ""},
		"what was there before":     {func(c *gc.Candidate) { c.Stats.Volumes["v"] = *used(11); c.Since = now.Add(time.Second) }, ""},
		"a critical pod": {func(c *gc.Candidate) {
			c.Stats.Volumes["v"] = *used(11)
			c.Pod.Object.Spec.PriorityClassName = "system-node-critical"
		}, ""},
		"one that is never to go": {func(c *gc.Candidate) {
			c.Stats.Volumes["v"] = *used(11)
			c.Pod.Object.Annotations = map[string]string{pod.EvictAnnotation: "never"}
		}, ""},
		"a volume in memory": {func(c *gc.Candidate) { c.Stats.Volumes["m"] = *used(200) }, ""},
		"an init container that asks": {func(c *gc.Candidate) {
			c.Stats.Volumes["w"] = *used(150)
			c.Pod.Object.Spec.InitContainers = []v1.Container{{Name: "i", Resources: v1.ResourceRequirements{Limits: quantity(200)}}}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			volume := func(name string, medium v1.StorageMedium, limit int64) v1.Volume {
				v := v1.Volume{Name: name, VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{Medium: medium}}}
				if limit > 0 {
					v.EmptyDir.SizeLimit = resource.NewQuantity(limit*mi, resource.BinarySI)
				}
				return v
			}
			limits := v1.ResourceRequirements{Limits: quantity(50)}
			can := gc.Candidate{
				UID: "u", Since: now.Add(-time.Second),
				Pod: &pod.Pod{Object: &v1.Pod{Spec: v1.PodSpec{
					Containers: []v1.Container{{Name: "a", Resources: limits}, {Name: "b", Resources: limits}},
					Volumes:    []v1.Volume{volume("v", "", 10), volume("w", "", 0), volume("m", v1.StorageMediumMemory, 10)},
				}}},
				Stats: &stats.Pod{Containers: map[string]stats.Container{}, Volumes: map[string]stats.Usage{}},
			}
			c.change(&can)
			if !gc.Limited(can.Pod.Object) {
				t.Error("it counts as one without limits")
			}
			got, ok := gc.OverLimit(can)
			if ok != (c.want != "") || got.Message != c.want && ok {
				t.Errorf("%v %q, want %q", ok, got.Message, c.want)
			}
			if ok && (got.Cause != pod.OwnLimit || got.Reason != "Evicted" || got.Grace != time.Second) {
				t.Errorf("verdict: %+v", got)
			}
		})
	}
}

// TestVerdict pins what people read of an eviction.
func TestVerdict(t *testing.T) {
	policy := gc.EvictionPolicy{SoftGrace: 20 * time.Second}
	for name, c := range map[string]struct {
		s     gc.Shortfall
		want  string
		grace time.Duration
	}{
		"memory, hard": {
			gc.Shortfall{Threshold: gc.Threshold{Signal: gc.MemoryAvailable, Amount: gc.Amount{Value: 100 * mi}}, Reading: gc.Reading{Available: 90*mi + 512<<10, Capacity: 8 << 30}},
			"The node was low on resource: memory. Threshold of memory.available: 100Mi, available: 92672Ki. The pod was using 300Mi, its request is 100Mi.", time.Second,
		},
		"disk, soft, a percentage": {
			gc.Shortfall{Threshold: gc.Threshold{Signal: gc.NodeFSAvailable, Amount: gc.Amount{Percent: 15}, Soft: true}, Reading: gc.Reading{Available: 1 << 30, Capacity: 100 << 30}},
			"The node was low on resource: ephemeral-storage. Threshold of nodefs.available: 15Gi (15%), available: 1Gi. The pod was using 450Mi, its request is 100Mi.", 20 * time.Second,
		},
		"inodes": {
			gc.Shortfall{Threshold: gc.Threshold{Signal: gc.NodeFSInodesFree, Amount: gc.Amount{Percent: 5}}, Reading: gc.Reading{Available: 10, Capacity: 1000}},
			"The node was low on resource: inodes. Threshold of nodefs.inodesFree: 50 (5%), available: 10. The pod was using 450.", time.Second,
		},
		"processes": {
			gc.Shortfall{Threshold: gc.Threshold{Signal: gc.PIDAvailable, Amount: gc.Amount{Value: 100}}, Reading: gc.Reading{Available: 3, Capacity: 1000}},
			"The node was low on resource: pids. Threshold of pid.available: 100, available: 3. The pod was using 300.", time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := policy.Verdict(c.s, oneDisk(), candidate("B", 300, 100, 0))
			if v.Message != c.want || v.Grace != c.grace {
				t.Errorf("%s, %s\nwant %s, %s", v.Message, v.Grace, c.want, c.grace)
			}
		})
	}
}

func limit(storage string) v1.ResourceList {
	return v1.ResourceList{v1.ResourceEphemeralStorage: resource.MustParse(storage)}
}
