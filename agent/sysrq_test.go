//go:build sysrq

package agent_test

import (
	"os"
	"testing"
)

// The machine is told to act as if it were out of memory: it kills who is to go first,
// and that is told with whose it was. Where something else of the machine's has as high
// a score, that one may go; it is for a machine that is the test's alone.
func TestSystemOOM(t *testing.T) {
	w := newWorld(t)
	// With the score of a best effort pod, and with more memory than others of that score.
	w.write("victim.yaml", manifest("{name: victim}", shell("app", "exec dd if=/dev/zero of=/dev/null bs=64M"))+"  restartPolicy: Never\n")
	w.start()
	w.await("it runs", running("victim"))
	if err := os.WriteFile("/proc/sysrq-trigger", []byte("f"), 0); err != nil {
		t.Fatal(err)
	}
	w.poll("it was told", func() bool {
		return len(w.told("SystemOOM", "victim-node", "app", "the machine is out of memory")) == 1
	})
	if wrong := w.said.lines("reason=OOMKilling"); len(wrong) > 0 {
		t.Errorf("told of a limit: %q", wrong)
	}
}
