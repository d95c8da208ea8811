package agent_test

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
)

// C120: what a container says of its end, with the limits of Kubernetes, is shown
// and survives the container.
func TestTerminationMessages(t *testing.T) {
	w := newWorld(t)
	const fallback = "terminationMessagePolicy: FallbackToLogsOnError"
	w.write("term.yaml", manifest("{name: term}",
		shell("file", "printf 'root cause' > /dev/termination-log; exit 1"),
		shell("big", "yes abcdefghi | head -c 6000 > /dev/termination-log; printf END >> /dev/termination-log"),
		shell("fall", "i=0; while [ $i -lt 200 ]; do echo line$i; i=$((i+1)); done; exit 2", fallback),
		shell("fallok", "echo hello; exit 0", fallback),
		shell("own", "printf there > /tmp/why; exit 1", "terminationMessagePath: /tmp/why"),
		shell("nofall", "echo logged; exit 2"))+"  restartPolicy: Never\n")
	w.start()
	check := func() {
		t.Helper()
		s := w.await("all is read", phase("term", v1.PodFailed), settled("term"))
		said := func(name string) string { return status(s, "term", name).State.Terminated.Message }
		for name, want := range map[string]string{"file": "root cause", "fallok": "", "nofall": "", "own": "there"} {
			if got := said(name); got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
		// The last 4096 bytes, of which the pod's share stays: 12 KiB for six.
		whole := strings.Repeat("abcdefghi\n", 600) + "END"
		if want := whole[len(whole)-4096:][:2048]; said("big") != want {
			t.Errorf("big: %d bytes, %.20q…, want %d, %.20q…", len(said("big")), said("big"), len(want), want)
		}
		if got := said("fall"); !strings.HasSuffix(got, "line199\n") || strings.Count(got, "\n") != 80 || len(got) > 2048 {
			t.Errorf("fall: %d bytes, %q", len(got), got)
		}
	}
	check()
	for _, name := range []string{"file", "big", "fall", "fallok", "nofall", "own"} {
		w.removeContainer(w.containers()["term-node/"+name+"/0"].ID)
	}
	w.restart()
	check()
}
