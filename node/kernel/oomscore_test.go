package kernel_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"testing"

	"github.com/podkeeper/podkeeper/node/kernel"
)

func TestOOMScoreAdj(t *testing.T) {
	child := exec.Command("cat")
	if _, err := child.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer child.Wait()
	defer child.Process.Kill()
	dir := fmt.Sprintf("/proc/%d", child.Process.Pid)
	if err := kernel.EnsureOOMScoreAdj(dir, 500); err != nil {
		t.Fatal(err)
	}
	if got := read(t, dir, "oom_score_adj"); got != "500" {
		t.Errorf("it is %s, want 500", got)
	}
	// Whether it can go down depends on the machine; what it says must be true.
	want := "-999"
	err := kernel.EnsureOOMScoreAdj(dir, -999)
	if err != nil {
		want = "500"
		if !errors.Is(err, fs.ErrPermission) {
			t.Errorf("refused with %v, want a permission error", err)
		}
	}
	if got := read(t, dir, "oom_score_adj"); got != want {
		t.Errorf("it is %s after error %v, want %s", got, err, want)
	}
	if err := kernel.EnsureOOMScoreAdj(dir, 2000); err == nil {
		t.Error("2000 was taken")
	}
}
