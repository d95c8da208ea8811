package decode

import (
	"bytes"
	"encoding/json"
	"errors"
	"unicode/utf8"
)

// readJSON reads a document that begins like JSON, by the rules of JSON: no
// comments, no trailing commas, one value.
func (s segment) readJSON() Document {
	var raw json.RawMessage
	if err := json.Unmarshal(s.text, &raw); err != nil {
		offset := len(s.text)
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			offset = int(syntax.Offset) - 1
		}
		if offset >= len(bytes.TrimRight(s.text, " \t\r\n"))-1 {
			// Cut off: the end is where it is wrong.
			offset = max(0, len(bytes.TrimRight(s.text, " \t\r\n"))-1)
		}
		at := s.positionOf(offset)
		return Document{Line: s.line + 1, Errors: []SyntaxError{{
			at, "is not valid JSON: " + err.Error() + s.template(at.Line),
		}}}
	}
	p := jsonParser{text: s.text, line: s.line + 1}
	root := p.value()
	return Document{Root: root, Line: root.Line}
}

// jsonParser builds the tree of a text that is known to be valid JSON.
type jsonParser struct {
	text []byte
	at   int
	line int
	// Up to the offset counted, this many characters stand on the line. It keeps
	// a file of one long line from being counted again for each value.
	counted, column int
}

// space skips blanks and the given punctuation.
func (p *jsonParser) space(punctuation byte) {
	for ; p.at < len(p.text); p.at++ {
		switch c := p.text[p.at]; c {
		case ' ', '\t', punctuation:
		case '\r':
			if p.at+1 < len(p.text) && p.text[p.at+1] == '\n' {
				continue
			}
			p.newLine()
		case '\n':
			p.newLine()
		default:
			return
		}
	}
}

func (p *jsonParser) newLine() { p.line, p.counted, p.column = p.line+1, p.at+1, 0 }

func (p *jsonParser) position() Position {
	p.column += utf8.RuneCount(p.text[p.counted:p.at])
	p.counted = p.at
	return Position{p.line, p.column + 1}
}

func (p *jsonParser) value() *Node {
	p.space(' ')
	at := p.position()
	n := &Node{Line: at.Line, Column: at.Column}
	switch p.text[p.at] {
	case '{':
		n.Kind = Object
		p.object(n)
	case '[':
		n.Kind = Array
		p.at++
		for p.space(','); p.text[p.at] != ']'; p.space(',') {
			n.Items = append(n.Items, p.value())
		}
		p.at++
	case '"':
		n.Kind, n.Text = String, p.str()
	case 't', 'f':
		n.Kind, n.Text = Bool, p.literal()
	case 'n':
		p.literal()
	default:
		n.Kind, n.Text = Number, p.literal()
	}
	n.measure()
	return n
}

func (p *jsonParser) object(n *Node) {
	seen := map[string]int{}
	p.at++
	for p.space(','); p.text[p.at] != '}'; p.space(',') {
		at := p.position()
		m := Member{Line: at.Line, Column: at.Column, Key: p.str()}
		p.space(':')
		m.Value = p.value()
		n.set(m, seen)
	}
	p.at++
}

// set adds a member, or replaces the earlier one of its key; seen has the index
// of each key.
func (n *Node) set(m Member, seen map[string]int) {
	i, again := seen[m.Key]
	if !again {
		seen[m.Key] = len(n.Members)
		n.Members = append(n.Members, m)
		return
	}
	n.Repeated = append(n.Repeated, Repeat{Key: m.Key, Line: m.Line, Column: m.Column, First: n.Members[i].Line})
	n.Members[i] = m
}

// str reads a string; line breaks do not stand in JSON strings.
func (p *jsonParser) str() string {
	start := p.at
	plain := true
	for p.at++; p.text[p.at] != '"'; p.at++ {
		if p.text[p.at] == '\\' {
			plain = false
			p.at++
		}
	}
	p.at++
	if plain {
		return string(p.text[start+1 : p.at-1])
	}
	var s string
	// The text was found valid, so this cannot fail.
	_ = json.Unmarshal(p.text[start:p.at], &s)
	return s
}

func (p *jsonParser) literal() string {
	start := p.at
	for p.at < len(p.text) && bytes.IndexByte([]byte(" \t\r\n,:]}"), p.text[p.at]) < 0 {
		p.at++
	}
	return string(p.text[start:p.at])
}
