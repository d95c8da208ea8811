package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/podkeeper/podkeeper/manifests"
	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/sources"
)

func (c *cli) validateCommand() *cobra.Command {
	v := &validation{cli: c}
	cmd := &cobra.Command{
		Use:   "validate FILE|FOLDER|-...",
		Short: "Check manifests, as the agent would",
		Long: `Check manifests, as the agent would: no agent and no engine is needed.

Each finding is a line in the form of compilers, file:line:column: severity:
field: message. A note names a field that is accepted and has no effect here. The
exit code is 1 where there is an error.`,
		Example: `  podkeeper validate web.yaml
  podkeeper validate --strict /etc/kubernetes/manifests
  helm template chart | podkeeper validate -`,
		Args: func(cmd *cobra.Command, paths []string) error {
			if len(paths) == 0 {
				return usage(cmd.CommandPath(), errors.New("want a file, a folder, or - for standard input"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, paths []string) error {
			if v.options.NodeName == "" {
				name, err := os.Hostname()
				if err != nil {
					return fmt.Errorf("host name (set --hostname-override): %w", err)
				}
				v.options.NodeName = name
			}
			for _, path := range paths {
				if err := v.path(cmd.Context(), path); err != nil {
					return err
				}
			}
			return v.show()
		},
	}
	outputFlag(cmd, &v.format, asTable, asJSON, asYAML)
	cmd.Flags().BoolVar(&v.options.Strict, "strict", false, "refuse unknown fields and duplicate keys instead of warning of them")
	cmd.Flags().StringVar(&v.options.NodeName, "hostname-override", "", "the node's `NAME`, the suffix of pods' names (default the machine's)")
	cmd.Flags().StringSliceVar(&v.extensions, "manifest-extensions", sources.DefaultExtensions(), "the `ENDINGS` of manifests in a folder")
	return cmd
}

// validation is one call of the command.
type validation struct {
	*cli
	format     format
	options    manifests.Options
	extensions []string

	pods    []*pod.Pod
	objects []*pod.Object
	report  report
}

// report is the shape of -o json.
type report struct {
	Files int       `json:"files"`
	Pods  []pod.Key `json:"pods"`
	// Objects are those beside pods.
	Objects  []pod.ObjectKey `json:"objects"`
	Problems []pod.Problem   `json:"problems"`
	Skipped  []pod.Skipped   `json:"skipped"`
}

// path checks what an argument names. An error is one of the argument, not of
// what a manifest says.
func (v *validation) path(ctx context.Context, path string) error {
	if path == "-" {
		return v.read(path, v.in)
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return v.folder(ctx, path)
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return v.read(path, f)
}

// read checks one file.
func (v *validation) read(name string, r io.Reader) error {
	data, err := io.ReadAll(io.LimitReader(r, manifests.MaxBytes+1))
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	result := v.parse(data, pod.Origin{Source: pod.SourceID{Kind: pod.FileSource, Name: name}, Name: name})
	v.report.Files++
	v.report.Problems = append(v.report.Problems, result.Problems...)
	for _, d := range result.Documents {
		if d.Pod != nil {
			v.pods = append(v.pods, d.Pod)
		}
		if d.Object != nil {
			v.objects = append(v.objects, d.Object)
		}
	}
	return nil
}

func (v *validation) parse(data []byte, origin pod.Origin) manifests.Result {
	return manifests.Parse(data, origin, v.options)
}

// folder checks a folder by the agent's own source, so that the same files are
// taken. A file that is broken is given the time that a writer might need.
func (v *validation) folder(ctx context.Context, path string) error {
	abs, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	src, err := sources.NewFile(sources.FileConfig{
		Path: abs, Extensions: v.extensions, Parse: v.parse, FS: sources.OSFiles{}, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	supply, err := firstWord(ctx, src)
	if err != nil {
		return err
	}
	if supply.Source.Problem != "" {
		return errors.New(supply.Source.Problem)
	}
	shown := func(name string) string { return filepath.Join(path, strings.TrimPrefix(name, abs)) }
	v.report.Files += len(supply.Source.Origins)
	for _, o := range supply.Source.Origins {
		for _, p := range o.Problems {
			p.File = shown(p.File)
			v.report.Problems = append(v.report.Problems, p)
		}
	}
	for _, s := range supply.Source.Skipped {
		v.report.Skipped = append(v.report.Skipped, pod.Skipped{Path: shown(s.Path), Reason: s.Reason})
	}
	for _, p := range supply.Pods {
		moved := *p
		moved.Origin.Name = shown(p.Origin.Name)
		v.pods = append(v.pods, &moved)
	}
	for _, o := range supply.Objects {
		moved := *o
		moved.Origin.Name = shown(o.Origin.Name)
		v.objects = append(v.objects, &moved)
	}
	return nil
}

// firstWord returns the first supply of a source that has spoken, or cannot.
func firstWord(ctx context.Context, src sources.Source) (supply sources.Supply, err error) {
	ctx, cancel := context.WithCancel(ctx)
	out, ended := make(chan sources.Supply), make(chan error, 1)
	go func() { ended <- src.Run(ctx, out) }()
	for !supply.Source.Spoken && supply.Source.Problem == "" {
		select {
		case supply = <-out:
		case err := <-ended: // it gave up, or ctx has ended
			cancel()
			return supply, errors.Join(err, ctx.Err())
		}
	}
	cancel()
	return supply, <-ended
}

// show writes the findings. It returns an error where there is one among them.
func (v *validation) show() error {
	v.addConflicts()
	r := &v.report
	r.Pods = append([]pod.Key{}, r.Pods...)
	r.Objects = append([]pod.ObjectKey{}, r.Objects...)
	r.Problems = append([]pod.Problem{}, r.Problems...)
	r.Skipped = append([]pod.Skipped{}, r.Skipped...)
	for _, p := range v.pods {
		r.Pods = append(r.Pods, p.Key())
	}
	for _, o := range v.objects {
		r.Objects = append(r.Objects, o.Key)
	}
	if v.format != asTable {
		if err := v.out.object(v.format, r); err != nil {
			return err
		}
	} else {
		for _, p := range r.Problems {
			v.out.printf("%s\n", v.finding(p))
		}
		for _, s := range r.Skipped {
			v.err.printf("%s: skipped: %s\n", oneLine(s.Path), oneLine(s.Reason))
		}
	}
	count := map[pod.Severity]int{}
	for _, p := range r.Problems {
		count[p.Severity]++
	}
	found := plural(len(r.Pods), "pod")
	if len(r.Objects) > 0 {
		found += ", " + plural(len(r.Objects), "object")
	}
	v.err.printf("%s in %s: %s, %s\n", found, plural(r.Files, "file"),
		plural(count[pod.Error], "error"), plural(count[pod.Warning], "warning"))
	if count[pod.Error] > 0 {
		return codeError(exitFailed)
	}
	return nil
}

// finding is a line in the form of compilers, its severity in colour.
func (v *validation) finding(p pod.Problem) string {
	tints := map[pod.Severity]tint{pod.Error: bad, pod.Warning: busy, pod.Note: faint}
	word := " " + string(p.Severity) + ": "
	return strings.Replace(oneLine(p.String()), word, " "+v.out.paint(tints[p.Severity], string(p.Severity)+":")+" ", 1)
}

// addConflicts warns of pods and objects that the agent would ignore since
// another has their name or uid.
func (v *validation) addConflicts() {
	set := pod.Set{Claims: map[pod.Key][]*pod.Pod{}, Objects: map[pod.ObjectKey][]*pod.Object{}}
	for _, p := range v.pods {
		set.Claims[p.Key()] = append(set.Claims[p.Key()], p)
	}
	for _, o := range v.objects {
		set.Objects[o.Key] = append(set.Objects[o.Key], o)
	}
	_, conflicts := set.Resolve(nil)
	_, others := set.ResolveObjects(nil)
	for _, c := range append(conflicts, others...) {
		about := "Pod " + c.Key.String()
		if c.Object != (pod.ObjectKey{}) {
			about = c.Object.String()
		}
		v.report.Problems = append(v.report.Problems, pod.Problem{
			Severity: pod.Warning, File: c.Loser.Name, Line: c.Line, Object: about, Message: conflictText(c),
		})
	}
}
