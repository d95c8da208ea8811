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
	prune, wait bool
	dryRun      string // as kubectl has it: none, client or server
	timeout     time.Duration
}

func (a *applyFlags) dry() bool { return a.dryRun != "none" }

// dryRunFlag adds --dry-run, which needs no value.
func (a *applyFlags) dryRunFlag(cmd *cobra.Command, text string) {
	cmd.Flags().StringVar(&a.dryRun, "dry-run", "none", text+": `none|client|server`, the last two alike")
	cmd.Flags().Lookup("dry-run").NoOptDefVal = "client"
	check := cmd.Args
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if !slices.Contains([]string{"none", "client", "server"}, a.dryRun) {
			return usage(cmd.CommandPath(), fmt.Errorf("--dry-run %q: want none, client or server", a.dryRun))
		}
		return check(cmd, args)
	}
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
			return c.apply(cmd.Context(), *l, a, files)
		},
	}
	cmd.Flags().StringSliceVarP(&files, "filename", "f", nil, "the manifest: a `FILE`, a URL, or - for standard input")
	cmd.Flags().BoolVar(&a.prune, "prune", false, "remove what the file in the folder has and the manifest has not")
	a.dryRunFlag(cmd, "change nothing, and say what would change")
	a.waitFlags(cmd, "its pods are ready or have ended")
	return cmd
}

// edition is a manifest and the file that it is to become.
type edition struct {
	manifestFile
	target string
	// old is what the file says, nil where it is not there; was has what that had.
	old []byte
	was manifestFile
	// written is when it was put there, zero where it was not.
	written time.Time
}

// apply has all manifests checked before the first is written, and all written before
// any is waited for: they may need each other.
func (c *cli) apply(ctx context.Context, l location, a applyFlags, files []string) error {
	state, err := c.askReady(ctx, l)
	if err != nil {
		return err
	}
	var list []*edition
	for _, file := range files {
		m, err := c.readManifest(ctx, file, state)
		if err != nil {
			return err
		}
		e, err := m.place(state, a.prune)
		if err != nil {
			return err
		}
		for _, o := range list {
			if o.target == e.target || o.overlaps(m) {
				return fmt.Errorf("%s and %s are of the same name, or have the same things: give one at a time", o.name, e.name)
			}
		}
		list = append(list, e)
	}
	return c.put(ctx, l, state, a, list...)
}

func (m manifestFile) overlaps(o manifestFile) bool {
	return slices.ContainsFunc(m.pods, func(k pod.Key) bool { return slices.Contains(o.pods, k) }) ||
		slices.ContainsFunc(m.objects, func(k pod.ObjectKey) bool { return slices.Contains(o.objects, k) })
}

// askReady asks for the state of an agent that has looked at everything once: before
// that nobody can tell who supplies what.
func (c *cli) askReady(ctx context.Context, l location) (state server.State, err error) {
	err = c.within(ctx, answerWithin, func(ctx context.Context) error {
		return follow(ctx, c, l, askState, func(s server.State) (bool, error) {
			state = s
			return s.Ready, nil
		})
	}, func() error {
		return &failure{code: exitFailed, err: errors.New("the agent has not looked at all of its sources yet"), hint: "Try it again; `podkeeper get sources` tells which."}
	})
	return state, err
}

// within bounds f; 0 is no bound. late says what it means that time ran out.
func (c *cli) within(ctx context.Context, most time.Duration, f func(context.Context) error, late func() error) error {
	bounded := ctx
	if most > 0 {
		var cancel context.CancelFunc
		bounded, cancel = context.WithTimeout(ctx, most)
		defer cancel()
	}
	err := f(bounded)
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return late()
	}
	return err
}

// place returns the file that the manifest is to become, or why it cannot.
func (m manifestFile) place(s server.State, prune bool) (*edition, error) {
	owners := m.owners(s)
	folder, err := manifestFolder(s)
	if err != nil {
		return nil, err
	}
	target := filepath.Join(folder, m.fileName(s))
	if m.name == "-" && len(owners) == 1 && owners[0].Origin.Source.Kind == pod.FileSource {
		target = owners[0].Origin.Name
	}
	if abs, err := filepath.Abs(m.name); err == nil && !isURL(m.name) && slices.ContainsFunc(owners, func(o pod.OriginStatus) bool { return o.Origin.Name == abs }) {
		target = abs // it is in one of the folders
	}
	for _, o := range owners {
		if o.Origin.Name != target {
			return nil, &failure{
				code: exitFailed, err: fmt.Errorf("%s is supplied by %s, not by %s", m.shared(o), o.Origin.Name, target),
				hint: "Change it there, or take it away there first.",
			}
		}
	}
	return m.replacing(target, s, prune)
}

// replacing looks at the file that the manifest is to replace.
func (m manifestFile) replacing(target string, s server.State, prune bool) (*edition, error) {
	e := &edition{manifestFile: m, target: target}
	old, err := os.ReadFile(target)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return e, nil
	case err != nil:
		return nil, err
	}
	e.old = old
	e.was, _ = parseManifest(target, old, s)
	if !prune && !bytes.Equal(old, m.data) {
		if err := m.spares(target, old, s); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// write puts the manifest in place, unless somebody else has changed the file since.
func (e *edition) write(now time.Time) error {
	data, err := os.ReadFile(e.target)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if !bytes.Equal(data, e.old) {
		return fmt.Errorf("%s was changed by somebody else meanwhile", e.target)
	}
	if e.old != nil && bytes.Equal(e.old, e.data) && !e.secret() {
		return nil
	}
	if e.old == nil || !bytes.Equal(e.old, e.data) {
		e.written = now
	}
	return replaceFile(e.target, e.data, e.secret())
}

// put writes the manifests, says what changes by that, and waits.
func (c *cli) put(ctx context.Context, l location, s server.State, a applyFlags, list ...*edition) error {
	suffix := ""
	if a.dry() {
		suffix = " (dry run)"
	}
	for _, e := range list {
		if !a.dry() {
			if err := e.write(c.now()); err != nil {
				return err
			}
		}
		had := append(e.was.titles(), e.kept(s).titles()...)
		for _, name := range e.titles() {
			word := "created"
			switch {
			case e.old != nil && bytes.Equal(e.old, e.data):
				word = "unchanged"
			case slices.Contains(had, name):
				word = "configured"
			}
			c.out.printf("%s %s%s\n", oneLine(name), word, suffix)
		}
	}
	if a.dry() || !a.wait {
		return c.out.failed
	}
	return c.awaitApplied(ctx, l, list, a.timeout)
}

// kept is what the agent goes on with of a file.
func (e *edition) kept(s server.State) (m manifestFile) {
	for _, o := range e.owners(s) {
		m.pods, m.objects = append(m.pods, o.Pods...), append(m.objects, o.Objects...)
	}
	return m
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

// awaitApplied waits until the agent has read the files and their pods are ready or have
// ended, and tells on the way what they wait for.
func (c *cli) awaitApplied(ctx context.Context, l location, list []*edition, timeout time.Duration) error {
	said, missing := map[pod.Key]string{}, "the agent has not read "+list[0].target
	look := func(s server.State) (bool, error) {
		missing = ""
		for _, e := range list {
			read, err := readSince(s, e.target, e.written)
			if err != nil {
				return false, err
			}
			if !read {
				missing = "the agent has not read " + e.target
				continue
			}
			for _, key := range e.pods {
				text, done := progressOf(s, key, e.hashes[key])
				if said[key] != text {
					c.err.printf("pod/%s: %s\n", oneLine(key.Name), oneLine(text))
				}
				if said[key] = text; !done {
					missing = "pod " + key.String() + " is not ready: " + text
				}
			}
		}
		return missing == "", nil
	}
	return c.within(ctx, timeout, func(ctx context.Context) error { return follow(ctx, c, l, askState, look) }, func() error {
		return &failure{code: exitFailed, err: fmt.Errorf("waited %s: %s", timeout, missing), hint: "The manifest is in place, and the agent goes on; `podkeeper describe pod` tells more."}
	})
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
