package main

import (
	"errors"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/podkeeper/podkeeper/server"
)

// versions is the shape of version -o json.
type versions struct {
	Client clientVersion `json:"client"`
	// Agent is nil where none answers.
	Agent *agentVersion `json:"agent"`
}

type clientVersion struct {
	Version  string `json:"version"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

type agentVersion struct {
	Version  string `json:"version"`
	NodeName string `json:"nodeName"`
	RootDir  string `json:"rootDir"`
}

func (c *cli) versionCommand(l *location) *cobra.Command {
	var output format
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Show the version of this program and of the agent that runs",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			v := versions{Client: clientVersion{c.version, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}}
			state, err := c.ask(cmd.Context(), *l)
			switch {
			case err == nil:
				v.Agent = &agentVersion{state.Version, state.NodeName, state.RootDir}
			case errors.Is(err, server.ErrNoAgent):
				c.err.printf("No agent answers on %s.\n", l.socket)
			default:
				c.err.printf("The agent's version cannot be had: %s.\n", oneLine(err.Error()))
			}
			if output != asTable {
				return c.out.object(output, v)
			}
			c.out.printf("Client: %s (%s, %s)\n", v.Client.Version, v.Client.Go, v.Client.Platform)
			if v.Agent != nil {
				c.out.printf("Agent:  %s (node %s, root dir %s)\n", orNone(oneLine(v.Agent.Version)), oneLine(v.Agent.NodeName), oneLine(v.Agent.RootDir))
			}
			return nil
		},
	}
	outputFlag(cmd, &output, asTable, asJSON, asYAML)
	return cmd
}
