package main

import (
	"context"
	"errors"
	"io/fs"
	"strconv"
	"strings"

	"github.com/podkeeper/podkeeper/server"
)

// The exit codes. exitCodesHelp tells them to people.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
	// exitNoAgent: a command that asks the agent got no answer.
	exitNoAgent = 3
	// exitOwn is what `wait --for=exit` and `exec` fail with on their own account, since their
	// other codes are those of containers. docker run does the same.
	exitOwn         = 125
	exitInterrupted = 130
)

const exitCodesHelp = `Exit codes:
    0  done
    1  not done: errors in manifests, a pod that is not there, a wait that ran out
    2  wrong usage: a flag, an argument, a configuration file
    3  no agent answers on the socket
  125  "wait --for=exit" or "exec" failed itself; any other code is a container's
  130  interrupted`

// failure is an error that people read: with its exit code, and what to do next.
type failure struct {
	code int
	err  error
	hint string
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// usage makes an error one of wrong usage. command is what --help is asked of.
func usage(command string, err error) error {
	return &failure{code: exitUsage, err: err, hint: "See `" + command + " --help`."}
}

// codeError ends the command with that code. Everything was said already.
type codeError int

func (c codeError) Error() string { return "exit code " + strconv.Itoa(int(c)) }

// report tells err to people and returns the exit code.
func (c *cli) report(ctx context.Context, err error) int {
	code := exitOK
	var known *failure
	var silent codeError
	switch {
	case err == nil:
	case errors.As(err, &silent):
		code = int(silent)
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return exitInterrupted
	case errors.As(err, &known):
		code = known.code
		c.complain(err, known.hint)
	default:
		code = exitFailed
		c.complain(err, "")
	}
	if c.out.failed != nil && code == exitOK {
		c.complain(c.out.failed, "")
		return exitFailed
	}
	return code
}

func (c *cli) complain(err error, hint string) {
	lines := strings.Split(err.Error(), "\n")
	for i := range lines {
		lines[i] = oneLine(lines[i])
	}
	c.err.printf("%s %s\n", c.err.paint(bad, "podkeeper:"), strings.Join(lines, "\n"))
	if hint != "" {
		c.err.printf("%s\n", hint)
	}
}

// askError says of a question to the agent that failed what to do about it.
func askError(l location, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, server.ErrNoAgent):
		return &failure{code: exitNoAgent, err: err, hint: "Start one with `podkeeper run" + l.flags() + "`, or name the one that runs with --root-dir or --socket."}
	case errors.Is(err, fs.ErrPermission):
		return &failure{code: exitNoAgent, err: err, hint: "Only the agent's own user and the group of its --socket-group may speak to it: try it as root."}
	default:
		return err
	}
}
