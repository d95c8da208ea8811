package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/podkeeper/podkeeper/agent"
)

func (c *cli) doctorCommand(l *location) *cobra.Command {
	var output format
	var host string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check whether pods can run on this machine, and say what to do where they cannot",
		Long: `Check whether pods can run on this machine: the engine, cgroups, kernel settings,
ports, inotify, disks, swap, and what pods may ask for beside. Nothing is changed,
and no agent is needed. As another user than root it sees less.

Each finding is ok, warn (pods run, but not as well as they could) or fail (none
runs), with what to do about it. The exit code is 1 where one is fail.`,
		Example: `  podkeeper doctor
  podkeeper doctor -o json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			facts := c.agent.examine(cmd.Context(), agent.DockerConfig{Host: host, RootDir: l.rootDir})
			if err := cmd.Context().Err(); err != nil {
				return err
			}
			d := agent.Diagnose(facts)
			if output != asTable {
				if err := c.out.object(output, d); err != nil {
					return err
				}
			} else {
				c.tellDiagnosis(d)
			}
			if d.Verdict == agent.VerdictFail {
				return codeError(exitFailed)
			}
			return nil
		},
	}
	outputFlag(cmd, &output, asTable, asJSON, asYAML)
	cmd.Flags().StringVar(&host, "docker-host", "", "the engine's `ADDRESS` (default $DOCKER_HOST, else unix:///var/run/docker.sock)")
	return cmd
}

// tellDiagnosis writes a line for each finding, and one for its cure.
func (c *cli) tellDiagnosis(d agent.Diagnosis) {
	tints := map[agent.Verdict]tint{agent.VerdictOK: good, agent.VerdictWarn: busy, agent.VerdictFail: bad}
	var rows [][]cell
	count := make(map[agent.Verdict]int)
	for _, f := range d.Findings {
		count[f.Verdict]++
		rows = append(rows, []cell{{string(f.Verdict), tints[f.Verdict]}, {text: f.Check}, {text: f.Message}})
		if f.Cure != "" {
			rows = append(rows, []cell{{}, {}, {"→ " + f.Cure, faint}})
		}
	}
	new(table).write(c.out, rows...)
	var parts []string
	if n := count[agent.VerdictFail]; n > 0 {
		parts = append(parts, plural(n, "failure"))
	}
	if n := count[agent.VerdictWarn]; n > 0 {
		parts = append(parts, plural(n, "warning"))
	}
	if len(parts) == 0 {
		parts = append(parts, "Nothing to do")
	}
	c.err.printf("%s.\n", strings.Join(parts, ", "))
}
