package fake

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/podkeeper/podkeeper/runtime"
)

// Program is what a container's process does. The zero Program runs until it
// is told to stop, and then exits a short time later.
type Program struct {
	// FailStart is the engine's text where it cannot be started at all, StartCode
	// the exit code that the container then shows (127 if zero).
	FailStart string
	StartCode int
	// Exits says that it ends on its own, After that long, with Code.
	Exits bool
	After time.Duration
	Code  int
	OOM   bool // ends by the OOM killer; Code is 137
	// Say is what it writes, as soon as it starts.
	Say string
	// IgnoreTERM makes only SIGKILL end it.
	IgnoreTERM bool
	// Cat writes what it reads. A command beside a container's own then ends with its
	// input. Sizes writes the size of its terminal, height first, whenever it changes.
	Cat, Sizes bool
}

// ParseProgram reads a program from the words of a container's command and
// args: exit=CODE, after=DURATION, oom, say=LINE, ignore-term, fail-start, cat,
// sizes. It passes over all others.
func ParseProgram(spec runtime.ContainerSpec) Program {
	return parse(append(append([]string{}, spec.Command...), spec.Args...))
}

// ParseExec reads the same words from a command that runs beside a container's
// own. Unless one of them is hang or sizes, it ends.
func ParseExec(command []string) Program {
	p := parse(command)
	p.Exits = !p.Sizes && !slices.Contains(command, "hang")
	return p
}

func parse(words []string) Program {
	var p Program
	for _, word := range words {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "exit":
			p.Exits = true
			p.Code, _ = strconv.Atoi(value)
		case "after":
			p.Exits = true
			p.After, _ = time.ParseDuration(value)
		case "oom":
			p.Exits, p.OOM, p.Code = true, true, 137
		case "say":
			p.Say += value + "\n"
		case "ignore-term":
			p.IgnoreTERM = true
		case "cat":
			p.Cat = true
		case "sizes":
			p.Sizes = true
		case "fail-start":
			p.FailStart = "exec: no such file or directory"
		}
	}
	return p
}
