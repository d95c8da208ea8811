package main

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/podkeeper/podkeeper/agent"
	"github.com/podkeeper/podkeeper/server"
)

func main() {
	if agent.Entered() {
		return
	}
	c := &cli{
		in:      os.Stdin,
		out:     newStream(os.Stdout, os.Getenv),
		err:     newStream(os.Stderr, os.Getenv),
		now:     time.Now,
		version: buildVersion(),
		agent:   agentCalls{run: agent.Run, once: agent.Once, look: agent.Look, deleteAll: agent.DeleteAll, examine: agent.Examine},
	}
	os.Exit(c.main(os.Args[1:]))
}

// cli is what a command has of the world, so that tests can give it another.
type cli struct {
	in       io.Reader
	out, err *stream
	now      func() time.Time
	version  string
	agent    agentCalls
}

// agentCalls are the ways to be an agent: see package agent.
type agentCalls struct {
	run       func(context.Context, agent.Config, *slog.Logger) error
	once      func(context.Context, agent.Config, agent.OnceConfig, *slog.Logger, func(server.Pod)) error
	look      func(context.Context, agent.Config, *slog.Logger) (server.State, error)
	deleteAll func(context.Context, agent.Config, *slog.Logger) error
	examine   func(context.Context, agent.DockerConfig) agent.Facts
}

// main runs the command that args name and returns its exit code. SIGINT and
// SIGTERM ask it to end; a second one ends it.
func (c *cli) main(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	root := c.rootCommand()
	root.SetArgs(args)
	root.SetIn(c.in)
	root.SetOut(c.out)
	root.SetErr(c.err)
	return c.report(ctx, root.ExecuteContext(ctx))
}

// buildVersion is what the go command recorded: the module's version, which
// names the commit where there is no tag.
func buildVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return cmp.Or(info.Main.Version, "unknown")
}
