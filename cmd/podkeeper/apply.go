package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/podkeeper/podkeeper/manifests"
	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/server"
)

// applyFlags are those of apply and of edit.
type applyFlags struct {
	prune, dryRun, wait bool
	timeout             time.Duration
}

func (a *applyFlags) waitFlags(cmd *cobra.Command, what string) {
	cmd.Flags().BoolVar(&a.wait, "wait", true, "return when "+what)
	cmd.Flags().DurationVar(&a.timeout, "timeout", 2*time.Minute, "give up waiting after this `TIME`; 0 is never")
}

func (c *cli) applyCommand(l *location) *cobra.Command {
	var files []string
	var a applyFlags
	cmd := &cobra.Command{
		Use:   "apply -f FILE|URL|-",
		Short: "Put manifests into the agent's folder, and wait until their pods are ready",
		Long: `Put manifests into the folder that the agent reads, and wait until their pods are
ready or have ended. Each is checked first, as "validate" does, and then takes its
place at once; one with a Secret can only be read by its owner. It gets the name that
it has, or one after its first pod.

A pod or object that another file or URL supplies is refused, and so is a file that
takes away others than its own, unless --prune says that those are to go.`,
		Example: `  podkeeper apply -f web.yaml
  helm template chart | podkeeper apply -f -
  podkeeper apply -f web.yaml --dry-run`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(files) == 0 {
				return usage(cmd.CommandPath(), errors.New("want a manifest: -f FILE"))
			}
			for _, file := range files {
				if err := c.apply(cmd.Context(), *l, a, file); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().StringSliceVarP(&files, "filename", "f", nil, "the manifest: a `FILE`, a URL, or - for standard input")
	cmd.Flags().BoolVar(&a.prune, "prune", false, "remove what the file in the folder has and the manifest has not")
	cmd.Flags().BoolVar(&a.dryRun, "dry-run", false, "change nothing, and say what would change")
	a.waitFlags(cmd, "its pods are ready or have ended")
	return cmd
}

func (c *cli) apply(ctx context.Context, l location, a applyFlags, file string) error {
	state, err := c.ask(ctx, l)
	if err != nil {
		return err
	}
	m, err := c.readManifest(ctx, file, state.NodeName)
	if err != nil {
		return err
	}
	target, err := m.place(state, a.prune)
	if err != nil {
		return err
	}
	return c.put(ctx, l, state, m, target, a)
}

// place returns the file that the manifest is to become, or why it cannot.
func (m manifestFile) place(s server.State, prune bool) (string, error) {
	owners := m.owners(s)
	folder, err := manifestFolder(s)
	if err != nil {
		return "", err
	}
	target := filepath.Join(folder, m.fileName(s.NodeName))
	if m.name == "-" && len(owners) == 1 && owners[0].Origin.Source.Kind == pod.FileSource {
		target = owners[0].Origin.Name
	}
	if abs, err := filepath.Abs(m.name); err == nil && slices.ContainsFunc(owners, func(o pod.OriginStatus) bool { return o.Origin.Name == abs }) {
		target = abs // it is in one of the folders
	}
	for _, o := range owners {
		if o.Origin.Name != target {
			return "", &failure{
				code: exitFailed, err: fmt.Errorf("%s is supplied by %s, not by %s", m.shared(o), o.Origin.Name, target),
				hint: "Change it there, or take it away there first.",
			}
		}
	}
	for _, src := range s.Sources {
		for _, o := range src.Origins {
			if extra := m.extra(o); o.Origin.Name == target && len(extra) > 0 && !prune {
				return "", &failure{
					code: exitFailed, err: fmt.Errorf("%s has %s, too, which would be removed", target, strings.Join(extra, ", ")),
					hint: "Give --prune if that is meant; else give the manifest another name, or add them to it.",
				}
			}
		}
	}
	return target, nil
}

// put writes the manifest, says what changes by that, and waits.
func (c *cli) put(ctx context.Context, l location, s server.State, m manifestFile, target string, a applyFlags) error {
	old, err := os.ReadFile(target)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	word := "configured"
	if err == nil && bytes.Equal(old, m.data) {
		word = "unchanged"
	}
	written := c.now()
	if word != "unchanged" && !a.dryRun {
		if err := replaceFile(target, m.data, m.secret()); err != nil {
			return err
		}
	}
	known := m.owners(s)
	for _, name := range m.titles() {
		said := word
		if len(known) == 0 {
			said = "created"
		}
		if a.dryRun {
			said += " (dry run)"
		}
		c.out.printf("%s %s\n", oneLine(name), said)
	}
	if a.dryRun || !a.wait {
		return c.out.failed
	}
	if word == "unchanged" {
		written = time.Time{}
	}
	return c.awaitApplied(ctx, l, m, target, written, a.timeout)
}

// titles are what the manifest has, as kubectl names things.
func (m manifestFile) titles() (names []string) {
	for _, k := range m.pods {
		names = append(names, "pod/"+k.Name)
	}
	for _, k := range m.objects {
		names = append(names, strings.ToLower(string(k.Kind))+"/"+k.Name)
	}
	return names
}

// awaitApplied waits until the agent has read the file and its pods are ready or have
// ended, and tells on the way what they wait for.
func (c *cli) awaitApplied(ctx context.Context, l location, m manifestFile, target string, written time.Time, timeout time.Duration) error {
	bounded := ctx
	if timeout > 0 {
		var cancel context.CancelFunc
		bounded, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	said, missing := map[pod.Key]string{}, "the agent has not read "+target
	err := follow(bounded, c, l, askState, func(s server.State) (bool, error) {
		read, err := readSince(s, target, written)
		if err != nil || !read {
			return false, err
		}
		missing = ""
		for _, key := range m.pods {
			text, done := progressOf(s, key, m.hashes[key])
			if said[key] != text {
				c.err.printf("pod/%s: %s\n", oneLine(key.Name), oneLine(text))
			}
			if said[key] = text; !done {
				missing = "pod " + key.String() + " is not ready: " + text
			}
		}
		return missing == "", nil
	})
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return &failure{code: exitFailed, err: fmt.Errorf("waited %s: %s", timeout, missing), hint: "The manifest is in place, and the agent goes on; `podkeeper describe pod` tells more."}
	}
	return err
}

// readSince reports whether the agent has read the file after that instant. An error
// of it that the agent found is returned.
func readSince(s server.State, file string, written time.Time) (bool, error) {
	for _, src := range s.Sources {
		for _, o := range src.Origins {
			if o.Origin.Name != file || !src.Read.After(written) {
				continue
			}
			for _, p := range o.Problems {
				if p.Severity == pod.Error {
					return false, fmt.Errorf("the agent refuses it: %s", p)
				}
			}
			return true, nil
		}
	}
	return false, nil
}

// progressOf says how far that version of a pod is; done is that there is nothing more
// to wait for.
func progressOf(s server.State, key pod.Key, hash string) (text string, done bool) {
	at := slices.IndexFunc(s.Pods, func(p server.Pod) bool { return p.Pod != nil && keyOf(p) == key })
	if at < 0 {
		for _, c := range s.Conflicts {
			if c.Key == key {
				return conflictText(c), false
			}
		}
		return "the agent has not taken it over yet", false
	}
	p := s.Pods[at]
	word := podWord(p)
	switch {
	case !p.Held.IsZero():
		return "stopped by hand, until `podkeeper start`", true
	case p.Blocked == nil && p.Pod.Annotations[manifests.HashAnnotation] != hash:
		return "the agent has not taken it over yet", false
	case p.Blocked != nil:
		return reasonText(p.Blocked.Reason, p.Blocked.Message), false
	case word == "Completed", word == "Succeeded", p.Pod.Status.Phase == "Succeeded", p.Pod.Status.Phase == "Failed":
		return word, p.Settled()
	}
	ready := conditionStatus(&p.Pod.Status, "Ready") == "True"
	return word + ", " + readiness(p.Pod) + " ready", ready && p.Settled()
}
