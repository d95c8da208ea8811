package decode

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	yamlv2 "sigs.k8s.io/yaml/goyaml.v2"
)

// locate finds out where a YAML error is. The parser says so in its text alone,
// often naming the line where the surrounding block began, or the line before,
// or none at all. So its elder, which names the place of the problem itself, is
// asked as well, and whether its number is one short is tried out: an error that
// stays the same when the text ends after that line is in it. The numbers only
// decide on what is shown.
func (s segment) locate(err error) SyntaxError {
	context, message := lineIn(err)
	alias, dangling := s.danglingAlias()
	if dangling = dangling && context == 0; dangling || strings.HasPrefix(message, "unknown anchor ") {
		message = "an alias (*) names no anchor (&) that comes before it" // the parser quotes it
	}
	total := lines(s.text)
	line, column := context, 1
	if problem, text := lineIn(probe(s.text)); problem > 0 {
		message, line = text, problem
		if end := s.through(problem); end < len(s.text) {
			if again, same := lineIn(probe(s.text[:end])); again != problem || same != text {
				line++
			}
		}
		if line >= total && context > 0 && context < line {
			// It ran into the end. An open quote is what the reader looks for.
			if l, _ := lineAt(s.text, context); bytes.ContainsAny(l, `"'`) {
				line = context
			}
		}
	} else if dangling {
		return SyntaxError{s.positionOf(alias), "is not valid YAML: " + message}
	}
	line = min(max(line, 1), total)
	text, _ := lineAt(s.text, line)
	if indent := len(text) - len(bytes.TrimLeft(text, " \t")); indent < len(text) {
		column = indent + 1
	}
	return SyntaxError{
		Position{s.line + line, column},
		"is not valid YAML: " + message + s.template(s.line+line) + tab(text),
	}
}

// probe returns the error that the elder parser finds in the syntax, if any.
func probe(text []byte) (err error) {
	defer func() {
		if recover() != nil {
			err = errParser
		}
	}()
	// Types that cannot be filled keep it from building the documents.
	dec := yamlv2.NewDecoder(bytes.NewReader(text))
	for {
		var mismatch *yamlv2.TypeError
		err := dec.Decode(new(struct{}))
		if err == nil || errors.As(err, &mismatch) {
			continue
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		return err
	}
}

// lineIn takes an error of the parsers apart.
func lineIn(err error) (line int, message string) {
	if err == nil {
		return 0, ""
	}
	message = strings.TrimPrefix(err.Error(), "yaml: ")
	if _, scanErr := fmt.Sscanf(message, "line %d:", &line); scanErr == nil {
		_, message, _ = strings.Cut(message, ": ")
	}
	return line, message
}

// through returns the length of the text up to and with a line, from 1.
func (s segment) through(line int) int {
	_, start := lineAt(s.text, line+1)
	return start
}

var (
	aliasUse  = regexp.MustCompile(`(?m)(?:^|[\s\[,{:-])\*([^\s,\[\]{}]+)`)
	anchorUse = regexp.MustCompile(`(?m)(?:^|[\s\[,{:-])&([^\s,\[\]{}]+)`)
)

// danglingAlias returns where an alias stands whose anchor does not come before it.
func (s segment) danglingAlias() (offset int, ok bool) {
	anchors := anchorUse.FindAllSubmatchIndex(s.text, -1)
	known := map[string]bool{}
	for _, use := range aliasUse.FindAllSubmatchIndex(s.text, -1) {
		for len(anchors) > 0 && anchors[0][0] < use[0] {
			known[string(s.text[anchors[0][2]:anchors[0][3]])] = true
			anchors = anchors[1:]
		}
		if !known[string(s.text[use[2]:use[3]])] {
			return use[2] - 1, true
		}
	}
	return 0, false
}

// template adds a hint where the line (of the file) looks like one.
func (s segment) template(line int) string {
	if text, _ := lineAt(s.text, line-s.line); bytes.Contains(text, []byte("{{")) || bytes.Contains(text, []byte("{%")) {
		return " (a template that was never rendered?)"
	}
	return ""
}

func tab(line []byte) string {
	if indent := line[:len(line)-len(bytes.TrimLeft(line, " \t"))]; bytes.IndexByte(indent, '\t') >= 0 {
		return " (a tab? YAML is indented with spaces)"
	}
	return ""
}
