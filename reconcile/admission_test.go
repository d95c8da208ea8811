package reconcile_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/reconcile"
)

// needing returns the manifest of a pod that asks for that much CPU.
func needing(name, cpu string) string {
	return manifest(name, "", fmt.Sprintf("{name: c, image: present:1, resources: {requests: {cpu: %s}}}", cpu))
}

// withRoom is inRig on a node that has that for pods.
func withRoom(t *testing.T, node reconcile.Allocatable, f func(*rig)) {
	t.Helper()
	inRig(t, func(r *rig) {
		r.stop()
		r.node.Allocatable = node
		r.start(reconcile.Policy{})
		f(r)
	})
}

// reasons returns of each pod its phase, and what it waits for.
func reasons(snap reconcile.Snapshot) map[string]string {
	out := map[string]string{}
	for _, v := range snap.Pods {
		out[strings.TrimSuffix(v.Object.Name, "-node")] = strings.TrimSpace(string(v.Object.Status.Phase) + " " + v.Object.Status.Reason)
	}
	return out
}

func expect(t *testing.T, when string, snap reconcile.Snapshot, want map[string]string) {
	t.Helper()
	if diff := cmp.Diff(want, reasons(snap)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", when, diff)
	}
}

// A pod that finds no room waits, with the numbers, and runs once there is some.
func TestPodThatFindsNoRoom(t *testing.T) {
	withRoom(t, reconcile.Allocatable{CPU: 4000}, func(r *rig) {
		r.want(needing("a", "3500m"), needing("b", "2"), needing("c", "500m"))
		snap := r.after(time.Second)
		expect(t, "all are wanted", snap, map[string]string{"a": "Running", "b": "Pending OutOfcpu", "c": "Running"})
		const want = "Node didn't have enough resource: cpu, requested: 2000, used: 4000, capacity: 4000"
		if got := snap.Pods[1].Object.Status.Message; got != want {
			t.Errorf("b waits: %q", got)
		}
		if got := len(r.engine.Containers()); got != 4 {
			t.Errorf("the engine has %d containers", got)
		}
		r.want(needing("b", "2"), needing("c", "500m"))
		expect(t, "a is removed", r.after(time.Minute), map[string]string{"b": "Running", "c": "Running"})
	})
}

// What runs holds what it has first, whoever else is wanted when the agent comes back.
func TestWhatRunsHoldsItsRoom(t *testing.T) {
	withRoom(t, reconcile.Allocatable{CPU: 4000, Pods: 2}, func(r *rig) {
		r.want(needing("z", "3"))
		r.after(time.Second)
		r.stop()
		r.start(reconcile.Policy{})
		r.want(needing("a", "2"), needing("z", "3"))
		expect(t, "after a restart", r.after(time.Second), map[string]string{"a": "Pending OutOfcpu", "z": "Running"})
		r.stop()
		r.node.Allocatable.CPU = 1000 // more is kept for others now
		r.start(reconcile.Policy{})
		r.want(needing("a", "2"), needing("z", "3"))
		expect(t, "on a smaller node", r.after(time.Minute), map[string]string{"a": "Pending OutOfcpu", "z": "Running"})
		lose := func() {
			for _, c := range r.engine.Containers() {
				if c.Identity.Key.Name == "z-node" {
					r.engine.Destroy(c.ID)
				}
			}
		}
		lose()
		expect(t, "it is made anew in what it has", r.after(time.Minute), map[string]string{"a": "Pending OutOfcpu", "z": "Running"})
		r.stop()
		lose()
		r.start(reconcile.Policy{})
		r.want(needing("a", "2"), needing("z", "3"))
		expect(t, "gone while nobody looked, it asks again", r.after(time.Minute), map[string]string{"a": "Pending OutOfcpu", "z": "Pending OutOfcpu"})
		r.stop()
		r.node.Allocatable = reconcile.Allocatable{Pods: 1}
		r.start(reconcile.Policy{})
		r.want(needing("a", "2"), needing("z", "3"))
		expect(t, "one pod at most, and both ask anew", r.after(time.Minute), map[string]string{"a": "Running", "z": "Pending OutOfpods"})
	})
}

// An edit that asks for more than there is leaves the version up that runs, and
// takes effect once there is room; one that asks for less leaves room for others.
func TestEditThatFindsNoRoom(t *testing.T) {
	cpus := func(r *rig, name string) (all []int64) {
		for _, c := range r.engine.Containers() {
			if c.Identity.Key.Name == name+"-node" && c.Identity.Name == "c" {
				all = append(all, c.Resources.CPUShares*1000/1024)
			}
		}
		return all
	}
	withRoom(t, reconcile.Allocatable{CPU: 4000}, func(r *rig) {
		r.want(needing("a", "1"), needing("b", "2"))
		r.after(time.Second)
		r.want(needing("a", "3"), needing("b", "2"))
		expect(t, "a grows too much", r.after(time.Minute), map[string]string{"a": "Running OutOfcpu", "b": "Running"})
		if got := cpus(r, "a"); len(got) != 1 || got[0] != 1000 {
			t.Errorf("a has %v", got)
		}
		r.want(needing("a", "3"), needing("b", "1"))
		expect(t, "b shrinks", r.after(time.Minute), map[string]string{"a": "Running", "b": "Running"})
		if got := cpus(r, "a"); len(got) != 1 || got[0] != 3000 {
			t.Errorf("a has %v", got)
		}
		r.want(needing("a", "3")+"  hostname: other\n", needing("b", "1"))
		expect(t, "a is replaced", r.after(time.Minute), map[string]string{"a": "Running", "b": "Running"})
		r.want(needing("a", "4")+"  hostname: other\n", needing("b", "1"))
		expect(t, "and grows again", r.after(time.Minute), map[string]string{"a": "Running OutOfcpu", "b": "Running"})
		r.want(needing("a", "3")+"  hostname: other\n", needing("b", "1"))
		expect(t, "and is taken back", r.after(time.Minute), map[string]string{"a": "Running", "b": "Running"})
	})
}

// A container that is added counts, and one of a job that has ended does not.
func TestRoomFollowsTheContainers(t *testing.T) {
	const c = "{name: c, image: present:1, resources: {requests: {cpu: 2}}}"
	withRoom(t, reconcile.Allocatable{CPU: 4000}, func(r *rig) {
		job := manifest("job", "", c) + "  restartPolicy: Never\n"
		r.want(manifest("a", "", c), job)
		r.after(time.Second)
		r.want(manifest("a", "", c+", {name: d, image: present:1, resources: {requests: {cpu: 1}}}"), job)
		expect(t, "a container is added", r.after(time.Minute), map[string]string{"a": "Running OutOfcpu", "job": "Running"})
		for _, c := range r.engine.Containers() {
			if c.Identity.Key.Name == "job-node" && c.Identity.Name == "c" {
				r.engine.Kill(c.ID)
			}
		}
		expect(t, "the job has ended", r.after(time.Minute), map[string]string{"a": "Running", "job": "Failed"})
		if got := len(r.engine.Containers()); got != 4 {
			t.Errorf("the engine has %d containers", got)
		}
	})
}

// A pod that waits for a port has no room, and one that waits for room no port.
func TestNobodyHoldsHalf(t *testing.T) {
	port := func(name, cpu, port string) string {
		return manifest(name, "", fmt.Sprintf("{name: c, image: present:1, resources: {requests: {cpu: %s}}, ports: [{containerPort: 1, hostPort: %s}]}", cpu, port))
	}
	withRoom(t, reconcile.Allocatable{CPU: 4000}, func(r *rig) {
		r.want(port("a", "1", "1"))
		r.after(time.Second)
		r.want(port("a", "1", "1"), port("b", "3", "1"), port("c", "9", "3"), port("d", "3", "3"))
		expect(t, "d has the room that b cannot use, and the port that c cannot", r.after(time.Minute), map[string]string{"a": "Running", "b": "Pending OutOfcpu", "c": "Pending OutOfcpu", "d": "Running"})
	})
}

// Pods that have to be admitted together have to find room together.
func TestPortsThatAreSwappedNeedRoom(t *testing.T) {
	pod := func(name, cpu, port string) string {
		return manifest(name, "", fmt.Sprintf("{name: c, image: present:1, resources: {requests: {cpu: %s}}, ports: [{containerPort: 1, hostPort: %s}]}", cpu, port))
	}
	withRoom(t, reconcile.Allocatable{CPU: 4000}, func(r *rig) {
		r.want(pod("a", "1", "1"), pod("b", "1", "2"))
		r.after(time.Second)
		r.want(pod("a", "2500m", "2"), pod("b", "2500m", "1"))
		snap := r.after(time.Minute)
		for _, v := range snap.Pods {
			if v.Object.Status.Phase != v1.PodRunning || v.Plan.Blocked == (reconcile.Waiting{}) {
				t.Errorf("%s: %s, %s", v.Object.Name, v.Object.Status.Phase, v.Plan.Blocked)
			}
		}
		r.want(pod("a", "2500m", "2"), pod("b", "1500m", "1"))
		expect(t, "there is room for both", r.after(time.Minute), map[string]string{"a": "Running", "b": "Running"})
	})
}

// A pod is for the nodes that it says.
func TestNodeOfAPod(t *testing.T) {
	term := func(list string) string {
		return "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [" + list + "]}}}"
	}
	expr := func(e string) string { return term("{matchExpressions: [" + e + "]}") }
	node := reconcile.Node{Name: "one", Labels: map[string]string{"disk": "ssd", "cores": "8", "kubernetes.io/os": "linux"}}
	const failed = "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector: "
	const none = failed + "no term matches metadata.name=one, cores=8, disk=ssd, kubernetes.io/os=linux"
	for name, c := range map[string]struct {
		spec   string
		reason reconcile.Reason
		why    string
	}{
		"any node":                     {spec: "hostname: a"},
		"a label":                      {spec: "nodeSelector: {disk: ssd, kubernetes.io/os: linux}"},
		"another value":                {"nodeSelector: {disk: hdd}", "NodeAffinity", failed + "nodeSelector wants disk=hdd, and the node has ssd"},
		"a label that it lacks":        {"nodeSelector: {gpu: b}", "NodeAffinity", failed + "nodeSelector wants gpu=b, and the node has no such label (--node-labels)"},
		"an empty value":               {"nodeSelector: {gpu: ''}", "NodeAffinity", failed + "nodeSelector wants gpu=, and the node has no such label (--node-labels)"},
		"In":                           {spec: expr("{key: disk, operator: In, values: [hdd, ssd]}")},
		"In, without":                  {expr("{key: disk, operator: In, values: [hdd]}"), "NodeAffinity", none},
		"NotIn":                        {expr("{key: disk, operator: NotIn, values: [ssd]}"), "NodeAffinity", none},
		"NotIn, of none":               {spec: expr("{key: gpu, operator: NotIn, values: [ssd]}")},
		"Exists":                       {spec: expr("{key: disk, operator: Exists}")},
		"DoesNotExist":                 {expr("{key: disk, operator: DoesNotExist}"), "NodeAffinity", none},
		"Gt":                           {spec: expr("{key: cores, operator: Gt, values: ['7']}")},
		"Lt":                           {expr("{key: cores, operator: Lt, values: ['8']}"), "NodeAffinity", none},
		"all expressions":              {expr("{key: disk, operator: Exists}, {key: gpu, operator: Exists}"), "NodeAffinity", none},
		"any term":                     {spec: term("{matchExpressions: [{key: gpu, operator: Exists}]}, {matchExpressions: [{key: disk, operator: Exists}]}")},
		"its name":                     {spec: term("{matchFields: [{key: metadata.name, operator: In, values: [one]}]}")},
		"another's name":               {term("{matchFields: [{key: metadata.name, operator: In, values: [two]}]}"), "NodeAffinity", none},
		"all but another's name":       {spec: term("{matchFields: [{key: metadata.name, operator: NotIn, values: [two]}]}")},
		"a preference":                 {spec: "affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {matchExpressions: [{key: gpu, operator: Exists}]}}]}}"},
		"the system":                   {spec: "os: {name: linux}"},
		"another system":               {"os: {name: windows}", "PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS"},
		"both, and one does not match": {"nodeSelector: {disk: ssd}, " + expr("{key: gpu, operator: Exists}"), "NodeAffinity", none},
	} {
		t.Run(name, func(t *testing.T) {
			got := reconcile.Mismatch(node, demanding(t, "p", c.spec).Object)
			if diff := cmp.Diff(reconcile.Waiting{Reason: c.reason, Message: c.why}, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// What runs goes on where the node's labels are no longer what it asked for, and is
// restarted, as Kubernetes has it: IgnoredDuringExecution.
func TestLabelsThatChange(t *testing.T) {
	inRig(t, func(r *rig) {
		text := manifest("a", "", "{name: c, image: present:1}") + "  nodeSelector: {disk: ssd}\n"
		r.want(text)
		expect(t, "before", r.after(time.Second), map[string]string{"a": "Pending NodeAffinity"})
		r.stop()
		r.node.Labels = map[string]string{"disk": "ssd"}
		r.start(reconcile.Policy{})
		r.want(text)
		expect(t, "with the label", r.after(time.Second), map[string]string{"a": "Running"})
		r.stop()
		r.node.Labels = nil
		r.start(reconcile.Policy{})
		r.want(text)
		expect(t, "without it", r.after(time.Second), map[string]string{"a": "Running"})
		for _, c := range r.engine.Containers() {
			if c.Identity.Name == "c" {
				r.engine.Kill(c.ID)
			}
		}
		expect(t, "after a crash", r.after(time.Minute), map[string]string{"a": "Running"})
	})
}

// A critical pod that finds no room gets that of others, which come back when there
// is some again.
func TestPreemption(t *testing.T) {
	critical := func(name, cpu string) string { return needing(name, cpu) + "  priority: 2000000000\n" }
	withRoom(t, reconcile.Allocatable{CPU: 4000}, func(r *rig) {
		r.want(needing("a", "1"), needing("b", "3"))
		r.after(time.Second)
		r.told.lines()
		r.want(needing("a", "1"), needing("b", "3"), critical("c", "2"), needing("d", "1"))
		snap := r.after(time.Minute)
		expect(t, "c is wanted", snap, map[string]string{"a": "Running", "b": "Pending OutOfcpu", "c": "Running", "d": "Running"})
		var preempting []string
		for _, line := range r.told.lines() {
			if strings.Contains(line, "Preempting") {
				preempting = append(preempting, line)
			}
		}
		if want := "Warning Preempting b-node/ Preempted in order to admit critical pod default/c-node"; len(preempting) == 0 || preempting[0] != want {
			t.Errorf("events: %q", preempting)
		}
		r.want(needing("a", "1"), needing("b", "3"))
		expect(t, "c is gone", r.after(time.Minute), map[string]string{"a": "Running", "b": "Running"})
		r.stop()
		r.start(reconcile.Policy{})
		r.want(needing("a", "1"), needing("b", "3"), critical("c", "5"))
		expect(t, "nothing helps", r.after(time.Minute), map[string]string{"a": "Running", "b": "Running", "c": "Pending OutOfcpu"})
	})
}

// A critical pod that is there from the start ends nobody, and a job that it ended
// stays so.
func TestPreemptionOfWhatIsThereNotYet(t *testing.T) {
	critical := func(name, cpu string) string { return needing(name, cpu) + "  priority: 2000000000\n" }
	withRoom(t, reconcile.Allocatable{CPU: 4000}, func(r *rig) {
		job := needing("job", "3") + "  restartPolicy: Never\n"
		r.want(needing("a", "3"), critical("z", "2"), needing("b", "2"))
		expect(t, "all at once", r.after(time.Minute), map[string]string{"a": "Pending OutOfcpu", "b": "Running", "z": "Running"})
		for _, line := range r.told.lines() {
			if strings.Contains(line, "Preempting") {
				t.Error(line)
			}
		}
		r.want(job)
		r.after(time.Minute)
		r.want(job, critical("z", "2"))
		expect(t, "the job is ended", r.after(time.Minute), map[string]string{"job": "Failed Preempting", "z": "Running"})
		r.want(job)
		expect(t, "and stays so", r.after(time.Minute), map[string]string{"job": "Failed Preempting"})
	})
}
