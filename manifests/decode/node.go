package decode

import (
	"bytes"
	"encoding/json"
	"sort"
	"strconv"
	"strings"
)

// Kind is the JSON kind of a value.
type Kind int

// The kinds.
const (
	Null Kind = iota
	Bool
	Number
	String
	Array
	Object
)

// String returns the kind in the words of messages: "a number", "a list".
func (k Kind) String() string {
	switch k {
	case Null:
		return "nothing"
	case Bool:
		return "a boolean"
	case Number:
		return "a number"
	case String:
		return "a string"
	case Array:
		return "a list"
	default:
		return "a mapping"
	}
}

// Node is one value and where it stands. Aliases share nodes, so a tree is in
// truth a directed graph without cycles; it is never modified once it is built.
type Node struct {
	Kind Kind
	// Line and Column count from 1, columns in characters.
	Line, Column int
	// Text is the value of a string, the JSON literal of a number or boolean.
	Text  string
	Items []*Node
	// Members are in the order of the text, each key once: the last one counts.
	Members []Member
	// Repeated are the keys that were given more than once.
	Repeated []Repeat

	nodes   int // values in the tree below, aliases expanded
	weight  int // roughly the bytes of its JSON, aliases expanded
	aliased int // the part of weight that came through aliases and merges
}

// Member is one key of a mapping and its value.
type Member struct {
	Key          string
	Line, Column int // of the key
	Value        *Node
}

// Repeat is a key that stands in a mapping again.
type Repeat struct {
	Key          string
	Line, Column int
	First        int // line of the key before it
}

// Position is a place in a file, both from 1.
type Position struct{ Line, Column int }

// Member returns the value under a key of a mapping, or nil.
func (n *Node) Member(key string) *Node {
	if n == nil {
		return nil
	}
	for i := range n.Members {
		if n.Members[i].Key == key {
			return n.Members[i].Value
		}
	}
	return nil
}

// Find returns where the field with this path stands, the path written as
// field.Path prints it: spec.containers[0].image, metadata.labels[app]. Of a
// field that is not there it returns the place of the nearest parent that is.
func (n *Node) Find(path string) Position {
	at := Position{n.Line, n.Column}
	for path != "" && n != nil {
		var next *Node
		switch n.Kind {
		case Object:
			var m *Member
			if m, path = n.step(path); m == nil {
				return at
			}
			next = m.Value
			at = m.position()
		case Array:
			index, rest, ok := strings.Cut(strings.TrimPrefix(path, "["), "]")
			i, err := strconv.Atoi(index)
			if !ok || err != nil || i < 0 || i >= len(n.Items) {
				return at
			}
			next, path = n.Items[i], rest
			at = Position{next.Line, next.Column}
		default:
			return at
		}
		n = next
	}
	return at
}

// position is that of the value where it shares a line with its key, else that
// of the key: a reader looks for the name of what is wrong.
func (m *Member) position() Position {
	if k := m.Value.Kind; k != Object && k != Array && k != Null && m.Value.Line == m.Line {
		return Position{m.Value.Line, m.Value.Column}
	}
	return Position{m.Line, m.Column}
}

// step takes the first key off a path. Keys may hold dots and brackets of their
// own, so the members decide what the longest one is.
func (n *Node) step(path string) (found *Member, rest string) {
	path = strings.TrimPrefix(path, ".")
	for i := range n.Members {
		m := &n.Members[i]
		after, ok := strings.CutPrefix(path, "["+m.Key+"]")
		if !ok {
			after, ok = strings.CutPrefix(path, m.Key)
		}
		if !ok || after != "" && after[0] != '.' && after[0] != '[' {
			continue
		}
		if found == nil || len(m.Key) > len(found.Key) {
			found, rest = m, after
		}
	}
	return found, rest
}

// JSON returns the value as JSON: compact, keys sorted.
func (n *Node) JSON() []byte {
	var b bytes.Buffer
	n.appendJSON(&b)
	return b.Bytes()
}

func (n *Node) appendJSON(b *bytes.Buffer) {
	switch n.Kind {
	case Null:
		b.WriteString("null")
	case Bool, Number:
		b.WriteString(n.Text)
	case String:
		appendString(b, n.Text)
	case Array:
		b.WriteByte('[')
		for i, item := range n.Items {
			if i > 0 {
				b.WriteByte(',')
			}
			item.appendJSON(b)
		}
		b.WriteByte(']')
	case Object:
		members := make([]*Member, len(n.Members))
		for i := range n.Members {
			members[i] = &n.Members[i]
		}
		sort.Slice(members, func(i, j int) bool { return members[i].Key < members[j].Key })
		b.WriteByte('{')
		for i, m := range members {
			if i > 0 {
				b.WriteByte(',')
			}
			appendString(b, m.Key)
			b.WriteByte(':')
			m.Value.appendJSON(b)
		}
		b.WriteByte('}')
	}
}

func appendString(b *bytes.Buffer, s string) {
	plain := true
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < 0x20 || c >= 0x7f || c == '"' || c == '\\' {
			plain = false
			break
		}
	}
	if plain {
		b.WriteByte('"')
		b.WriteString(s)
		b.WriteByte('"')
		return
	}
	// A string always marshals.
	text, _ := json.Marshal(s)
	b.Write(text)
}

// most bounds the counters below, which aliases can multiply.
const most = 1 << 40

// measure sums up the tree below, once its children are complete.
func (n *Node) measure() {
	n.nodes, n.weight = 1, len(n.Text)+16
	for _, item := range n.Items {
		n.add(item)
	}
	for i := range n.Members {
		n.weight += len(n.Members[i].Key) + 4
		n.add(n.Members[i].Value)
	}
}

func (n *Node) add(child *Node) {
	n.nodes = min(n.nodes+child.nodes, most)
	n.weight = min(n.weight+child.weight, most)
	n.aliased = min(n.aliased+child.aliased, most)
}

// aliasOf returns a node like n that counts as reached through an alias.
func (n *Node) aliasOf() *Node {
	c := *n
	c.aliased = c.weight
	return &c
}

// With returns a copy of a mapping that has a string under a key as well, where
// it has none yet.
func (n *Node) With(key, value string) *Node {
	if n.Kind != Object || n.Member(key) != nil {
		return n
	}
	c := *n
	v := &Node{Kind: String, Line: n.Line, Column: n.Column, Text: value}
	v.measure()
	c.Members = append(c.Members[:len(c.Members):len(c.Members)], Member{Key: key, Line: n.Line, Column: n.Column, Value: v})
	c.measure()
	return &c
}

// Without returns a copy of a mapping that lacks a key.
func (n *Node) Without(key string) *Node {
	c := *n
	c.Members = nil
	for _, m := range n.Members {
		if m.Key != key {
			c.Members = append(c.Members, m)
		}
	}
	c.aliased = 0
	c.measure()
	return &c
}
