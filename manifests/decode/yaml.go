package decode

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"sigs.k8s.io/yaml/goyaml.v3"
)

// maxMerged bounds the members that merge keys copy in one document.
const maxMerged = 100_000

var errParser = errors.New("the parser gave up on it")

// readYAML reads the YAML documents of a segment.
func (s segment) readYAML() []Document {
	var docs []Document
	dec := yaml.NewDecoder(bytes.NewReader(s.text))
	for {
		var n yaml.Node
		err := next(dec, &n)
		if errors.Is(err, io.EOF) {
			return docs
		}
		if err != nil {
			return append(docs, Document{Line: s.line + 1, Errors: []SyntaxError{s.locate(err)}})
		}
		docs = append(docs, s.convert(&n))
	}
}

// next reads one document. The parser answers some broken texts with a panic.
func next(dec *yaml.Decoder, n *yaml.Node) (err error) {
	defer func() {
		if recover() != nil {
			err = errParser
		}
	}()
	return dec.Decode(n)
}

// convert turns the parser's tree into ours.
func (s segment) convert(doc *yaml.Node) Document {
	d := Document{Line: s.line + max(doc.Line, 1)}
	if len(doc.Content) != 1 {
		return d
	}
	c := converter{line: s.line, done: map[*yaml.Node]*Node{}, open: map[*yaml.Node]bool{}}
	root := c.node(doc.Content[0])
	d.Line = root.Line
	d.Errors = c.errs
	if !c.stopped && root.Kind != Null {
		d.Root = root
	}
	return d
}

// converter holds what is known while one document is converted.
type converter struct {
	line    int
	done    map[*yaml.Node]*Node // targets of aliases
	open    map[*yaml.Node]bool  // nodes that are being converted
	merged  int
	errs    []SyntaxError
	stopped bool // it is too large to go on
}

func (c *converter) fail(n *yaml.Node, format string, args ...any) {
	c.errs = append(c.errs, SyntaxError{c.at(n), fmt.Sprintf(format, args...)})
}

func (c *converter) at(n *yaml.Node) Position { return Position{c.line + n.Line, n.Column} }

// node converts a value. What is wrong with it is recorded, and null stands in
// its place.
func (c *converter) node(n *yaml.Node) *Node {
	at := c.at(n)
	out := &Node{Line: at.Line, Column: at.Column}
	if c.stopped {
		return out
	}
	switch n.Kind {
	case yaml.AliasNode:
		out = c.alias(n)
	case yaml.ScalarNode:
		v, err := resolveNode(n)
		if err != nil {
			c.fail(n, "%v", err)
			break
		}
		out.Kind, out.Text = v.kind, v.text
	case yaml.SequenceNode:
		out.Kind = Array
		out.Items = make([]*Node, len(n.Content))
		c.open[n] = true
		for i, item := range n.Content {
			out.Items[i] = c.node(item)
		}
		delete(c.open, n)
	case yaml.MappingNode:
		out.Kind = Object
		c.open[n] = true
		c.mapping(n, out)
		delete(c.open, n)
	}
	if n.Kind != yaml.AliasNode {
		out.measure()
	}
	if n.Anchor != "" {
		c.done[n] = out
	}
	if out.aliased > MaxBytes {
		c.stop(n)
	}
	return out
}

func (c *converter) stop(n *yaml.Node) {
	if !c.stopped {
		c.fail(n, "its aliases expand to more than the limit of %d MiB", MaxBytes>>20)
	}
	c.stopped = true
}

func resolveNode(n *yaml.Node) (scalar, error) {
	if n.Style&yaml.TaggedStyle != 0 {
		return resolve(n.Tag, n.Value)
	}
	if n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		return scalar{kind: String, text: n.Value, tag: tagString}, nil
	}
	return resolve("", n.Value)
}

// target returns the converted node that an alias stands for, or nil.
func (c *converter) target(n *yaml.Node) *Node {
	if n.Alias == nil || c.open[n.Alias] {
		c.fail(n, "the alias *%s stands inside of what it names", n.Value)
		return nil
	}
	t, ok := c.done[n.Alias]
	if !ok {
		t = c.node(n.Alias)
		c.done[n.Alias] = t
	}
	return t
}

func (c *converter) alias(n *yaml.Node) *Node {
	t := c.target(n)
	if t == nil {
		at := c.at(n)
		t = &Node{Line: at.Line, Column: at.Column}
		t.measure()
		return t
	}
	return t.aliasOf()
}

func (c *converter) mapping(n *yaml.Node, out *Node) {
	seen := make(map[string]int, len(n.Content)/2)
	var merges []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if isMerge(k) {
			merges = append(merges, v)
			continue
		}
		key, ok := c.key(k)
		value := c.node(v)
		if !ok {
			continue
		}
		at := c.at(k)
		out.set(Member{Key: key, Line: at.Line, Column: at.Column, Value: value}, seen)
	}
	// Explicit keys are all in; of the merges the last one wins, of a list of
	// them the first.
	for _, m := range slices.Backward(merges) {
		c.merge(m, out, seen)
	}
}

func isMerge(n *yaml.Node) bool {
	if n.Kind != yaml.ScalarNode || n.Value != "<<" {
		return false
	}
	return n.Style&yaml.TaggedStyle != 0 && n.Tag == tagMerge || n.Style == 0
}

// key returns the text of a key. JSON has strings only, so numbers and booleans
// become what they would be written as.
func (c *converter) key(n *yaml.Node) (string, bool) {
	if n.Kind == yaml.AliasNode && n.Alias != nil && n.Alias.Kind == yaml.ScalarNode {
		n = n.Alias
	}
	if n.Kind != yaml.ScalarNode {
		c.fail(n, "a mapping or list cannot be a key; is this a template ({{ … }}) that was never rendered?")
		return "", false
	}
	v, err := resolveNode(n)
	if err == nil {
		var key string
		if key, err = v.key(); err == nil {
			return key, true
		}
	}
	c.fail(n, "%v", err)
	return "", false
}

// merge adds the members that are not there yet.
func (c *converter) merge(n *yaml.Node, out *Node, seen map[string]int) {
	if n.Kind == yaml.SequenceNode {
		for _, item := range n.Content {
			c.mergeOne(item, out, seen)
		}
		return
	}
	c.mergeOne(n, out, seen)
}

func (c *converter) mergeOne(n *yaml.Node, out *Node, seen map[string]int) {
	var from *Node
	switch n.Kind {
	case yaml.AliasNode:
		if from = c.target(n); from == nil {
			return
		}
		if from.Kind != Object {
			from = nil
		}
	case yaml.MappingNode:
		from = c.node(n)
	}
	if from == nil {
		c.fail(n, "a merge (<<) takes a mapping or a list of mappings")
		return
	}
	for _, m := range from.Members {
		if c.merged++; c.merged > maxMerged {
			c.stop(n)
			return
		}
		if _, ok := seen[m.Key]; ok {
			continue
		}
		m.Value = m.Value.aliasOf()
		seen[m.Key] = len(out.Members)
		out.Members = append(out.Members, m)
	}
}
