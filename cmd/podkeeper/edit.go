package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/podkeeper/podkeeper/pod"
)

func (c *cli) editCommand(l *location) *cobra.Command {
	var namespace string
	var a applyFlags
	cmd := &cobra.Command{
		Use:   "edit POD",
		Short: "Edit the manifest of a pod, and have it checked before it is put back",
		Long: `Edit the file that supplies a pod with $KUBE_EDITOR, $VISUAL or $EDITOR (else vi). What
was edited is a copy; it is checked as "validate" does, and takes the file's place at
once. An edit with errors is kept, and named, and the file stays as it is.`,
		Example: `  podkeeper edit web
  EDITOR="code --wait" podkeeper edit web -n shop`,
		Args: oneName,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.edit(cmd.Context(), *l, namespace, args[0], a)
		},
	}
	a.dryRun = "none"
	namespaceFlags(cmd, &namespace)
	a.waitFlags(cmd, "its pods are ready or have ended")
	cmd.ValidArgsFunction = c.completePods(l, &namespace, false)
	return cmd
}

func (c *cli) edit(ctx context.Context, l location, namespace, name string, a applyFlags) error {
	_, p, err := c.theOne(ctx, l, namespace, name)
	if err != nil {
		return err
	}
	file := p.Origin.Name
	if p.Origin.Source.Kind != pod.FileSource {
		return &failure{code: exitFailed, err: fmt.Errorf("pod %s is supplied by %s, which is no file", keyOf(p), sourceOf(p)), hint: "Edit it there."}
	}
	before, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	copied, after, err := c.editCopy(file, before)
	if err != nil {
		return err
	}
	kept := func(err error) error {
		return &failure{code: exitFailed, err: err, hint: "Your edit is kept in " + copied + "."}
	}
	if bytes.Equal(before, after) {
		c.err.printf("Edit cancelled, no changes made.\n")
		return os.Remove(copied)
	}
	// A Ctrl-C in the editor was the editor's; from now on it is ours.
	ctx, stop := signal.NotifyContext(context.WithoutCancel(ctx), os.Interrupt, syscall.SIGTERM)
	defer stop()
	state, err := c.askReady(ctx, l)
	if err != nil {
		return kept(err)
	}
	m, err := c.checkManifest(copied, after, state)
	if err != nil {
		return kept(err)
	}
	for _, o := range m.owners(state) {
		if o.Origin.Name != file {
			return kept(fmt.Errorf("%s is supplied by %s, too", m.shared(o), o.Origin.Name))
		}
	}
	was, _ := parseManifest(file, before, state)
	e := &edition{manifestFile: m, target: file, old: before, was: was}
	err = c.put(ctx, l, state, a, e)
	if now, failed := os.ReadFile(file); failed != nil || !bytes.Equal(now, after) {
		return kept(err)
	}
	return errors.Join(err, os.Remove(copied))
}

// editCopy has a copy of the file edited, which only its owner can read, and returns
// where it is and what it says then.
func (c *cli) editCopy(file string, data []byte) (path string, after []byte, err error) {
	f, err := os.CreateTemp("", "podkeeper-edit-*"+filepath.Ext(file))
	if err != nil {
		return "", nil, err
	}
	_, err = f.Write(data)
	if err := errors.Join(err, f.Close()); err != nil {
		return "", nil, err
	}
	command := "vi"
	for _, name := range []string{"EDITOR", "VISUAL", "KUBE_EDITOR"} {
		if v := strings.TrimSpace(os.Getenv(name)); v != "" {
			command = v
		}
	}
	// By a shell, since the variable may have arguments, and quotes. It has the terminal
	// itself, and lives until it ends: the keys that interrupt are its own, and no end of
	// us or of the shell. Ignored there they would be in the editor, too.
	keys := make(chan os.Signal, 1)
	signal.Notify(keys, os.Interrupt, syscall.SIGQUIT)
	defer signal.Stop(keys)
	editor := exec.Command("sh", "-c", "trap : INT QUIT; "+command+` "$1"`, "sh", f.Name())
	editor.Stdin, editor.Stdout, editor.Stderr = c.in, c.out.w, c.err.w
	if err := editor.Run(); err != nil {
		return "", nil, &failure{code: exitFailed, err: fmt.Errorf("editor %s: %w", command, err), hint: "Name another with $EDITOR. The copy is kept in " + f.Name() + "."}
	}
	after, err = os.ReadFile(f.Name())
	return f.Name(), after, err
}
