package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/podkeeper/podkeeper/runtime"
)

func (c *cli) copyCommand(l *location) *cobra.Command {
	var namespace, container string
	cmd := &cobra.Command{
		Use:   "cp SOURCE DESTINATION",
		Short: "Copy a file or folder to or from a container",
		Long: `Copy a file or folder to or from a container that runs. One of the two is a path here,
the other POD:PATH or NAMESPACE/POD:PATH. The image has to have tar.

A destination that is a folder gets the source in it. Symbolic links, devices and the
like are passed over, with a word about each, when they come out of a container; what
comes stays within the destination, whatever the container says.`,
		Example: `  podkeeper cp web:/etc/nginx/nginx.conf .
  podkeeper cp site/ shop/web:/srv -c nginx`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usage(cmd.CommandPath(), fmt.Errorf("want a source and a destination, got %d arguments", len(args)))
			}
			if (placeOf(args[0]).pod == "") == (placeOf(args[1]).pod == "") {
				return usage(cmd.CommandPath(), errors.New("want one path here and one of a pod, as POD:PATH"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			from, to := placeOf(args[0]), placeOf(args[1])
			remote := from
			if remote.pod == "" {
				remote = to
			}
			if remote.path == "" {
				return usage(cmd.CommandPath(), fmt.Errorf("%s: want a path after the colon", remote.pod))
			}
			where, err := c.containerOf(cmd.Context(), *l, namespace, remote.pod, container)
			if err != nil {
				return err
			}
			if from.pod != "" {
				return c.copyFrom(cmd.Context(), *l, where, from.path, to.path)
			}
			return c.copyTo(cmd.Context(), *l, where, from.path, to.path)
		},
	}
	namespaceFlags(cmd, &namespace)
	cmd.Flags().StringVarP(&container, "container", "c", "", "this `CONTAINER` (default the pod's first one)")
	c.completeContainersOf(cmd, l, &namespace, func(arg string) string { return placeOf(arg).pod })
	cmd.ValidArgsFunction = c.completeCopy(l, &namespace, &container)
	return cmd
}

// place is a path here, or in a pod.
type place struct{ pod, path string }

// placeOf reads one. As with kubectl and docker, what begins with a dot or a slash is
// here, whatever comes after.
func placeOf(text string) place {
	pod, path, ok := strings.Cut(text, ":")
	if !ok || pod == "" || strings.HasPrefix(text, "/") || strings.HasPrefix(text, ".") {
		return place{path: text}
	}
	return place{pod, path}
}

// copyFrom copies what is at a path in a container to a path here.
func (c *cli) copyFrom(ctx context.Context, l location, where target, from, to string) error {
	from = path.Clean(from)
	dir, name := path.Split(from)
	if name == "" || name == ".." { // the whole of a folder that has no name from here
		dir, name = from, "."
	}
	here := to
	if info, err := os.Stat(to); err == nil && info.IsDir() {
		here = filepath.Join(to, name)
	}
	archive, out := io.Pipe()
	unpacked := make(chan error, 1)
	go func() {
		err := unpack(archive, name, here, func(text string) { c.err.printf("%s\n", oneLine(text)) })
		// What follows in the archive is read, or the container's tar would fail.
		if err == nil {
			_, err = io.Copy(io.Discard, archive)
		}
		archive.CloseWithError(err)
		unpacked <- err
	}()
	// A name that begins with a dash is no option with ./ before it.
	err := c.tar(ctx, l, where, []string{"tar", "-cf", "-", "-C", cleanDir(dir), "./" + name}, nil, out)
	out.CloseWithError(err)
	failed := <-unpacked
	if failed != nil && !errors.Is(failed, err) || err == nil {
		return failed
	}
	return err
}

// cleanDir is a folder as tar is told it.
func cleanDir(dir string) string {
	if dir == "" {
		return "."
	}
	return dir
}

// copyTo copies what is at a path here to a path in a container.
func (c *cli) copyTo(ctx context.Context, l location, where target, from, to string) error {
	if _, err := os.Lstat(from); err != nil {
		return err
	}
	isDir, err := c.converse(ctx, l, "exec", where, []string{"test", "-d", to}, runtime.Streams{Stdout: io.Discard, Stderr: io.Discard})
	if err != nil {
		return err
	}
	dir, name := path.Split(path.Clean(to))
	if isDir == 0 {
		whole, err := filepath.Abs(from) // also "." has a name then
		if err != nil {
			return err
		}
		dir, name = to, filepath.Base(whole)
	}
	archive, in := io.Pipe()
	packed := make(chan error, 1)
	go func() {
		err := pack(in, from, name)
		in.CloseWithError(err)
		packed <- err
	}()
	err = c.tar(ctx, l, where, []string{"tar", "-xmf", "-", "-C", cleanDir(dir)}, archive, io.Discard)
	archive.CloseWithError(errors.New("the container reads no more"))
	if failed := <-packed; failed != nil && err == nil {
		return failed
	}
	return err
}

// tar runs tar in a container. What it complains of is in the error.
func (c *cli) tar(ctx context.Context, l location, where target, command []string, in io.ReadCloser, out io.Writer) error {
	var complaint bytes.Buffer
	code, err := c.converse(ctx, l, "exec", where, command, runtime.Streams{Stdin: in, Stdout: out, Stderr: &complaint})
	said := strings.TrimSpace(complaint.String())
	switch {
	case err != nil:
		return err
	case code == 126 || code == 127:
		return &failure{code: exitFailed, err: fmt.Errorf("container %s has no tar: %s", where.container, oneLine(said)), hint: "cp needs tar in the image."}
	case code != 0:
		return fmt.Errorf("tar in container %s: %s", where.container, oneLine(said))
	default:
		return nil
	}
}
