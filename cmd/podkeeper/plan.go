package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/server"
)

func (c *cli) planCommand(l *location) *cobra.Command {
	var set settings
	var output format
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Show what the agent would do now, and why; nothing is done",
		Long: `Show what the agent would do now, and why; nothing is done.

The agent is asked. Where none answers, this command looks at the manifests and
the engine itself, with the settings that its flags give, which are those of run.

The number before a step is its wave: the steps of one wave go beside each other,
and what comes in later waves is a forecast.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			state, err := c.ask(cmd.Context(), *l)
			switch {
			case errors.Is(err, server.ErrNoAgent):
				c.err.printf("No agent answers on %s: looking at manifests and engine without it.\n", l.socket)
				if state, err = c.lookWithout(cmd, *l, &set); err != nil {
					return err
				}
			case err != nil:
				return err
			default:
				if ignored := given(cmd.Flags()); len(ignored) > 0 {
					c.err.printf("An agent answers and plans with its own settings; not used: %s.\n", strings.Join(ignored, ", "))
				}
			}
			return c.showPlan(output, state)
		},
	}
	set.sourceFlags(cmd.Flags())
	set.engineFlags(cmd.Flags())
	outputFlag(cmd, &output, asTable, asJSON, asYAML)
	return cmd
}

func (c *cli) lookWithout(cmd *cobra.Command, l location, set *settings) (server.State, error) {
	log := c.logger(&logSettings{format: "text", level: "warn"}, c.screen())
	cfg, err := set.config(cmd.Flags(), l, c.version, log)
	if err != nil {
		return server.State{}, usage(cmd.CommandPath(), err)
	}
	return c.agent.look(cmd.Context(), cfg, log)
}

// planList is the shape of -o json.
type planList struct {
	Pods []podPlan `json:"pods"`
}

// podPlan is what is to be done about one pod, and why the rest waits.
type podPlan struct {
	Namespace string            `json:"namespace"`
	Name      string            `json:"name"`
	UID       types.UID         `json:"uid,omitempty"`
	Source    pod.Origin        `json:"source,omitzero"`
	Line      int               `json:"line,omitempty"`
	Steps     []server.Step     `json:"steps"`
	Waiting   map[string]string `json:"waiting,omitempty"`
	Blocked   *server.Waiting   `json:"blocked,omitempty"`
	Kept      string            `json:"kept,omitempty"`
	Busy      bool              `json:"busy,omitempty"`
	Removing  bool              `json:"removing,omitempty"`
}

func planOf(p server.Pod) podPlan {
	plan := podPlan{
		Namespace: p.Pod.Namespace, Name: p.Pod.Name, UID: p.Pod.UID, Source: p.Origin, Line: p.Line,
		Steps: append([]server.Step{}, p.Steps...), Blocked: p.Blocked, Kept: p.Kept, Busy: p.Busy, Removing: p.Removing,
	}
	for _, s := range slices.Concat(p.Pod.Status.InitContainerStatuses, p.Pod.Status.ContainerStatuses) {
		if w := s.State.Waiting; w != nil && p.Blocked == nil {
			if plan.Waiting == nil {
				plan.Waiting = map[string]string{}
			}
			plan.Waiting[s.Name] = reasonText(w.Reason, w.Message)
		}
	}
	return plan
}

func reasonText(reason, message string) string {
	if message == "" {
		return reason
	}
	return reason + ": " + message
}

func (c *cli) showPlan(f format, s server.State) error {
	c.caution(s)
	list := planList{Pods: []podPlan{}}
	for _, p := range podsOf(s, "") {
		list.Pods = append(list.Pods, planOf(p))
	}
	if f != asTable {
		return c.out.object(f, list)
	}
	quiet := 0
	for _, p := range list.Pods {
		lines := p.lines()
		if len(lines) == 0 {
			quiet++
			continue
		}
		c.out.printf("%s\n", oneLine(p.Namespace+"/"+p.Name))
		for _, line := range lines {
			c.out.printf("  %s\n", oneLine(line))
		}
	}
	if quiet == len(list.Pods) {
		c.err.printf("Nothing to do; %s as wanted.\n", plural(quiet, "pod"))
	} else {
		c.err.printf("%s not as wanted, %d as wanted.\n", plural(len(list.Pods)-quiet, "pod"), quiet)
	}
	return nil
}

// lines is the plan for people: the steps, then what waits.
func (p podPlan) lines() (lines []string) {
	if p.Busy {
		lines = append(lines, "steps are under way")
	}
	for _, s := range p.Steps {
		lines = append(lines, s.Text)
	}
	if p.Blocked != nil {
		lines = append(lines, "pod waits: "+reasonText(p.Blocked.Reason, p.Blocked.Message))
	}
	for _, name := range sorted(p.Waiting) {
		lines = append(lines, fmt.Sprintf("%s waits: %s", name, p.Waiting[name]))
	}
	if p.Kept != "" {
		lines = append(lines, "kept: "+p.Kept)
	}
	return lines
}
