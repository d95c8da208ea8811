// Package packaging_test checks what is shipped beside the binary.
package packaging_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// unit is the service file as section/name to value.
func unit(t *testing.T) (text string, settings map[string]string) {
	t.Helper()
	return unitOf(t, "podkeeper.service")
}

func unitOf(t *testing.T, name string) (text string, settings map[string]string) {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	settings = map[string]string{}
	section := ""
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if strings.HasPrefix(line, "[") {
			section = strings.Trim(line, "[]")
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if key := section + "/" + name; !ok || settings[key] != "" {
			t.Errorf("line %q is no setting, or its second", line)
		} else {
			settings[key] = value
		}
	}
	return string(data), settings
}

// A stop of the service touches no pod (law 5), a hang of the loop ends in a
// restart, and a restart of the engine does not take the agent down.
func TestUnitSaysWhatTheAgentReliesOn(t *testing.T) {
	_, got := unit(t)
	for key, want := range map[string]string{
		"Unit/After":            "docker.service",
		"Unit/Wants":            "docker.service",
		"Unit/Requires":         "",
		"Service/Type":          "notify",
		"Service/WatchdogSec":   "60",
		"Service/KillMode":      "process",
		"Service/Restart":       "always",
		"Service/ExecStart":     "/usr/local/bin/podkeeper run",
		"Install/WantedBy":      "multi-user.target",
		"Service/NotifyAccess":  "main",
		"Service/DynamicUser":   "",
		"Service/User":          "",
		"Service/UMask":         "",
		"Service/PrivateUsers":  "",
		"Service/ProtectClock":  "",
		"Service/DevicePolicy":  "",
		"Service/RootDirectory": "",
	} {
		if diff := cmp.Diff(want, got[key]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", key, diff)
		}
	}
}

// Any of these gives the service a mount namespace, from which volumes that the
// agent mounts do not reach the engine.
func TestUnitKeepsTheMachinesMounts(t *testing.T) {
	_, got := unit(t)
	for key := range got {
		name := strings.TrimPrefix(key, "Service/")
		for _, prefix := range []string{
			"Protect", "Private", "ReadOnlyPaths", "ReadWritePaths", "InaccessiblePaths", "NoExecPaths", "ExecPaths",
			"BindPaths", "BindReadOnlyPaths", "TemporaryFileSystem", "Mount", "Root", "RestrictSUIDSGID",
		} {
			if strings.HasPrefix(name, prefix) {
				t.Errorf("%s hides mounts of the agent from the engine, or breaks volumes", name)
			}
		}
	}
}

// systemd's own judgement, where there is a systemd. The binary is not installed
// on every machine that runs the tests, so the unit gets one that is.
func TestUnitVerifies(t *testing.T) {
	text, settings := unit(t)
	if settings["Service/ExecStart"] == "" {
		t.Fatal("the unit starts nothing")
	}
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		return
	}
	t.Run("systemd-analyze", func(t *testing.T) {
		shell, err := exec.LookPath("sh")
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "podkeeper.service")
		text := strings.Replace(text, "/usr/local/bin/podkeeper", shell, 1)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(analyze, "verify", "--man=no", file).CombinedOutput()
		if err != nil || strings.Contains(string(out), file) {
			t.Errorf("systemd-analyze verify: %v\n%s", err, out)
		}
	})
}

// The oneshot has a root dir of its own, so that it never meets the agent's pods.
func TestOneshot(t *testing.T) {
	_, got := unitOf(t, "podkeeper-once.service")
	run, rest := got["Service/ExecStart"], got["Service/ExecStopPost"]
	const root = " --root-dir /var/lib/podkeeper-once"
	if got["Service/Type"] != "oneshot" || !strings.Contains(run, "run --runonce --down") || !strings.Contains(run+" ", root+" ") || !strings.Contains(rest+" ", root+" ") {
		t.Errorf("it is %q, then %q", run, rest)
	}
}
