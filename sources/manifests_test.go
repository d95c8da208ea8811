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

// TestLastGoodIsTheSame reads real manifests: what comes back from the store must
// equal what was read from the file, or a restart of the agent on a broken file
// would restart containers.
func TestLastGoodIsTheSame(t *testing.T) {
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
---
apiVersion: v1
kind: Secret
metadata: {name: key, namespace: blue}
data: {a: AAEC/w==}
stringData: {b: "x\ny"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: conf}
data: {"app.conf": "<&> \u2028"}
binaryData: {b: AAEC/w==}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, annotations: {podkeeper.io/reclaim: delete}}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1.5Gi}}}
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
		if len(before.Pods) != 3 || len(before.Objects) != 3 {
			t.Fatalf("%d pods and %d objects, want 3 of each: %v", len(before.Pods), len(before.Objects), before.Source.Origins)
		}
		r.stop()
		tree.Write("/m/web.yaml", text+"---\nkind: Pod\n  bad: [")
		time.Sleep(time.Hour)
		r = files(t, tree, r.store, edit)
		after := r.last()
		if state(after) != "present, spoken, web.yaml stale error" && state(after) != "present, spoken, web.yaml error" {
			t.Errorf("state %q", state(after))
		}
		if diff := cmp.Diff(byKey(before), byKey(after)); diff != "" {
			t.Errorf("what is supplied differs after a restart (-before +after):\n%s", diff)
		}

		r.stop()
		tree.Write("/m/web.yaml", "")
		time.Sleep(time.Hour)
		r = files(t, tree, r.store, edit)
		if diff := cmp.Diff(byKey(before), byKey(r.last())); diff != "" {
			t.Errorf("what is supplied differs where nothing but the store has them (-before +after):\n%s", diff)
		}
	})
}

func byKey(s sources.Supply) map[string]any {
	out := map[string]any{}
	for _, p := range s.Pods {
		out[p.Key().String()] = p
	}
	for _, o := range s.Objects {
		out[o.Key.String()] = o
	}
	return out
}
