package main

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func newSettings() (*settings, *pflag.FlagSet) {
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	s := &settings{}
	s.sourceFlags(f)
	s.engineFlags(f)
	return s, f
}

// What is told as the effective configuration makes the same one when it is read, so
// that nobody can be told anything else than what holds.
func TestEffectiveConfigurationReadBack(t *testing.T) {
	s, flags := newSettings()
	for _, args := range [][]string{
		{},
		{
			"--manifests=/m", "--manifest-url=https://h/pods", "--file-check-frequency=3s", "--http-check-frequency=4s",
			"--resolv-conf=/r", "--cluster-dns=10.0.0.1,10.0.0.2", "--max-pods=7", "--pod-max-pids=9", "--system-reserved=cpu=1,memory=1Gi",
			"--eviction-hard=memory.available<1Gi,nodefs.available<5%", "--eviction-soft=memory.available<2Gi", "--eviction-soft-grace-period=memory.available=1m30s",
			"--eviction-minimum-reclaim=nodefs.available=1Gi", "--shutdown-grace-period-by-pod-priority=0=60s,5=10s",
			"--enforce-node-allocatable=none", "--cgroups-per-qos=false", "--oom-score-adj=-5", "--allowed-unsafe-sysctls=net.core.somaxconn",
			"--address=10.0.0.1", "--port=1", "--read-only-port=0", "--healthz-port=3", "--anonymous-auth", "--client-ca-file=/ca",
			"--enable-debugging-handlers=false", "--profiling", "--streaming-connection-idle-timeout=1h",
		},
	} {
		if err := flags.Parse(args); err != nil {
			t.Fatal(err)
		}
		if _, err := s.config(flags, location{rootDir: defaultRootDir}, "", slog.New(slog.DiscardHandler)); err != nil {
			t.Fatal(err)
		}
		data, err := json.Marshal(effective(flags))
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "config.json")
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		var said bytes.Buffer
		_, again := newSettings()
		if err := applyKubeletFile(file, again, slog.New(slog.NewTextHandler(&said, nil))); err != nil {
			t.Fatalf("%v: %s", err, data)
		}
		if strings.Contains(said.String(), "unknown") {
			t.Errorf("it has fields that no kubelet knows: %s", &said)
		}
		compared := 0
		for field, at := range kubeletFields() {
			compared++
			want, got := flags.Lookup(at.flag).Value.String(), again.Lookup(at.flag).Value.String()
			if sortedList(want) != sortedList(got) { // a map has no order
				t.Errorf("%v: %s is told as %s, want %s", args, field, got, want)
			}
		}
		if compared < 40 {
			t.Errorf("%d fields compared", compared)
		}
	}
}

func sortedList(text string) string {
	list := strings.Split(strings.Trim(text, "[]"), ",")
	slices.Sort(list)
	return strings.Join(list, ",")
}
