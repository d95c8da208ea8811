package agent_test

import (
	"os"
	"path/filepath"
	"testing"
)

const twoContainers = `
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  terminationGracePeriodSeconds: 2
  containers:
  - {name: a, image: "busybox:stable", command: [sleep, "3600"]}
  - {name: b, image: "busybox:stable", command: [sleep, "3601"]}
`

func TestManifestBecomesRunningPodAndGoesAgain(t *testing.T) {
	w := newWorld(t)
	w.start()
	w.write("web.yaml", twoContainers)
	w.await("web runs", running("web"))
	got := w.containers()
	for _, name := range []string{"web-node/POD/0", "web-node/a/0", "web-node/b/0"} {
		if got[name].State != "running" {
			t.Errorf("%s is %q, want running", name, got[name].State)
		}
	}
	w.remove("web.yaml")
	w.await("web is gone", gone("web"))
	if left := w.containers(); len(left) != 0 {
		t.Errorf("%d containers are left", len(left))
	}
	if entries, _ := os.ReadDir(filepath.Join(w.cfg.RootDir, "pods")); len(entries) != 0 {
		t.Errorf("folders are left: %v", entries)
	}
}
