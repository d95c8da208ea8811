package pod

import (
	"fmt"
	"strings"
)

// Severity says whether a problem refuses what it is about.
type Severity string

// The severities.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
	// Note names a field that is accepted and has no effect here.
	Note Severity = "note"
)

// Problem is one thing wrong with a manifest, for people. It never holds a
// secret value.
type Problem struct {
	Severity Severity `json:"severity"`
	// File is a path or a URL without its secrets; "-" is standard input.
	File string `json:"file,omitempty"`
	// Line and Column count from 1; 0 is unknown.
	Line   int `json:"line,omitempty"`
	Column int `json:"column,omitempty"`
	// Field is the path in the object, such as spec.containers[0].image.
	Field string `json:"field,omitempty"`
	// Object is what the problem is in, such as Pod default/web, where known.
	Object  string `json:"object,omitempty"`
	Message string `json:"message"`
}

// String returns file:line:column: severity: field: message, in the form that
// compilers use, without the parts that are unknown.
func (p Problem) String() string {
	var b strings.Builder
	if p.File != "" {
		b.WriteString(p.File)
		if p.Line > 0 {
			fmt.Fprintf(&b, ":%d", p.Line)
			if p.Column > 0 {
				fmt.Fprintf(&b, ":%d", p.Column)
			}
		}
		b.WriteString(": ")
	}
	fmt.Fprintf(&b, "%s: ", p.Severity)
	if p.Field != "" {
		fmt.Fprintf(&b, "%s: ", p.Field)
	}
	b.WriteString(p.Message)
	return b.String()
}
