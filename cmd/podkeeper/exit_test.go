package main

import (
	"bytes"
	"context"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

// What --help says of exit codes is what commands end with.
func TestExitCodes(t *testing.T) {
	page, err := os.ReadFile("../../docs/output.md")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir()) // also the agent that is nowhere has its socket there
	files := map[string]string{
		"good.yaml":    "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  containers: [{name: c, image: i}]\n",
		"bad.yaml":     "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  containers: [{name: c}]\n",
		"kubelet.yaml": "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: Nonsense\n",
	}
	for name, text := range files {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	seen := map[int]bool{}
	for want, commands := range map[int][]string{
		exitOK: {
			"--help", "version", "completion bash", "get", "validate --hostname-override n good.yaml",
		},
		exitFailed: {
			"validate --hostname-override n bad.yaml", "validate --hostname-override n none.yaml",
		},
		exitUsage: {
			"nonsense", "get nonsense", "get pods --nonsense", "get pods -o nonsense", "get pods --root-dir=", "logs", "wait pod", "wait pod web --for=nonsense",
			"exec web ls", "cp a b", "port-forward web", "images pull", "describe pod", "describe web", "top pods --sort-by name", "run --max-events 0",
			"run --config kubelet.yaml", "run --config none.yaml", "delete", "apply", "edit",
		},
		exitOwn: {"wait pod web --for=exit", "exec web -- ls"},
		exitNoAgent: {
			"get pods", "get containers", "get images", "get events", "get sources", "get configmaps", "get secrets", "get volumes", "get node", "get persistentvolumeclaims",
			"describe pod web", "describe node", "describe configmap c", "describe secret s", "describe persistentvolumeclaim p", "describe volume web/v", "describe pod/web",
			"top pods", "top node", "logs web", "logs -f web", "events", "events -w", "wait pod web", "restart web", "stop web", "start web",
			"attach web", "cp web:/x .", "port-forward web 80", "images ls", "images pull i", "images gc", "gc", "dashboard",
			"apply -f good.yaml", "delete -f good.yaml", "edit web",
		},
	} {
		for _, command := range commands {
			t.Run(command, func(t *testing.T) {
				code, said := exitOf(t, strings.Fields(command))
				if code != want {
					t.Errorf("exit code %d, want %d: %s", code, want, said)
				}
				if next := map[int]string{exitUsage: "See `podkeeper", exitNoAgent: "Start one with `podkeeper run --root-dir "}[want]; !strings.Contains(said, next) {
					t.Errorf("it does not say what to do next, %s: %s", next, said)
				}
				seen[code] = true
			})
		}
	}
	c := standing(false)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	seen[c.report(gone, gone.Err())] = true
	for where, text := range map[string]string{"--help": exitCodesHelp, "docs/output.md": string(page)} {
		documented := map[int]bool{}
		for _, line := range regexp.MustCompile(`(?m)^(?: +(\d+)  |\| (\d+) \|)`).FindAllStringSubmatch(text, -1) {
			code, err := strconv.Atoi(line[1] + line[2])
			if err != nil {
				t.Fatal(err)
			}
			documented[code] = true
		}
		if diff := cmp.Diff(slices.Sorted(maps.Keys(documented)), slices.Sorted(maps.Keys(seen))); diff != "" {
			t.Errorf("exit codes of %s (-documented +seen):\n%s", where, diff)
		}
	}
}

// exitOf runs a command where there is no agent.
func exitOf(t *testing.T, args []string) (code int, said string) {
	t.Helper()
	var out bytes.Buffer
	c := standing(false)
	c.out, c.err, c.in = &stream{w: &out}, &stream{w: &out}, strings.NewReader("")
	if !slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "--root-dir") }) {
		at := slices.Index(args, "--")
		if at < 0 {
			at = len(args)
		}
		args = slices.Insert(slices.Clone(args), at, "--root-dir", "nowhere")
	}
	return c.main(args), out.String()
}

// Whatever can be asked of an agent that is not there says so, and what to do next.
func TestEveryCommandHasAnError(t *testing.T) {
	t.Chdir(t.TempDir())
	var leaves []string
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
		if cmd.Runnable() && len(cmd.Commands()) == 0 && !cmd.Hidden {
			leaves = append(leaves, strings.TrimPrefix(cmd.CommandPath(), "podkeeper "))
		}
	}
	walk(standing(false).rootCommand())
	for _, leaf := range leaves {
		t.Run(leaf, func(t *testing.T) {
			code, said := exitOf(t, append(strings.Fields(leaf), "--no-such-flag"))
			if code != exitUsage || !strings.Contains(said, "See `podkeeper "+leaf+" --help`.") {
				t.Errorf("exit code %d: %s", code, said)
			}
		})
	}
	if _, err := os.Lstat(filepath.Join("nowhere")); err == nil {
		t.Error("a command that failed has made the root dir")
	}
}
