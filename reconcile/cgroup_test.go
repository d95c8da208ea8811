package reconcile_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podkeeper/podkeeper/manifests"
	"github.com/podkeeper/podkeeper/node/cgroup"
	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/reconcile"
	"github.com/podkeeper/podkeeper/runtime"
)

// specPod returns a pod with that specification, in YAML's flow style.
func specPod(t *testing.T, spec string) *pod.Pod {
	t.Helper()
	return parsePod(t, []byte("apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {"+spec+"}\n"))
}

// C028 and its like for the pod as a whole, as the kubelet has it.
func TestPodCgroup(t *testing.T) {
	node := reconcile.Node{PodPIDs: 100}
	has := func(resources string) string { return `{name: c, image: i, resources: ` + resources + `}` }
	for name, c := range map[string]struct {
		spec  string
		node  reconcile.Node
		class v1.PodQOSClass
		want  cgroup.Limits
	}{
		"besteffort":                     {`containers: [{name: c, image: i}]`, node, v1.PodQOSBestEffort, cgroup.Limits{CPUShares: 2, Pids: 100}},
		"tiny":                           {`containers: [` + has(`{limits: {cpu: 1m, memory: 4Mi}}`) + `]`, reconcile.Node{}, v1.PodQOSGuaranteed, cgroup.Limits{CPUShares: 2, CPUQuota: 1000, Memory: 4 << 20}},
		"guaranteed":                     {`containers: [` + has(`{limits: {cpu: 500m, memory: 64Mi}}`) + `]`, node, v1.PodQOSGuaranteed, cgroup.Limits{CPUShares: 512, CPUQuota: 50_000, Memory: 64 << 20, Pids: 100}},
		"a limit that not all have":      {`containers: [` + has(`{requests: {cpu: 250m}, limits: {memory: 64Mi}}`) + `, {name: d, image: i, resources: {limits: {cpu: 250m, memory: 64Mi}}}]`, node, v1.PodQOSBurstable, cgroup.Limits{CPUShares: 512, Memory: 128 << 20, Pids: 100}},
		"an init container without":      {`initContainers: [{name: i, image: i}], containers: [` + has(`{limits: {memory: 64Mi}}`) + `]`, node, v1.PodQOSBurstable, cgroup.Limits{CPUShares: 2, Pids: 100}},
		"a hungry init container":        {`initContainers: [{name: i, image: i, resources: {limits: {memory: 1Gi}}}], containers: [` + has(`{limits: {memory: 64Mi}}`) + `]`, node, v1.PodQOSBurstable, cgroup.Limits{CPUShares: 2, Memory: 1 << 30, Pids: 100}},
		"a sidecar":                      {`initContainers: [{name: i, image: i, restartPolicy: Always, resources: {limits: {memory: 64Mi}}}], containers: [` + has(`{limits: {memory: 64Mi}}`) + `]`, node, v1.PodQOSBurstable, cgroup.Limits{CPUShares: 2, Memory: 128 << 20, Pids: 100}},
		"limits of the pod's own":        {`resources: {limits: {cpu: 1, memory: 64Mi}}, containers: [{name: c, image: i}]`, node, v1.PodQOSGuaranteed, cgroup.Limits{CPUShares: 1024, CPUQuota: 100_000, Memory: 64 << 20, Pids: 100}},
		"requests of the pod's own":      {`resources: {requests: {cpu: 1}}, containers: [` + has(`{requests: {cpu: 250m}}`) + `]`, node, v1.PodQOSBurstable, cgroup.Limits{CPUShares: 1024, Pids: 100}},
		"no quota":                       {`containers: [` + has(`{limits: {cpu: 500m, memory: 64Mi}}`) + `]`, reconcile.Node{NoCPUQuota: true}, v1.PodQOSGuaranteed, cgroup.Limits{CPUShares: 512, Memory: 64 << 20}},
		"a period of the node's own":     {`containers: [` + has(`{limits: {cpu: 500m, memory: 64Mi}}`) + `]`, reconcile.Node{CPUPeriod: 20 * time.Millisecond}, v1.PodQOSGuaranteed, cgroup.Limits{CPUShares: 512, CPUQuota: 10_000, CPUPeriod: 20_000, Memory: 64 << 20}},
		"huge pages that it asks for":    {`containers: [` + has(`{limits: {cpu: 1, memory: 64Mi, hugepages-2Mi: 4Mi}}`) + `]`, reconcile.Node{HugePages: map[v1.ResourceName]int64{"hugepages-2Mi": 8 << 20, "hugepages-1Gi": 1 << 30}}, v1.PodQOSGuaranteed, cgroup.Limits{CPUShares: 1024, CPUQuota: 100_000, Memory: 64 << 20, HugePages: map[string]int64{"2MB": 4 << 20, "1GB": 0}}},
		"huge pages of an odd size, 64K": {`containers: [{name: c, image: i}]`, reconcile.Node{HugePages: map[v1.ResourceName]int64{"hugepages-64Ki": 1 << 20}}, v1.PodQOSBestEffort, cgroup.Limits{CPUShares: 2, HugePages: map[string]int64{"64KB": 0}}},
	} {
		p := specPod(t, c.spec)
		if p == nil {
			t.Fatalf("%s: no pod", name)
		}
		got := reconcile.PodCgroup(p.Object, "u", c.node)
		if got.UID != "u" || got.Class != c.class || !got.Equal(c.want) {
			t.Errorf("%s: class %s, %+v; want %s, %+v", name, got.Class, got.Limits, c.class, c.want)
		}
	}
}

// In a cgroup of the pod, a container has the limits of its own and no others.
func TestResourcesInACgroup(t *testing.T) {
	p := specPod(t, `resources: {limits: {cpu: 1, memory: 64Mi}}, containers: [{name: c, image: i, resources: {limits: {memory: 32Mi}}}, {name: d, image: i}]`).Object
	node := reconcile.Node{PodPIDs: 100}
	got := []runtime.Resources{reconcile.Resources(p, &p.Spec.Containers[0], node, "/kubepods/x"), reconcile.Resources(p, &p.Spec.Containers[1], node, "/kubepods/x")}
	if diff := cmp.Diff([]runtime.Resources{{CPUShares: 2, Memory: 32 << 20}, {CPUShares: 2}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A pod's cgroup grows before its containers do, and is made tighter when they are.
func TestPlanOfACgroup(t *testing.T) {
	const parent = "/kubepods/burstable/pod1"
	memory := func(size string) string {
		return `containers: [{name: a, image: "busybox:stable", resources: {limits: {memory: ` + size + `}}}]`
	}
	limits := func(size int64) cgroup.Limits { return cgroup.Limits{CPUShares: 2, Memory: size << 20} }
	set := func(size int64) *reconcile.CgroupSet { return &reconcile.CgroupSet{Limits: limits(size)} }
	for name, c := range map[string]struct {
		wants     string
		container int64 // what it has, in MiB
		parent    string
		set       *reconcile.CgroupSet // nil is nothing known
		off       bool
		plan      string
	}{
		"nothing is known of it":            {memory("64Mi"), 64, parent, nil, false, "0 update-cgroup"},
		"it is as it is to be":              {memory("64Mi"), 64, parent, set(64), false, ""},
		"the container is to grow":          {memory("64Mi"), 32, parent, set(32), false, "0 update-cgroup grow reason=ResourcesChanged, 1 update-resources"},
		"the cgroup has grown":              {memory("64Mi"), 32, parent, &reconcile.CgroupSet{Limits: limits(64), Grow: true}, false, "0 update-resources"},
		"the container has grown too":       {memory("64Mi"), 64, parent, &reconcile.CgroupSet{Limits: limits(64), Grow: true}, false, "0 update-cgroup reason=ResourcesChanged"},
		"what is wanted changed meanwhile":  {memory("96Mi"), 32, parent, &reconcile.CgroupSet{Limits: limits(64), Grow: true}, false, "0 update-cgroup grow reason=ResourcesChanged, 1 update-resources"},
		"nothing is known and it is to be":  {memory("16Mi"), 32, parent, nil, false, "0 update-cgroup grow, 1 update-resources"},
		"it was made in no cgroup of a pod": {memory("64Mi"), 32, "", nil, false, "0 update-resources"},
		"pods have no cgroups any more":     {memory("64Mi"), 32, parent, nil, true, "0 update-resources"},
	} {
		p := specPod(t, c.wants)
		uid := manifests.MintUID("/root", "node", p.Key(), p.Hash)
		in := reconcile.Input{
			Key: p.Key(), Desired: p, MayRemove: true, Images: map[string]reconcile.Image{"busybox:stable": {Present: true}},
			Learnt: map[string]reconcile.Learnt{}, PodCgroups: !c.off, Cgroups: map[types.UID]reconcile.CgroupSet{},
			Node: reconcile.Node{Name: "node", RootDir: "/root"}, Now: start, Wall: start,
		}
		if c.set != nil {
			in.Cgroups[uid] = *c.set
		}
		for _, name := range []string{runtime.SandboxName, "a"} {
			o := runtime.Container{ID: idOf(name, 0), State: runtime.Running, Start: "t0", Started: start.Add(-time.Hour), CgroupParent: c.parent}
			o.Identity = runtime.Identity{Key: p.Key(), UID: uid, Source: pod.FileSource, Name: name, PodHash: p.Hash, Grace: 30 * time.Second}
			if !o.IsSandbox() {
				o.ContainerHash, o.Sandbox = p.Containers[name], runtime.SandboxRef{ID: idOf(runtime.SandboxName, 0), Start: "t0"}
				o.Resources = runtime.Resources{CPUShares: 2, Memory: c.container << 20}
			}
			in.Observed = append(in.Observed, o)
		}
		var got []string
		for _, s := range reconcile.PlanPod(in).Steps {
			switch s.Verb {
			case reconcile.UpdateCgroup:
				if s.Parent != c.parent {
					t.Errorf("%s: of %q", name, s.Parent)
				}
				got = append(got, s.String())
			case reconcile.UpdateResources:
				got = append(got, strings.Fields(s.String())[0]+" update-resources")
			}
		}
		if diff := cmp.Diff(c.plan, strings.Join(got, ", ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
