package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestTour runs the commands of docs/tour.md, all of them, in one shell that ends at
// the first that fails. It needs a Docker Engine with busybox:stable.
func TestTour(t *testing.T) {
	text, err := os.ReadFile("../../docs/tour.md")
	if err != nil {
		t.Fatal(err)
	}
	var script strings.Builder
	script.WriteString("set -eu -o pipefail\n")
	inside := false
	for line := range strings.Lines(string(text)) {
		switch {
		case strings.HasPrefix(line, "```"):
			inside = strings.TrimSpace(line) == "```sh"
		case inside:
			script.WriteString(line)
		}
	}
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The program goes by its name, as TestMain has it.
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	program := "#!/bin/sh\nexec " + filepath.Join(dir, "podkeeper-real") + ` "$@"` + "\n"
	err = errors.Join(os.Symlink(self, filepath.Join(dir, "podkeeper-real")), os.WriteFile(filepath.Join(dir, "bin", "podkeeper"), []byte(program), 0o755))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", script.String())
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	err = cmd.Run()
	t.Cleanup(func() {
		// What a tour that broke off has left: its agent, then its pods.
		if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			t.Error(err)
		}
		left := exec.Command(filepath.Join(dir, "podkeeper-real"), "delete", "--all", "--root-dir", filepath.Join(dir, "tour", "state"))
		if said, err := left.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, said)
		}
	})
	if err != nil {
		log, _ := os.ReadFile(filepath.Join(dir, "tour", "agent.log"))
		t.Fatalf("%v\n%s\nthe agent:\n%s", err, out.String(), log)
	}
	for _, want := range []string{
		"pod/web-tour created", "configmap/web created", "pod/web-tour configured", "hello", "refused, and the edit is kept",
		"last good version", "pod/web-tour stopped", "Stopped", "pod/web-tour started", "container clock restarted",
		"Ready", "pod/web-tour deleted", "k8s_app_web-tour_default_", "everything is removed",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in what it says:\n%s", want, out.String())
		}
	}
}
