package sources_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podkeeper/podkeeper/manifests"
	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/sources"
)

// TestLastGoodIsTheSamePod reads real manifests: what comes back from the store
// must equal what was read from the file, or a restart of the agent on a broken
// file would restart containers.
func TestLastGoodIsTheSamePod(t *testing.T) {
	const text = `# two ways to write a pod
apiVersion: v1
kind: Pod
metadata: {name: web, annotations: {note: "<&> ` + "\u2028" + `"}}
spec:
  containers:
  - name: app
    image: registry.local/app:1
    args: ["--x=<1>", 'two "words"']
    ports: [{containerPort: 80, hostPort: 18080}]
---
apiVersion: v1
kind: PodList
items:
- metadata: {name: a, namespace: blue}
  spec: {containers: [{name: c, image: nginx, resources: {limits: {memory: 64Mi, cpu: 100m}}}]}
- metadata: {name: b}
  spec: {restartPolicy: Never, containers: [{name: c, image: "nginx:1"}], volumes: [{name: v, emptyDir: {}}]}
`
	synctest.Test(t, func(t *testing.T) {
		tree := world(map[string]string{"/m/web.yaml": text})
		edit := func(c *sources.FileConfig) {
			c.Parse = func(data []byte, origin pod.Origin) manifests.Result {
				return manifests.Parse(data, origin, manifests.Options{NodeName: "node"})
			}
		}
		r := files(t, tree, nil, edit)
		before := r.last()
		if len(before.Pods) != 3 {
			t.Fatalf("%d pods, want 3: %v", len(before.Pods), before.Source.Origins)
		}
		r.stop()
		tree.Write("/m/web.yaml", text+"---\nkind: Pod\n  bad: [")
		time.Sleep(time.Hour)
		r = files(t, tree, r.store, edit)
		after := r.last()
		if state(after) != "present, spoken, web.yaml stale error" && state(after) != "present, spoken, web.yaml error" {
			t.Errorf("state %q", state(after))
		}
		if diff := cmp.Diff(byKey(before.Pods), byKey(after.Pods)); diff != "" {
			t.Errorf("pods differ after a restart (-before +after):\n%s", diff)
		}

		r.stop()
		tree.Write("/m/web.yaml", "")
		time.Sleep(time.Hour)
		r = files(t, tree, r.store, edit)
		if diff := cmp.Diff(byKey(before.Pods), byKey(r.last().Pods)); diff != "" {
			t.Errorf("pods differ where nothing but the store has them (-before +after):\n%s", diff)
		}
	})
}

func byKey(pods []*pod.Pod) map[string]*pod.Pod {
	out := map[string]*pod.Pod{}
	for _, p := range pods {
		out[p.Key().String()] = p
	}
	return out
}
