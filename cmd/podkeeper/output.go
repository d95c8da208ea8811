package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"

	"golang.org/x/term"
	"sigs.k8s.io/yaml"
)

// The rules of output.
//
//   - Standard output has what was asked for, and nothing else: tables, objects,
//     findings, a plan. Everything about it goes to standard error: logs, progress,
//     errors, hints, summaries, "nothing found".
//   - An error is "podkeeper: what happened", lower case, in one line where it can
//     be, then a line that says what to do next, if there is something.
//   - -o json and -o yaml are for programs: the same shape every time, lists that
//     are never null, names that are never renamed. Tables and sentences are for
//     people and may change.
//   - Colours and lines that are overwritten go to terminals only; colours never
//     where NO_COLOR is set or TERM is dumb. They repeat what the words say.
//   - A value that came from elsewhere (a manifest, an engine) cannot move the
//     cursor or break a table: in tables and sentences it is cleaned.
//   - A write that fails fails the command: a full disk is not success.
//   - The values of request headers, and what a URL has before its host, are never
//     written anywhere.

// stream is one way out.
type stream struct {
	w io.Writer
	// terminal: a person reads it as it comes.
	terminal bool
	colour   bool
	failed   error // the first write that failed
}

func newStream(f *os.File, getenv func(string) string) *stream {
	terminal := term.IsTerminal(int(f.Fd()))
	return &stream{
		w: f, terminal: terminal,
		colour: terminal && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb",
	}
}

func (s *stream) Write(p []byte) (int, error) {
	n, err := s.w.Write(p)
	if err != nil && s.failed == nil {
		s.failed = err
	}
	return n, err
}

func (s *stream) printf(format string, args ...any) { fmt.Fprintf(s, format, args...) }

// tint is a colour of a terminal.
type tint string

const (
	plain  tint = ""
	good   tint = "32"
	busy   tint = "33"
	bad    tint = "31"
	strong tint = "1"
	faint  tint = "2"
)

func (s *stream) paint(t tint, text string) string {
	if !s.colour || t == plain {
		return text
	}
	return "\x1b[" + string(t) + "m" + text + "\x1b[0m"
}

// oneLine returns text that stays in its line and cannot command a terminal.
func oneLine(text string) string {
	if strings.IndexFunc(text, unprintable) < 0 {
		return text
	}
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case unprintable(r):
			return unicode.ReplacementChar
		default:
			return r
		}
	}, text)
}

// unprintable also holds for what turns the direction of writing.
func unprintable(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }

// cell is one field of a table.
type cell struct {
	text string
	tint tint
}

func cells(texts ...string) []cell {
	row := make([]cell, len(texts))
	for i, t := range texts {
		row[i].text = t
	}
	return row
}

// table writes rows in columns. The widths are those of all rows written so
// far, so that rows may be added later (-w) without a jump where that can be.
type table struct{ widths []int }

const columnGap = 3

// write writes rows. The last column is not padded.
func (t *table) write(out *stream, rows ...[]cell) {
	for _, row := range rows {
		for i, c := range row {
			if i == len(t.widths) {
				t.widths = append(t.widths, 0)
			}
			t.widths[i] = max(t.widths[i], len([]rune(oneLine(c.text))))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		for i, c := range row {
			text := oneLine(c.text)
			line.WriteString(out.paint(c.tint, text))
			if i < len(row)-1 {
				line.WriteString(strings.Repeat(" ", t.widths[i]-len([]rune(text))+columnGap))
			}
		}
		out.printf("%s\n", line.String())
	}
}

// format is the value of -o.
type format string

const (
	asTable format = ""
	asWide  format = "wide"
	asJSON  format = "json"
	asYAML  format = "yaml"
	asName  format = "name"
)

// object writes v as JSON, or as one YAML document.
func (s *stream) object(f format, v any) error {
	if f == asYAML {
		data, err := yaml.Marshal(v)
		if err != nil {
			return fmt.Errorf("write yaml: %w", err)
		}
		_, err = s.Write(data)
		return err
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "    ")
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("write json: %w", err)
	}
	_, err := s.Write(buf.Bytes())
	return err
}

// plural returns "1 pod", "2 pods".
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
