package reconcile_test

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
)

const wantsConfig = `apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
  - name: a
    image: "present:1"
    command: [run]
    env: [{name: K, valueFrom: {configMapKeyRef: {name: conf, key: k}}}]
    volumeMounts: [{name: c, mountPath: /c}]
  volumes:
  - {name: c, configMap: {name: conf, optional: true}}
`

func conf(value string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: conf}\ndata: {k: " + value + "}\n"
}

// What a pod waits for need only come: nothing is tried until then, and nobody
// has to touch the pod. Later changes reach its volumes, and only those.
func TestObjectsReachThePodsThatReferToThem(t *testing.T) {
	inRig(t, func(r *rig) {
		other := "apiVersion: v1\nkind: Pod\nmetadata: {name: other}\nspec: {containers: [{name: a, image: \"present:1\", command: [run]}]}\n"
		r.want(wantsConfig, other)
		if got := phases(r.after(time.Hour)); got["web"] != v1.PodPending || got["other"] != v1.PodRunning {
			t.Fatalf("without the object: %v", got)
		}
		r.wantWith(conf("one"), wantsConfig, other)
		snap := r.after(0)
		if got := phases(snap); got["web"] != v1.PodRunning {
			t.Fatalf("with the object: %v: %v", got, snap.Pods)
		}
		text, writes := r.volumes.seen("c")
		if text != "k=one " {
			t.Errorf("the volume has %q", text)
		}
		revision := snap.Revision
		r.wantWith(conf("one"), wantsConfig, other)
		if text, again := r.volumes.seen("c"); again != writes || text != "k=one " {
			t.Errorf("nothing changed, and it was written %d times, %q", again-writes, text)
		}
		r.wantWith(conf("two"), wantsConfig, other)
		snap = r.after(0)
		if text, again := r.volumes.seen("c"); text != "k=two " || again != writes+1 {
			t.Errorf("after the change it was written %d times, %q", again-writes, text)
		}
		if r.log.count("volume content updated") != 2 || r.log.count("container stopped") != 0 || snap.Revision <= revision {
			t.Errorf("the log: %s", r.log.text.String())
		}
		r.want(wantsConfig, other)
		if got := phases(r.after(time.Hour)); got["web"] != v1.PodRunning {
			t.Errorf("when the object has gone: %v", got)
		}
	})
}
