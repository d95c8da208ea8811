package decode

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// MaxBytes is the size that a manifest may have, and also how much the aliases of
// a document may expand to.
const MaxBytes = 10 << 20

// maxDocuments bounds the documents of a file: each costs more than its text.
const maxDocuments = 10_000

// Document is one document of a file.
type Document struct {
	// Root is nil where the document holds nothing, or could not be read at all.
	Root *Node
	// Line is where its content begins, from 1.
	Line int
	// Errors are what is wrong with its syntax. A document can have both: what
	// could be read is in Root, for its name.
	Errors []SyntaxError
}

// SyntaxError is something that is not YAML or JSON. It holds no values.
type SyntaxError struct {
	Position
	Message string
}

// Documents reads a whole file: any number of YAML documents, or JSON. Comments
// and empty documents give none, a null gives a Document without Root and Errors.
// An error that concerns the whole file is that of the only Document returned.
func Documents(data []byte) []Document {
	if err := whole(data); err != nil {
		return []Document{{Line: err.Line, Errors: []SyntaxError{*err}}}
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	var docs []Document
	segments := split(data)
	if len(segments) > maxDocuments {
		at := Position{segments[maxDocuments].line + 1, 1}
		return []Document{{Line: at.Line, Errors: []SyntaxError{{at, fmt.Sprintf("holds more than the limit of %d documents", maxDocuments)}}}}
	}
	for _, s := range segments {
		docs = append(docs, s.read()...)
	}
	return docs
}

// whole finds what makes the file as a whole unusable.
func whole(data []byte) *SyntaxError {
	fail := func(format string, args ...any) *SyntaxError {
		return &SyntaxError{Position{1, 1}, fmt.Sprintf(format, args...)}
	}
	switch {
	case len(data) > MaxBytes:
		return fail("is larger than the limit of %d MiB", MaxBytes>>20)
	case bytes.HasPrefix(data, []byte("\xfe\xff")), bytes.HasPrefix(data, []byte("\xff\xfe")):
		return fail("is UTF-16; save it as UTF-8")
	}
	text := bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\ufeff")))
	switch {
	case len(text) == 0:
		return fail("is empty")
	case text[0] == '<':
		return fail("is an HTML or XML page, not a manifest")
	case bytes.IndexByte(data, 0) >= 0:
		return fail("is not text: it holds zero bytes")
	case separators(data) > maxSeparators:
		return fail("holds more than the limit of %d values", maxSeparators)
	}
	return nil
}

// maxSeparators bounds the values of a file. Ten MiB of [0,0,0,… would take
// gigabytes as a tree.
const maxSeparators = 1_000_000

// separators returns how many values a text can hold at most, but for some that
// nest.
func separators(data []byte) int {
	commas := bytes.Count(data, []byte(","))
	breaks := bytes.Count(data, []byte("\n")) + bytes.Count(data, []byte("\r"))
	if commas+breaks <= maxSeparators {
		return commas + breaks
	}
	// So many lines may be comments.
	n := 0
	for at := 0; at < len(data); {
		end := at + lineEnd(data[at:])
		if line := data[at:end]; !void(line) {
			n += 1 + bytes.Count(line, []byte(","))
		}
		at = end
	}
	return n
}

// segment is the text of one document, with the lines before it in the file.
type segment struct {
	text []byte
	line int
}

// split cuts a file at its document markers. A line that begins with --- or ...
// is one wherever it stands, in quotes and block scalars too, so no parser is
// needed to find them, and a document with an error ends where it ends.
func split(data []byte) []segment {
	var (
		out         []segment
		start, line int
		begun       = 0     // line on which the segment begins
		marked      = false // it has its marker
		content     = false // it holds more than a marker and comments
	)
	cut := func(end, next int) {
		if content || !plain(data[start:end]) {
			out = append(out, segment{data[start:end], begun})
		}
		start, begun, marked, content = end, next, false, false
	}
	for at := 0; at < len(data); {
		end := at + lineEnd(data[at:])
		text := data[at:end]
		switch {
		case marker(text, "---"):
			if marked || content && !directives(data[start:at]) {
				cut(at, line)
			}
			marked = true
			content = content || !void(text[len("---"):])
		case marker(text, "..."):
			cut(end, line+1)
		default:
			content = content || !void(text)
		}
		at = end
		line++
	}
	cut(len(data), line)
	return out
}

func marker(line []byte, m string) bool {
	rest, ok := bytes.CutPrefix(line, []byte(m))
	if !ok {
		return false
	}
	return len(rest) == 0 || rest[0] == ' ' || rest[0] == '\t' || lineBreak(rest) > 0
}

// plain reports whether a text is of printable ASCII. What is not may be no text at
// all, even where it looks like a comment.
func plain(text []byte) bool {
	for _, c := range text {
		if c >= 0x7f || c < 0x20 && c != '\n' && c != '\r' && c != '\t' {
			return false
		}
	}
	return true
}

// void reports whether a line holds a comment at most. A tab may be an error.
func void(line []byte) bool {
	t := bytes.TrimLeft(line, " \r\n\u0085\u2028\u2029\ufeff")
	return len(t) == 0 || t[0] == '#'
}

// directives reports whether a text holds directives and comments only: they
// belong to the document that follows.
func directives(text []byte) bool {
	for at := 0; at < len(text); {
		end := at + lineEnd(text[at:])
		if !void(text[at:end]) && text[at] != '%' {
			return false
		}
		at = end
	}
	return true
}

// lineBreak returns the length of the line break that b begins with. YAML knows
// more of them than editors do.
func lineBreak(b []byte) int {
	switch {
	case b[0] == '\n':
		return 1
	case b[0] == '\r':
		if len(b) > 1 && b[1] == '\n' {
			return 2
		}
		return 1
	case b[0] == 0xc2 && len(b) > 1 && b[1] == 0x85: // NEL
		return 2
	case b[0] == 0xe2 && len(b) > 2 && b[1] == 0x80 && (b[2] == 0xa8 || b[2] == 0xa9): // LS, PS
		return 3
	}
	return 0
}

// lineEnd returns the length of the first line of b, its break included.
func lineEnd(b []byte) int {
	for i := 0; i < len(b); {
		j := bytes.IndexAny(b[i:], "\n\r\u0085\u2028\u2029")
		if j < 0 {
			return len(b)
		}
		i += j
		if n := lineBreak(b[i:]); n > 0 {
			return i + n
		}
		i++
	}
	return len(b)
}

// lines returns the number of lines that text spans, at least 1.
func lines(text []byte) int {
	n := 0
	for at := 0; at < len(text); n++ {
		at += lineEnd(text[at:])
	}
	return max(n, 1)
}

// lineAt returns line n of the text, from 1, and where it begins.
func lineAt(text []byte, n int) (line []byte, start int) {
	for ; n > 1 && start < len(text); n-- {
		start += lineEnd(text[start:])
	}
	return text[start : start+lineEnd(text[start:])], start
}

// positionOf turns a byte offset into a position in the file.
func (s segment) positionOf(offset int) Position {
	offset = min(max(offset, 0), len(s.text))
	n, start := 0, 0
	for at := 0; at < len(s.text); n++ {
		start = at
		at += lineEnd(s.text[at:])
		if at > offset {
			n++
			break
		}
	}
	n = max(n, 1)
	return Position{s.line + n, utf8.RuneCount(s.text[start:max(start, offset)]) + 1}
}

// read reads the documents of a segment: one, but for rare line breaks.
func (s segment) read() []Document {
	if at, ok := firstBadByte(s.text); !ok {
		return []Document{{Line: s.line + 1, Errors: []SyntaxError{{
			s.positionOf(at), fmt.Sprintf("is not text: byte 0x%02x is not UTF-8", s.text[at]),
		}}}}
	}
	if t := bytes.TrimSpace(s.text); len(t) > 0 && (t[0] == '{' || t[0] == '[') {
		return []Document{s.readJSON()}
	}
	return s.readYAML()
}

func firstBadByte(text []byte) (at int, ok bool) {
	if utf8.Valid(text) {
		return 0, true
	}
	for at < len(text) {
		r, size := utf8.DecodeRune(text[at:])
		if r == utf8.RuneError && size == 1 {
			return at, false
		}
		at += size
	}
	return 0, true
}
