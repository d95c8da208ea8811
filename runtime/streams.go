package runtime

import "io"

// Streams are what a process reads and writes while somebody looks on.
type Streams struct {
	// Stdin is read to its end, which is then the end of the process's input. A
	// terminal has none: that of a command is told ctrl-d, that of a container nothing.
	// nil is no input. It is closed before
	// the verb returns, which must end a Read that is under way.
	Stdin io.ReadCloser
	// Stdout and Stderr take what it writes; nil takes it and keeps nothing. What
	// comes from a terminal all comes on Stdout. A Write that fails ends the verb.
	Stdout, Stderr io.Writer
	// TTY gives a command a terminal. A container has one or has none, whatever this says.
	TTY bool
	// Resize are the sizes of the terminal, as they change; nil is never. A closed one
	// tells of no more.
	Resize <-chan TerminalSize
}

// TerminalSize is in characters.
type TerminalSize struct{ Width, Height uint16 }
