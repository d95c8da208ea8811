package decode_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/podkeeper/podkeeper/manifests/decode"
)

// show prints each document as its first line, its JSON and its errors.
func show(docs []decode.Document) []string {
	var out []string
	for _, d := range docs {
		s := fmt.Sprintf("%d:", d.Line)
		if d.Root != nil {
			s += " " + string(d.Root.JSON())
		}
		for _, e := range d.Errors {
			s += fmt.Sprintf(" [%d:%d %s]", e.Line, e.Column, e.Message)
		}
		out = append(out, s)
	}
	return out
}

func TestDocuments(t *testing.T) {
	tests := map[string]struct {
		text string
		want []string
	}{
		"several documents":                                            {"a: 1\n---\nb: 2\n", []string{`1: {"a":1}`, `3: {"b":2}`}},
		"carriage returns":                                             {"a: 1\r\n---\r\nb: 2\r\n", []string{`1: {"a":1}`, `3: {"b":2}`}},
		"a byte order mark":                                            {"\ufeffa: 1\n", []string{`1: {"a":1}`}},
		"UTF-16 is named":                                              {"\xff\xfea\x00", []string{`1: [1:1 is UTF-16; save it as UTF-8]`}},
		"comments before, between and after":                           {"# x\n\n---\n# y\na: 1\n---\n# nothing\n---\nb: 2\n# z\n", []string{`5: {"a":1}`, `9: {"b":2}`}},
		"only comments (C040)":                                         {"# nothing\n# here\n", nil},
		"zero bytes are an error (C040)":                               {"", []string{`1: [1:1 is empty]`}},
		"blanks alone are an error":                                    {" \n\n", []string{`1: [1:1 is empty]`}},
		"document end markers and directives":                          {"a: 1\n...\n%YAML 1.1\n---\nb: 2\n", []string{`1: {"a":1}`, `5: {"b":2}`}},
		"content on the marker's line":                                 {"--- {a: 1}\n--- # c\nb: 2\n", []string{`1: {"a":1}`, `3: {"b":2}`}},
		"dashes that are no marker":                                    {"a: |\n  ---\n  b\nc: ----\n", []string{`1: {"a":"---\nb\n","c":"----"}`}},
		"JSON after a marker":                                          {"{\"a\": 1}\n---\n{\"b\": 2}\n", []string{`1: {"a":1}`, `3: {"b":2}`}},
		"an HTML page (C021)":                                          {"<!DOCTYPE html><html>502</html>\n", []string{`1: [1:1 is an HTML or XML page, not a manifest]`}},
		"zero bytes inside (C021)":                                     {"a: 1\x00\x00", []string{`1: [1:1 is not text: it holds zero bytes]`}},
		"junk that begins like a comment":                              {"#\xf7", []string{`1: [1:2 is not text: byte 0xf7 is not UTF-8]`}},
		"a comment of other letters":                                   {"# é\n", nil},
		"junk (C021)":                                                  {"a: 1\nb: \xf0\x90\n", []string{`1: [2:4 is not text: byte 0xf0 is not UTF-8]`}},
		"a broken document between good ones":                          {"a: 1\n---\nb: [\n---\nc: 3\n", []string{`1: {"a":1}`, "2: [3:1 is not valid YAML: did not find expected node content]", `5: {"c":3}`}},
		"a template (C017)":                                            {"name: t\nimage: {{ image }}\n", []string{`1: {"image":{},"name":"t"} [2:9 a mapping or list cannot be a key; is this a template ({{ … }}) that was never rendered?]`}},
		"an undefined anchor (C008)":                                   {"a: 1\nname: *nope\n", []string{`1: [2:7 is not valid YAML: an alias (*) names no anchor (&) that comes before it]`}},
		"a trailing comma in JSON (C016)":                              {"{\"a\": [\n  1,\n]}", []string{`1: [3:1 is not valid JSON: invalid character ']' looking for beginning of value]`}},
		"a comment in JSON (C016)":                                     {"{\"a\": 1 // x\n}", []string{`1: [1:9 is not valid JSON: invalid character '/' after object key:value pair]`}},
		"JSON that was cut off (C130)":                                 {"{\"a\":\n {\"b\": \"c", []string{`1: [2:9 is not valid JSON: unexpected end of JSON input]`}},
		"two JSON values":                                              {"{}\n{}", []string{`1: [2:1 is not valid JSON: invalid character '{' after top-level value]`}},
		"repeated keys: the last one counts":                           {"a: 1\na: 2\n", []string{`1: {"a":2}`}},
		"an explicit key beats a merged one":                           {"a: &a {x: 1, z: 1}\nb:\n  x: 2\n  <<: *a\n", []string{`1: {"a":{"x":1,"z":1},"b":{"x":2,"z":1}}`}},
		"a merge of something else":                                    {"a: &a [1]\nb: {<<: *a, c: 1}\n", []string{`1: {"a":[1],"b":{"c":1}} [2:9 a merge (<<) takes a mapping or a list of mappings]`}},
		"an alias inside of what it names":                             {"a: &a\n  b: *a\n", []string{`1: {"a":{"b":null}} [2:6 the alias *a stands inside of what it names]`}},
		"C104: an alias is not quoted, whatever looks like its anchor": {"a: \"x &nope y\"\nname: *nope\n", []string{`1: [1:1 is not valid YAML: an alias (*) names no anchor (&) that comes before it]`}},
		"anchors end with their document":                              {"a: &a 1\n---\nb: *a\n", []string{`1: {"a":1}`, `2: [3:4 is not valid YAML: an alias (*) names no anchor (&) that comes before it]`}},
		"infinity":                                                     {"a: .inf\n", []string{`1: {"a":null} [1:4 infinities and NaN have no place in a manifest]`}},
		"a tag that does not fit":                                      {"a: !!int x\n", []string{`1: {"a":null} [1:4 the value does not fit its tag]`}},
		"a null key":                                                   {"~: x\n", []string{`1: {} [1:1 this cannot be a key]`}},
		"a tab":                                                        {"a:\n\tb: 1\n", []string{`1: [2:2 is not valid YAML: found character that cannot start any token (a tab? YAML is indented with spaces)]`}},
		"a wrong indentation":                                          {"a:\n  b: 1\n c: 2\n", []string{`1: [3:2 is not valid YAML: did not find expected key]`}},
		"a wrong indentation far down":                                 {"x: 1\ny: 1\na:\n  b:\n    - c: 1\n     d: 2\nz: 1\n", []string{`1: [6:6 is not valid YAML: did not find expected '-' indicator]`}},
		"a value on a wrong line":                                      {"a: b: c\n", []string{`1: [1:1 is not valid YAML: mapping values are not allowed in this context]`}},
		"a quote that stays open":                                      {"a: 1\nb: \"x\nc: 2\nd: 3\n", []string{`1: [2:1 is not valid YAML: found unexpected end of stream]`}},
		"a line that is no mapping":                                    {"a: 1\nb\nc: 2\n", []string{`1: [3:1 is not valid YAML: could not find expected ':']`}},
		"a list that is not indented as before":                        {"a:\n  - x\n - y\n", []string{`1: [3:2 is not valid YAML: did not find expected key]`}},
		"two values in a row":                                          {"a: 1\n---\n{a: 1} b\n", []string{`1: {"a":1}`, `3: {"a":1}`, `2: [3:1 is not valid YAML: did not find expected <document start>]`}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, show(decode.Documents([]byte(tt.text)))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestSizeLimit holds C018.
func TestSizeLimit(t *testing.T) {
	pod := "a: 1\n#"
	nearly := pod + strings.Repeat("x", 9<<20)
	if got := show(decode.Documents([]byte(nearly))); !cmp.Equal(got, []string{`1: {"a":1}`}) {
		t.Errorf("9 MiB: got %v", got)
	}
	if got := show(decode.Documents([]byte("a: 1\n" + strings.Repeat("# x\n", 2<<20)))); !cmp.Equal(got, []string{`1: {"a":1}`}) {
		t.Errorf("8 MiB of short comments: got %v", got)
	}
	big := pod + strings.Repeat("x", 10<<20)
	if got := show(decode.Documents([]byte(big))); !cmp.Equal(got, []string{`1: [1:1 is larger than the limit of 10 MiB]`}) {
		t.Errorf("over 10 MiB: got %v", got)
	}
}

// TestLimits holds that no text of 10 MiB costs much more than its size.
func TestLimits(t *testing.T) {
	for text, want := range map[string]string{
		"a: [" + strings.Repeat("0,", 1_000_001) + "]": `1: [1:1 holds more than the limit of 1000000 values]`,
		strings.Repeat("---\na\n", 10_001):             `20001: [20001:1 holds more than the limit of 10000 documents]`,
		"a: " + strings.Repeat("[", 20_000):            `1: [1:1 is not valid YAML: exceeded max depth of 10000]`,
		strings.Repeat("[", 20_000):                    `1: [1:10001 is not valid JSON: invalid character '[' exceeded max depth]`,
	} {
		if diff := cmp.Diff([]string{want}, show(decode.Documents([]byte(text)))); diff != "" {
			t.Errorf("%.10q…: -want +got:\n%s", text, diff)
		}
	}
	// One long line must not be counted again for each of its values.
	docs := decode.Documents([]byte(`{"é":[` + strings.Repeat("0,", 500_000) + "1]}"))
	if got, want := docs[0].Root.Find("é[500000]"), (decode.Position{Line: 1, Column: 1_000_007}); got != want {
		t.Errorf("the last of many values is at %v, want %v", got, want)
	}
}

func TestAliasBomb(t *testing.T) {
	var b bytes.Buffer
	b.WriteString("a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n")
	for i := 1; i < 40; i++ {
		fmt.Fprintf(&b, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 9), ", "))
	}
	got := show(decode.Documents(b.Bytes()))
	want := []string{`1: [6:5 its aliases expand to more than the limit of 10 MiB]`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lists: -want +got:\n%s", diff)
	}

	b.Reset()
	b.WriteString("a0: &a0 {")
	for i := range 2000 {
		fmt.Fprintf(&b, "k%d: %d, ", i, i)
	}
	b.WriteString("}\n")
	for i := range 600 {
		fmt.Fprintf(&b, "b%d: {<<: *a0}\n", i)
	}
	if docs := decode.Documents(b.Bytes()); len(docs) != 1 || docs[0].Root != nil || len(docs[0].Errors) != 1 {
		t.Errorf("merges: want one error, got %d documents: %+v", len(docs), docs[0].Errors)
	}
}

func TestFind(t *testing.T) {
	text := `kind: Pod
metadata:
  labels:
    app.kubernetes.io/name: web
    "a[b]": c
spec:
  containers:
  - name: a
    image: x
  - name: b
    ports:
    - containerPort: 1
`
	root := decode.Documents([]byte(text))[0].Root
	for path, want := range map[string]decode.Position{
		"":     {Line: 1, Column: 1},
		"kind": {Line: 1, Column: 7},
		"metadata.labels[app.kubernetes.io/name]": {Line: 4, Column: 29},
		"metadata.labels[a[b]]":                   {Line: 5, Column: 13},
		"metadata.name":                           {Line: 2, Column: 1},
		"spec.containers":                         {Line: 7, Column: 3},
		"spec.containers[0]":                      {Line: 8, Column: 5},
		"spec.containers[0].image":                {Line: 9, Column: 12},
		"spec.containers[1].image":                {Line: 10, Column: 5},
		"spec.containers[1].ports[0].hostPort":    {Line: 12, Column: 7},
		"spec.containers[7].image":                {Line: 7, Column: 3},
		"spec.volumes[0]":                         {Line: 6, Column: 1},
	} {
		if got := root.Find(path); got != want {
			t.Errorf("Find(%q) = %v, want %v", path, got, want)
		}
	}
}

func TestJSONPositions(t *testing.T) {
	root := decode.Documents([]byte("{\n  \"é\": {\"b\": [1, true,\r\n null, \"x\\ny\"]}}"))[0].Root
	if got, want := string(root.JSON()), `{"é":{"b":[1,true,null,"x\ny"]}}`; got != want {
		t.Errorf("JSON = %s, want %s", got, want)
	}
	for path, want := range map[string]decode.Position{
		"é": {Line: 2, Column: 3}, "é.b": {Line: 2, Column: 9}, "é.b[1]": {Line: 2, Column: 18}, "é.b[3]": {Line: 3, Column: 8},
	} {
		if got := root.Find(path); got != want {
			t.Errorf("Find(%q) = %v, want %v", path, got, want)
		}
	}
}
