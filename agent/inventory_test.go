package agent_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/agent"
	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/server"
)

// What there is beside pods can be asked for on the socket: objects with who refers
// to them, never a secret's value; images with who uses them; the machine.
func TestInventory(t *testing.T) {
	w := newWorld(t)
	w.write("web.yaml", manifest("{name: web}", sleeping("app", "envFrom: [{configMapRef: {name: conf}}, {secretRef: {name: key}}]", "volumeMounts: [{name: d, mountPath: /d}]"))+
		"  volumes: [{name: d, persistentVolumeClaim: {claimName: data}}]\n"+
		"---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: conf}, data: {A: hello}, binaryData: {bits: AP8=}}\n"+
		"---\n{apiVersion: v1, kind: Secret, metadata: {name: key}, stringData: {B: hush-hush}}\n"+
		"---\n{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}}\n")
	began := time.Now().Truncate(time.Second) // as times are told
	w.start()
	w.await("it runs", running("web"))
	client := server.NewClient(w.cfg.Socket)

	objects, err := client.Objects(t.Context(), "", true)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(objects)
	if err != nil || strings.Contains(string(text), "hush") || strings.Contains(string(text), "aHVzaC1odXNo") {
		t.Errorf("%v, or a secret is told: %s", err, text)
	}
	var kinds []pod.ObjectKind
	for _, o := range objects.Items {
		kinds = append(kinds, o.Kind)
		if !slices.Equal(o.Pods, []string{"default/web-node"}) {
			t.Errorf("%s %s is used by %v", o.Kind, o.Name, o.Pods)
		}
	}
	if want := []pod.ObjectKind{pod.ConfigMap, pod.PersistentVolumeClaim, pod.Secret}; !slices.Equal(kinds, want) {
		t.Fatalf("%v, want %v", kinds, want)
	}
	if conf, claim, key := objects.Items[0], objects.Items[1].Claim, objects.Items[2]; conf.Data["A"] != "hello" || string(conf.BinaryData["bits"]) != "\x00\xff" || !claim.Bound || !exists(claim.Path) || key.Sizes["B"] != len("hush-hush") {
		t.Errorf("%+v, %+v, %+v", conf, claim, key)
	}
	bare, err := client.Objects(t.Context(), pod.ConfigMap, false)
	if err != nil || len(bare.Items) != 1 || bare.Items[0].Data != nil || bare.Items[0].BinaryData != nil {
		t.Errorf("%+v, %v", bare, err)
	}

	images, err := client.Images(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(images.Items, func(i server.Image) bool { return slices.Contains(i.Names, "busybox:stable") })
	if at < 0 || !images.Items[at].Wanted || !images.Items[at].InUse || !slices.Contains(images.Items[at].Pods, "default/web-node") {
		t.Errorf("images %+v", images.Items)
	}

	node, err := client.Node(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ready := slices.IndexFunc(node.Status.Conditions, func(c v1.NodeCondition) bool { return c.Type == v1.NodeReady })
	if node.Name != "node" || node.Status.Capacity.Cpu().IsZero() || node.Status.Allocatable.Memory().IsZero() ||
		ready < 0 || node.Status.Conditions[ready].Status != v1.ConditionTrue || !strings.HasPrefix(node.Status.NodeInfo.ContainerRuntimeVersion, "docker://") {
		t.Errorf("node %+v", node)
	}
	again, err := client.Node(t.Context())
	if err != nil || len(again.Status.Conditions) != len(node.Status.Conditions) {
		t.Fatalf("asked again: %v, %+v", err, again.Status.Conditions)
	}
	for i, c := range node.Status.Conditions {
		since, seen := c.LastTransitionTime.Time, c.LastHeartbeatTime.Time
		if since.Before(began) || seen.Before(since) || seen.After(time.Now()) {
			t.Errorf("%s is so since %s and was seen at %s", c.Type, since, seen)
		}
		if now := again.Status.Conditions[i]; now.Status == c.Status && !now.LastTransitionTime.Equal(&c.LastTransitionTime) {
			t.Errorf("%s is %s since another time for who asks again: %s, %s", c.Type, c.Status, since, now.LastTransitionTime)
		}
	}

	if _, err := client.Collect(t.Context(), server.Collection{Containers: true, Images: true, All: true, DryRun: true}); err != nil {
		t.Error(err)
	}
	if _, err := client.Pull(t.Context(), "127.0.0.1:1/none:1", func(server.Progress) {}); err == nil {
		t.Error("an image is pulled from nowhere")
	}
}

// Look shows when limits change those of the pod's cgroup, too, and says nothing of a
// cgroup whose limits are as they were.
func TestLookAtLimits(t *testing.T) {
	w := newWorld(t)
	with := func(limit string) string {
		return manifest("{name: web}", sleeping("app", "resources: {requests: {memory: 16Mi}, limits: {memory: "+limit+"}}"))
	}
	w.write("web.yaml", with("32Mi"))
	w.start()
	w.await("web runs", running("web"))
	w.stop()
	steps := func() string {
		t.Helper()
		s, err := agent.Look(t.Context(), w.cfg, w.log)
		if err != nil {
			t.Fatal(err)
		}
		var texts []string
		for _, step := range s.Pods[0].Steps {
			texts = append(texts, step.Verb)
		}
		return strings.Join(texts, " ")
	}
	if got := steps(); got != "" {
		t.Errorf("of what is as wanted: %s", got)
	}
	w.write("web.yaml", with("48Mi"))
	if got := steps(); !strings.Contains(got, "update-cgroup") || !strings.Contains(got, "update-resources") {
		t.Errorf("of another limit: %s", got)
	}
}
