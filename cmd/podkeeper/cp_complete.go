package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/podkeeper/podkeeper/runtime"
)

// completeCopy lets a shell complete the arguments of cp: pods with the colon that paths
// in them begin behind, those paths, and files here.
func (c *cli) completeCopy(l *location, namespace, container *string) cobra.CompletionFunc {
	pods := c.completePods(l, namespace, true)
	return func(cmd *cobra.Command, args []string, text string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 1 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		if len(args) == 1 && placeOf(args[0]).pod != "" || strings.HasPrefix(text, "/") || strings.HasPrefix(text, ".") || strings.HasPrefix(text, "~") {
			return nil, cobra.ShellCompDirectiveDefault
		}
		if at := placeOf(text); at.pod != "" {
			return c.completePath(cmd.Context(), l, *namespace, *container, at)
		}
		names, _ := pods(cmd, nil, text)
		var places []string
		for _, name := range names {
			if strings.HasPrefix(name, text) {
				places = append(places, name+":")
			}
		}
		return places, cobra.ShellCompDirectiveNoSpace // where there are none, shells complete files
	}
}

// maxListing is how much of a container's listing is read.
const maxListing = 1 << 20

// listingBuffer refuses what is more than that.
type listingBuffer struct{ bytes.Buffer }

func (b *listingBuffer) Write(p []byte) (int, error) {
	if b.Len()+len(p) > maxListing {
		return 0, errors.New("the listing is too long")
	}
	return b.Buffer.Write(p)
}

// completePath completes a path in a container, which has to have ls for that.
func (c *cli) completePath(ctx context.Context, l *location, namespace, container string, at place) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second) // a shell cannot wait longer
	defer cancel()
	where, err := l.complete()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	of, err := c.containerOf(ctx, where, namespace, at.pod, container)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	dir, begun := path.Split(at.path)
	var listing listingBuffer
	// ls says what it cannot read, and lists the rest: its exit code tells nothing. A name
	// that begins with a dash is no option with ./ before it.
	command := []string{"ls", "-1apL", cleanDir(dir)}
	if strings.HasPrefix(dir, "-") {
		command[2] = "./" + dir
	}
	if _, err := c.converse(ctx, where, "exec", of, command, runtime.Streams{Stdout: &listing, Stderr: io.Discard}); err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return pathsIn(listing.String(), at.pod+":"+dir, begun)
}

// pathsIn are the completions in a listing of what has begun. A folder gets no space
// behind it: more may follow.
func pathsIn(listing, before, begun string) ([]string, cobra.ShellCompDirective) {
	var found []string
	directive := cobra.ShellCompDirectiveNoFileComp
	for name := range strings.Lines(listing) {
		name = strings.TrimSuffix(name, "\n")
		hidden := strings.HasPrefix(name, ".") && !strings.HasPrefix(begun, ".")
		if name == "" || name == "./" || name == "../" || hidden || !strings.HasPrefix(name, begun) || strings.IndexFunc(name, unprintable) >= 0 {
			continue
		}
		found = append(found, before+name)
	}
	if len(found) == 1 && strings.HasSuffix(found[0], "/") {
		directive |= cobra.ShellCompDirectiveNoSpace
	}
	return found, directive
}
