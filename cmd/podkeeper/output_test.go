package main

import (
	"bytes"
	"errors"
	"os"
	"testing"
)

// The writing side of a pseudo-terminal is a terminal, too.
func TestColoursAreForTerminals(t *testing.T) {
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	file, err := os.Create(t.TempDir() + "/f")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for name, test := range map[string]struct {
		file             *os.File
		env              map[string]string
		terminal, colour bool
	}{
		"a terminal":                      {file: terminal, env: map[string]string{"TERM": "xterm"}, terminal: true, colour: true},
		"a terminal, and NO_COLOR is set": {file: terminal, env: map[string]string{"NO_COLOR": "1"}, terminal: true},
		"a terminal that knows none":      {file: terminal, env: map[string]string{"TERM": "dumb"}, terminal: true},
		"a file":                          {file: file, env: map[string]string{"TERM": "xterm"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStream(test.file, func(name string) string { return test.env[name] })
			if s.terminal != test.terminal || s.colour != test.colour {
				t.Errorf("terminal %v, colour %v; want %v, %v", s.terminal, s.colour, test.terminal, test.colour)
			}
		})
	}
}

func TestOneLine(t *testing.T) {
	for in, want := range map[string]string{
		"plain ä 漢":      "plain ä 漢",
		"a\nb\r\n\nc\n":  "a; b; c",
		"a\tb":           "a b",
		"\x1b[2J\x07":    "\ufffd[2J\ufffd",
		"\u202egnp.exe":  "\ufffdgnp.exe",
		"c1 \u009b31m":   "c1 \ufffd31m",
		"\n":             "",
		"no break  here": "no break  here",
	} {
		if got := oneLine(in); got != want {
			t.Errorf("oneLine(%q) = %q, want %q", in, got, want)
		}
	}
}

// A table that goes on keeps its columns, and colours take no room.
func TestTableGoesOn(t *testing.T) {
	var out bytes.Buffer
	s := &stream{w: &out, colour: true}
	var tab table
	tab.write(s, cells("A", "B"), []cell{{"xx", good}, {"y", plain}})
	tab.write(s, cells("1", "2"))
	if want := "A    B\n\x1b[32mxx\x1b[0m   y\n1    2\n"; out.String() != want {
		t.Errorf("table is\n%q, want\n%q", out.String(), want)
	}
}

func TestAWriteThatFailsIsRemembered(t *testing.T) {
	s := &stream{w: fullDisk{}}
	s.printf("x")
	if !errors.Is(s.failed, errFull) {
		t.Errorf("failed = %v, want %v", s.failed, errFull)
	}
}

type fullDisk struct{}

var errFull = errors.New("no space left")

func (fullDisk) Write([]byte) (int, error) { return 0, errFull }
