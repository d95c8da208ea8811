package gc_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/podkeeper/podkeeper/gc"
	"github.com/podkeeper/podkeeper/node/stats"
	"github.com/podkeeper/podkeeper/pod"
)

// look is one look at a node of 1000 of everything.
type look struct {
	after     time.Duration
	available int64 // -1 is not known
	// due: something has to be given up. short, over: what the condition says.
	due, short bool
	over       time.Duration // from the first look; -1 is not over
}

func TestAssess(t *testing.T) {
	hard := gc.Threshold{Signal: gc.MemoryAvailable, Amount: gc.Amount{Value: 100}}
	soft := gc.Threshold{Signal: gc.MemoryAvailable, Amount: gc.Amount{Value: 300}, Soft: true, Grace: 30 * time.Second}
	reclaim := hard
	reclaim.Reclaim = gc.Amount{Percent: 10}
	for name, c := range map[string]struct {
		thresholds []gc.Threshold
		looks      []look
	}{
		"enough from the start, which nobody can know of the time before": {
			[]gc.Threshold{hard},
			[]look{{0, 500, false, false, 5 * time.Minute}, {10 * time.Second, 100, false, false, 5 * time.Minute}},
		},
		"a hard threshold, and the transition after it": {
			[]gc.Threshold{hard},
			[]look{
				{0, 500, false, false, 5 * time.Minute},
				{10 * time.Second, 99, true, true, -1},
				{20 * time.Second, 100, false, true, 5*time.Minute + 10*time.Second},
				{309 * time.Second, 100, false, true, 5*time.Minute + 10*time.Second},
				{310 * time.Second, 100, false, false, 5*time.Minute + 10*time.Second},
				{320 * time.Second, 0, true, true, -1},
			},
		},
		"a soft threshold makes the condition at once, and ends pods after its grace period": {
			[]gc.Threshold{soft},
			[]look{
				{0, 299, false, true, -1},
				{29 * time.Second, 299, false, true, -1},
				{30 * time.Second, 299, true, true, -1},
			},
		},
		"a soft threshold that was left meanwhile": {
			[]gc.Threshold{soft},
			[]look{
				{0, 299, false, true, -1},
				{20 * time.Second, 300, false, true, 5 * time.Minute},
				{31 * time.Second, 299, false, true, -1},
				{61 * time.Second, 299, true, true, -1},
			},
		},
		"the minimum reclaim holds only for one that pods were ended for": {
			[]gc.Threshold{reclaim},
			[]look{
				{0, 150, false, false, 5 * time.Minute},
				{10 * time.Second, 99, true, true, -1},
				{20 * time.Second, 199, true, true, -1},
				{30 * time.Second, 200, false, true, 5*time.Minute + 20*time.Second},
				{40 * time.Second, 150, false, true, 5*time.Minute + 20*time.Second},
			},
		},
		"what cannot be told is not short": {
			[]gc.Threshold{hard},
			[]look{{0, 50, true, true, -1}, {10 * time.Second, -1, false, true, 5 * time.Minute}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			policy := gc.EvictionPolicy{Thresholds: c.thresholds, Transition: 5 * time.Minute}
			start := time.Now()
			var h gc.History
			for _, l := range c.looks {
				var a gc.Assessment
				a, h = policy.Assess(memory(l.available), h, start.Add(l.after))
				got := look{after: l.after, available: l.available, due: len(a.Due) > 0, over: -1}
				condition := a.Conditions[pod.MemoryPressure]
				got.short = condition.Message != ""
				if !condition.Over.IsZero() {
					got.over = condition.Over.Sub(start)
				}
				if diff := cmp.Diff(l, got, cmp.AllowUnexported(look{})); diff != "" {
					t.Errorf("after %s (-want +got):\n%s", l.after, diff)
				}
				for _, other := range []pod.Cause{pod.DiskPressure, pod.PIDPressure} {
					if a.Conditions[other].Message != "" {
						t.Errorf("after %s: %s", l.after, other)
					}
				}
			}
		})
	}
}

func memory(available int64) map[gc.Signal]gc.Reading {
	if available < 0 {
		return nil
	}
	return map[gc.Signal]gc.Reading{gc.MemoryAvailable: {Available: available, Capacity: 1000}}
}

func TestAssessOrder(t *testing.T) {
	all := []gc.Threshold{
		{Signal: gc.NodeFSAvailable, Amount: gc.Amount{Percent: 50}, Soft: true},
		{Signal: gc.ImageFSInodesFree, Amount: gc.Amount{Percent: 50}},
		{Signal: gc.MemoryAvailable, Amount: gc.Amount{Percent: 50}, Soft: true},
		{Signal: gc.PIDAvailable, Amount: gc.Amount{Percent: 50}},
	}
	readings := make(map[gc.Signal]gc.Reading)
	for _, s := range gc.Signals() {
		readings[s] = gc.Reading{Available: 1, Capacity: 100}
	}
	a, _ := gc.EvictionPolicy{Thresholds: all}.Assess(readings, gc.History{}, time.Now())
	var got []string
	for _, s := range a.Due {
		got = append(got, string(s.Signal))
	}
	if diff := cmp.Diff("memory.available imagefs.inodesFree pid.available nodefs.available", strings.Join(got, " ")); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	if got := a.Conditions[pod.PIDPressure].Message; got != "pid.available is 1, the threshold is 50 (50%)" {
		t.Error(got)
	}
}

// TestAssessProperties compares each look with a naive twin that goes through all
// looks so far again.
func TestAssessProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		threshold := gc.Threshold{
			Signal: gc.MemoryAvailable, Amount: gc.Amount{Percent: rapid.Float64Range(0.1, 50).Draw(t, "percent")},
			Grace:   time.Duration(rapid.IntRange(0, 3).Draw(t, "grace")) * 10 * time.Second,
			Reclaim: gc.Amount{Value: rapid.Int64Range(0, 300).Draw(t, "reclaim")},
		}
		threshold.Soft = threshold.Grace > 0
		policy := gc.EvictionPolicy{Thresholds: []gc.Threshold{threshold}, Transition: time.Duration(rapid.IntRange(0, 5).Draw(t, "transition")) * 10 * time.Second}
		start := time.Now()
		var h gc.History
		var seen []int64
		var at []time.Time
		now := start
		for range rapid.IntRange(1, 20).Draw(t, "looks") {
			now = now.Add(time.Duration(rapid.IntRange(1, 20).Draw(t, "later")) * time.Second)
			seen, at = append(seen, rapid.Int64Range(-1, 1000).Draw(t, "available")), append(at, now)
			var a gc.Assessment
			a, h = policy.Assess(memory(seen[len(seen)-1]), h, now)
			due, last := twin(threshold, seen, at)
			if got := len(a.Due) > 0; got != due {
				t.Fatalf("due: %v, want %v", got, due)
			}
			condition := a.Conditions[pod.MemoryPressure]
			met := last.Equal(now) && !last.IsZero()
			short := met || !last.IsZero() && now.Sub(last) < policy.Transition
			if got := condition.Message != ""; got != short {
				t.Fatalf("short: %v, want %v", got, short)
			}
			if last.IsZero() {
				last = at[0]
			}
			if !met && !condition.Over.Equal(last.Add(policy.Transition)) {
				t.Fatalf("over: %s, want %s", condition.Over, last.Add(policy.Transition))
			}
		}
	})
}

// twin returns whether the last look asks for something, and the last look at
// which the threshold was met.
func twin(threshold gc.Threshold, seen []int64, at []time.Time) (due bool, last time.Time) {
	first := -1 // look since which it is met
	for i, available := range seen {
		limit := int64(1000 * threshold.Amount.Percent / 100)
		if due {
			limit += threshold.Reclaim.Value
		}
		if available < 0 || available >= limit {
			first, due = -1, false
			continue
		}
		if first < 0 {
			first = i
		}
		due, last = at[i].Sub(at[first]) >= threshold.Grace, at[i]
	}
	return due, last
}

func TestReadings(t *testing.T) {
	disk := oneDisk()
	disk.Memory = stats.NodeMemory{Capacity: ptr(int64(100)), WorkingSet: ptr(int64(70)), Available: ptr(int64(30))}
	disk.PIDs = stats.PIDs{Max: ptr(int64(50)), Running: ptr(int64(60))}
	disk.ImageFS = &stats.Filesystem{Capacity: 10, Available: 4}
	disk.ContainerFS = nil
	want := map[gc.Signal]gc.Reading{
		gc.MemoryAvailable: {Available: 30, Capacity: 100}, gc.PIDAvailable: {Capacity: 50},
		gc.NodeFSAvailable: {Available: 50 << 30, Capacity: 100 << 30}, gc.NodeFSInodesFree: {Available: 500, Capacity: 1000},
		gc.ImageFSAvailable: {Available: 4, Capacity: 10},
	}
	if diff := cmp.Diff(want, gc.Readings(disk)); diff != "" {
		t.Errorf("readings (-want +got):\n%s", diff)
	}
	disk = oneDisk()
	disk.ContainerFS = &stats.Filesystem{Capacity: 20, Available: 5, Inodes: ptr(int64(9)), InodesFree: ptr(int64(3))}
	got := gc.Readings(disk)
	if a, i := got[gc.ContainerFSAvailable], got[gc.ContainerFSInodesFree]; a != (gc.Reading{Available: 5, Capacity: 20}) || i != (gc.Reading{Available: 3, Capacity: 9}) {
		t.Errorf("of containers: %v, inodes %v", a, i)
	}
	if got := gc.Readings(stats.Node{}); len(got) > 0 {
		t.Errorf("of nothing: %v", got)
	}
}

func TestLowDiskMessages(t *testing.T) {
	node := oneDisk()
	node.NodeFS = &stats.Filesystem{Path: "/var/lib/podkeeper", Available: 100 * mi}
	root, images := gc.EvictionPolicy{LowDisk: 256 * mi}.LowDiskMessages(node)
	if want := "100Mi are left on the filesystem of /var/lib/podkeeper, no pod is admitted below 256Mi (--low-diskspace-threshold-mb)"; root != want || images != "" {
		t.Errorf("root %q, images %q", root, images)
	}
	node = oneDisk()
	node.ImageFS = &stats.Filesystem{Path: "/var/lib/docker", Available: 256*mi - 1}
	root, images = gc.EvictionPolicy{LowDisk: 256 * mi}.LowDiskMessages(node)
	if want := "255Mi are left on the filesystem of /var/lib/docker, no pod is admitted below 256Mi (--low-diskspace-threshold-mb)"; root != "" || images != want {
		t.Errorf("root %q, images %q", root, images)
	}
	if root, images := (gc.EvictionPolicy{}).LowDiskMessages(node); root+images != "" {
		t.Errorf("switched off: %q, %q", root, images)
	}
	if root, images := (gc.EvictionPolicy{LowDisk: 256 * mi}).LowDiskMessages(stats.Node{}); root+images != "" {
		t.Errorf("not known: %q, %q", root, images)
	}
}
