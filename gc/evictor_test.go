package gc_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podkeeper/podkeeper/gc"
	"github.com/podkeeper/podkeeper/node/stats"
	"github.com/podkeeper/podkeeper/pod"
)

// machine is a node with pods, each of which takes up memory or disk until it is
// evicted.
type machine struct {
	mu sync.Mutex // the test holds it but for when it sleeps

	memory, disk int64 // what is left with no pod, in Mi
	junk         int64 // of the disk, until it is reclaimed
	pods         []gc.Candidate
	away         bool               // the loop cannot tell
	unseen       map[types.UID]bool // whose files nobody has looked at, but for their logs
	log          strings.Builder
	did          []string // what happened, in order
	met          []string // what was told of thresholds that are met
	reports      []gc.Report
	alarm        chan struct{}
	stuck        bool   // no pod ends
	late         bool   // what a pod had on the disk is not free when it is gone
	images       string // the device of the images; "" is that of everything
}

func (m *machine) node(context.Context) stats.Node {
	m.mu.Lock()
	defer m.mu.Unlock()
	memory, disk := m.memory, m.disk-m.junk
	for _, c := range m.pods {
		memory -= *c.Stats.WorkingSet / mi
		disk -= c.Stats.Containers["app"].RootFS.Bytes / mi
	}
	fs := &stats.Filesystem{Path: "/", Device: "1", Capacity: 1000 * mi, Available: disk * mi}
	n := stats.Node{
		Memory: stats.NodeMemory{Capacity: ptr(int64(1000 * mi)), Available: ptr(memory * mi)},
		NodeFS: fs, ImageFS: fs, ContainerFS: fs,
	}
	if m.images != "" {
		n.ImageFS = &stats.Filesystem{Path: "/images", Device: m.images, Capacity: 1000 * mi, Available: 900 * mi}
	}
	return n
}

func (m *machine) run(t *testing.T, policy gc.EvictionPolicy, f func()) {
	synctest.Test(t, func(t *testing.T) {
		m.alarm = make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		e := gc.Evictor{
			Policy: policy, Alarm: m.alarm, Node: m.node, Log: slog.New(slog.NewTextHandler(&m.log, nil)),
			Pods: func(context.Context) ([]gc.Candidate, error) {
				m.mu.Lock()
				defer m.mu.Unlock()
				if m.away {
					return nil, errors.New("the engine is away")
				}
				return m.pods, nil
			},
			Usage: m.usage,
			Reclaim: func(_ context.Context, images bool) {
				m.mu.Lock()
				defer m.mu.Unlock()
				what := "reclaim"
				if !images {
					what = "reclaim containers"
				}
				m.did = append(m.did, what)
				m.junk = 0
			},
			Press: func(_ context.Context, r gc.Report) {
				m.mu.Lock()
				defer m.mu.Unlock()
				m.reports = append(m.reports, r)
			},
			Evict: func(_ context.Context, v pod.Verdict) {
				m.mu.Lock()
				defer m.mu.Unlock()
				m.did = append(m.did, "evict "+string(v.UID))
			},
			Gone: func(ctx context.Context, uid types.UID) {
				if m.stays() {
					<-ctx.Done()
					return
				}
				m.mu.Lock()
				defer m.mu.Unlock()
				for i, c := range m.pods {
					if c.UID == uid {
						if m.late {
							m.disk -= c.Stats.Containers["app"].RootFS.Bytes / mi
						}
						m.pods = append(m.pods[:i:i], m.pods[i+1:]...)
						return
					}
				}
			},
			Events: func(e pod.Event) {
				m.mu.Lock()
				defer m.mu.Unlock()
				if e.Reason == pod.EvictionThresholdMet {
					m.met = append(m.met, e.Message)
					return
				}
				m.did = append(m.did, "event "+e.Reason+" "+string(e.UID))
			},
		}
		go func() { ended <- e.Run(ctx) }()
		synctest.Wait()
		m.mu.Lock()
		f()
		m.mu.Unlock()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// stays reports whether no pod ends.
func (m *machine) stays() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.stuck
}

// sleep lets that much time pass, and the evictor do what it does then.
func (m *machine) sleep(d time.Duration) {
	m.mu.Unlock()
	defer m.mu.Lock()
	time.Sleep(d)
	synctest.Wait()
}

func (m *machine) usage(_ context.Context, list []gc.Candidate, files bool) []gc.Candidate {
	m.mu.Lock()
	defer m.mu.Unlock()
	list = slices.Clone(list)
	for i, c := range list {
		if files && m.unseen[c.UID] {
			list[i].Stats = &stats.Pod{Containers: map[string]stats.Container{"app": {Logs: &stats.Usage{Bytes: 1}}}}
			list[i].Unseen = true
		}
	}
	return list
}

// gone returns who was evicted, in order.
func (m *machine) gone() string {
	var uids []string
	for _, s := range m.did {
		if uid, ok := strings.CutPrefix(s, "evict "); ok {
			uids = append(uids, uid)
		}
	}
	return strings.Join(uids, " ")
}

func (m *machine) happened(t *testing.T, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, m.did); diff != "" {
		t.Errorf("what happened (-want +got):\n%s", diff)
	}
}

var memoryPolicy = gc.EvictionPolicy{Thresholds: []gc.Threshold{{Signal: gc.MemoryAvailable, Amount: gc.Amount{Value: 100 * mi}}}}

// TestEvictorTakesOneAtATime holds C113: pressure is measured again after each.
func TestEvictorTakesOneAtATime(t *testing.T) {
	m := &machine{memory: 1000, disk: 1000, pods: []gc.Candidate{candidate("a", 300, 0, 0), candidate("b", 400, 0, 0), candidate("c", 290, 0, 0)}}
	m.run(t, memoryPolicy, func() {
		m.happened(t, "event Evicted b", "evict b")
		m.pods = append(m.pods, candidate("d", 310, 0, 0))
		m.sleep(10 * time.Second)
		m.sleep(0)
		m.happened(t, "event Evicted b", "evict b")
		m.pods = append(m.pods, candidate("e", 350, 0, 0))
		m.sleep(10 * time.Second)
		m.sleep(0)
		m.happened(t, "event Evicted b", "evict b", "event Evicted e", "evict e")
	})
}

// TestEvictorOnAlarm holds that the kernel's word is not waited 10 s for.
func TestEvictorOnAlarm(t *testing.T) {
	m := &machine{memory: 1000, disk: 1000, pods: []gc.Candidate{candidate("a", 300, 0, 0)}}
	m.run(t, memoryPolicy, func() {
		m.memory = 300
		m.alarm <- struct{}{}
		m.sleep(0)
		m.happened(t, "event Evicted a", "evict a")
	})
}

// TestEvictorSparesCriticalPods holds C117: one line says that none can go.
func TestEvictorSparesCriticalPods(t *testing.T) {
	prober, norm := candidate("prober", 600, 0, 0), candidate("norm", 200, 100, 0)
	prober.Pod.Object.Spec.Priority, prober.Pod.Object.Spec.PriorityClassName = nil, "system-node-critical"
	m := &machine{memory: 650, disk: 1000, pods: []gc.Candidate{prober, norm}}
	m.run(t, memoryPolicy, func() {
		m.sleep(time.Minute)
		m.sleep(0)
		m.happened(t, "event Evicted norm", "evict norm")
		if n := strings.Count(m.log.String(), "no pod can be evicted"); n != 1 {
			t.Errorf("%d lines say that none can go:\n%s", n, m.log.String())
		}
	})
}

// TestEvictorReclaimsFirst holds that no pod goes where giving up what nobody
// needs is enough.
func TestEvictorReclaimsFirst(t *testing.T) {
	policy := gc.EvictionPolicy{Thresholds: []gc.Threshold{{Signal: gc.NodeFSAvailable, Amount: gc.Amount{Value: 100 * mi}}}}
	m := &machine{memory: 1000, disk: 1000, junk: 800, pods: []gc.Candidate{candidate("a", 300, 0, 0)}}
	m.run(t, policy, func() {
		m.happened(t, "reclaim")
		m.disk = 350
		m.sleep(10 * time.Second)
		m.sleep(0)
		m.happened(t, "reclaim", "reclaim", "event Evicted a", "evict a")
		if r := m.reports[len(m.reports)-1]; r.Conditions[pod.DiskPressure].Message == "" && policy.Transition > 0 {
			t.Error("the condition is over at once")
		}
	})
}

var diskPolicy = gc.EvictionPolicy{Thresholds: []gc.Threshold{{Signal: gc.NodeFSAvailable, Amount: gc.Amount{Value: 100 * mi}}}}

// TestEvictorLooksAtAllFirst holds that nobody goes in the place of a pod whose files
// were not looked at yet; not for ever, and then not as one of which nothing is known.
func TestEvictorLooksAtAllFirst(t *testing.T) {
	for name, c := range map[string]struct {
		seen bool
		want string
	}{
		"they are looked at":      {true, "hog"},
		"that takes all too long": {false, "calm"},
	} {
		t.Run(name, func(t *testing.T) {
			m := &machine{memory: 1000, disk: 700, unseen: map[types.UID]bool{"hog": true}}
			m.pods = []gc.Candidate{candidate("calm", 10, 0, 0), candidate("hog", 600, 0, 0)}
			m.run(t, diskPolicy, func() {
				m.sleep(115 * time.Second)
				m.unseen["hog"] = !c.seen
				early := m.gone()
				m.sleep(10 * time.Second)
				m.sleep(0)
				if late := m.gone(); early != "" || late != c.want {
					t.Errorf("%q went at first, then %q; want nobody, then %s", early, late, c.want)
				}
			})
		})
	}
}

// TestEvictorHearsTheAlarm holds that memory that gets short does not wait for the end
// of a pod that goes for the disk; that of one that goes for memory is waited for.
func TestEvictorHearsTheAlarm(t *testing.T) {
	policy := gc.EvictionPolicy{Thresholds: append(slices.Clone(memoryPolicy.Thresholds), diskPolicy.Thresholds...)}
	m := &machine{memory: 1000, disk: 650, stuck: true}
	m.pods = []gc.Candidate{candidate("large", 400, 0, 0), candidate("small", 200, 0, 0)}
	m.run(t, policy, func() {
		if got := m.gone(); got != "large" {
			t.Fatalf("%q went for the disk", got)
		}
		m.memory, m.pods = 250, m.pods[1:]
		m.alarm <- struct{}{}
		m.sleep(0)
		if got := m.gone(); got != "large small" {
			t.Errorf("%q went when memory got short", got)
		}
		select {
		case m.alarm <- struct{}{}:
			t.Error("the end of a pod that goes for memory is not waited for")
		default:
		}
	})
}

// TestEvictorGivesTheDiskTime holds that a disk that frees late costs no second pod
// before the next look.
func TestEvictorGivesTheDiskTime(t *testing.T) {
	m := &machine{memory: 10000, disk: 650, late: true}
	m.pods = []gc.Candidate{candidate("a", 400, 0, 0), candidate("b", 200, 0, 0)}
	m.run(t, diskPolicy, func() {
		if got := m.gone(); got != "a" {
			t.Errorf("%q went at once", got)
		}
		m.sleep(9 * time.Second)
		m.disk += 400
		m.sleep(10 * time.Second)
		if got := m.gone(); got != "a" {
			t.Errorf("%q went", got)
		}
	})
}

// TestEvictorSparesImages holds that images stay where they are not what fills the
// disk that is short.
func TestEvictorSparesImages(t *testing.T) {
	for name, c := range map[string]struct{ images, want string }{
		"they lie on it":      {"", "reclaim"},
		"they lie on another": {"2", "reclaim containers"},
	} {
		t.Run(name, func(t *testing.T) {
			m := &machine{memory: 1000, disk: 1000, junk: 950, images: c.images}
			m.run(t, diskPolicy, func() { m.happened(t, c.want) })
		})
	}
}

// TestEvictorOwnLimit holds that a pod goes for its own limit whatever the node
// has left.
func TestEvictorOwnLimit(t *testing.T) {
	a := candidate("a", 100, 0, 0)
	a.Pod.Object.Spec.Containers[0].Resources.Limits = limit("50Mi")
	m := &machine{memory: 1000, disk: 1000, pods: []gc.Candidate{a, candidate("b", 100, 0, 0)}}
	m.run(t, memoryPolicy, func() { m.happened(t, "event Evicted a", "evict a") })
}

// TestEvictorTellsOfAPodThatStays holds that a pod which does not end in its time is told
// of, once for each try.
func TestEvictorTellsOfAPodThatStays(t *testing.T) {
	m := &machine{memory: 150, disk: 1000, stuck: true, pods: []gc.Candidate{candidate("a", 100, 0, 0)}}
	m.run(t, memoryPolicy, func() {
		m.happened(t, "event Evicted a", "evict a")
		m.sleep(time.Minute)
		if want := "event ExceededGracePeriod a"; !slices.Contains(m.did, want) {
			t.Errorf("there is no %q in %q", want, m.did)
		}
	})
}

// TestEvictorTellsOfThresholds holds that a threshold that is met is told of with its
// numbers, once until nothing is short any more.
func TestEvictorTellsOfThresholds(t *testing.T) {
	m := &machine{memory: 300, disk: 1000, pods: []gc.Candidate{candidate("a", 150, 0, 0), candidate("b", 140, 0, 0)}}
	m.run(t, memoryPolicy, func() {
		if m.gone() != "a" {
			t.Fatalf("gone are %q", m.gone())
		}
		m.sleep(time.Minute)
		m.memory -= 100
		m.sleep(time.Minute)
		want := []string{
			"Attempting to reclaim memory: memory.available is 10Mi, the threshold is 100Mi",
			"Attempting to reclaim memory: memory.available is 60Mi, the threshold is 100Mi",
		}
		if diff := cmp.Diff(want, m.met); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	m = &machine{memory: 50, disk: 1000}
	m.run(t, memoryPolicy, func() {
		m.sleep(time.Minute)
		if len(m.met) != 1 {
			t.Errorf("for a shortage that lasts it tells %q", m.met)
		}
	})
}

// TestEvictorWaitsForTheLoop holds that nothing is done while nobody can tell who
// runs, and that the node is judged all the same.
func TestEvictorWaitsForTheLoop(t *testing.T) {
	m := &machine{memory: 50, disk: 1000, away: true, pods: []gc.Candidate{candidate("a", 1, 0, 0)}}
	m.run(t, memoryPolicy, func() {
		m.happened(t)
		if len(m.reports) != 1 || m.reports[0].Conditions[pod.MemoryPressure].Message == "" {
			t.Errorf("reports: %+v", m.reports)
		}
	})
}

// TestEvictorThatCannotTell says so once.
func TestEvictorThatCannotTell(t *testing.T) {
	policy := gc.EvictionPolicy{Thresholds: []gc.Threshold{{Signal: gc.PIDAvailable, Amount: gc.Amount{Value: 1}}}}
	m := &machine{memory: 1000, disk: 1000}
	m.run(t, policy, func() {
		m.sleep(time.Minute)
		m.sleep(0)
		if n := strings.Count(m.log.String(), "nobody can tell"); n != 1 {
			t.Errorf("%d lines:\n%s", n, m.log.String())
		}
	})
}
