package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/podkeeper/podkeeper/agent"
	"github.com/podkeeper/podkeeper/doctor"
)

// diagnosis is the shape of doctor -o json.
type diagnosis struct {
	// Verdict is the worst of all.
	Verdict  doctor.Verdict   `json:"verdict"`
	Findings []doctor.Finding `json:"findings"`
}

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
			found := doctor.Diagnose(facts)
			d := diagnosis{doctor.Worst(found), found}
			if output != asTable {
				if err := c.out.object(output, d); err != nil {
					return err
				}
			} else {
				c.tellDiagnosis(d)
			}
			if d.Verdict == doctor.Fail {
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
func (c *cli) tellDiagnosis(d diagnosis) {
	tints := map[doctor.Verdict]tint{doctor.OK: good, doctor.Warn: busy, doctor.Fail: bad}
	var rows [][]cell
	count := make(map[doctor.Verdict]int)
	for _, f := range d.Findings {
		count[f.Verdict]++
		rows = append(rows, []cell{{string(f.Verdict), tints[f.Verdict]}, {text: f.Check}, {text: f.Message}})
		if f.Cure != "" {
			rows = append(rows, []cell{{}, {}, {"→ " + f.Cure, faint}})
		}
	}
	new(table).write(c.out, rows...)
	var parts []string
	if n := count[doctor.Fail]; n > 0 {
		parts = append(parts, plural(n, "failure"))
	}
	if n := count[doctor.Warn]; n > 0 {
		parts = append(parts, plural(n, "warning"))
	}
	if len(parts) == 0 {
		parts = append(parts, "Nothing to do")
	}
	c.err.printf("%s.\n", strings.Join(parts, ", "))
}
