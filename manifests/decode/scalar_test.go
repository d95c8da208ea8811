package decode_test

import (
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/podkeeper/podkeeper/manifests/decode"
	"sigs.k8s.io/yaml"
	yamlv2 "sigs.k8s.io/yaml/goyaml.v2"
)

// TestScalarsAreTheKubelets holds C009: a scalar is what sigs.k8s.io/yaml, which
// the kubelet reads manifests with, makes of it, whatever the YAML version says.
func TestScalarsAreTheKubelets(t *testing.T) {
	scalars := []string{
		"8080", "1.20", "1e3", "0755", "0o17", "0x1F", "1_000", "true", "yes", "no", "on", "off", "y", "n", "Y", "N",
		"True", "TRUE", "On", "ON", "Off", "OFF", "Yes", "NO", "tRUE", "nO",
		`"8080"`, `"true"`, "'yes'", "!!str 8080", "!!str yes", "!!str ~", "!!int 5", `!!int "5"`, "!!float 3", "!!float 3.5", "!!bool yes", "!!null ~",
		"2024-01-01", "2024-1-1", "2001-12-14t21:59:43.10-05:00", "2001-12-14 21:59:43.10", "2024-01", "2024-13-45", "12:30:45", "NaN", "=", "null", "~", "", "Null", "NULL", "nULL",
		"-1", "+1", "- 1", "1.", ".5", "-.5", "+.5", "1e21", "1e-7", "1e20", "123456789012345678901", "18446744073709551615", "9223372036854775808", "-9223372036854775808",
		"0b101", "-0b101", "0b-1", "0B1", "0xFF", "0XFF", "-0x1", "0o8", "08", "09.5", "1__0", "_1", "1_", ".1_0", "0x_1", "1e400", "1.5e3", "1E+3", "e3", ".e3",
		"a b", "a: b", "|\n  text\n  more", ">\n  text\n  more", "!foo 12", "!!binary aGk=", "<<x", "@x", "0.1.2", "1,2", "--", "-", "+", ".", "..", "...a", "y1", "no1", "0777777777777777777777777", "!!map x", "!!timestamp 2024-01-01",
	}
	for _, s := range scalars {
		t.Run(s, func(t *testing.T) { twin(t, "v: "+s+"\n") })
		t.Run("item "+s, func(t *testing.T) { twin(t, "- "+s+"\n") })
		if s != "" && !strings.ContainsAny(s, "|>:") {
			t.Run("key "+s, func(t *testing.T) { twin(t, s+": v\n") })
		}
	}
}

// TestMergeAndAliases compares what both readers agree on: merges that stand
// first.
func TestMergeAndAliases(t *testing.T) {
	for _, text := range []string{
		"a: &a {x: 1, y: 2}\nb: *a\n",
		"a: &a {x: 1, y: 2}\nb: {<<: *a, y: 3}\n",
		"a: &a {x: 1}\nb: &b {x: 2, z: 4}\nc: {<<: [*a, *b], y: 3}\n",
		"a: &a {x: 1}\nb: &b {<<: *a, z: 4}\nc:\n  <<: *b\n  q: [*a, *b]\n",
		"a: &a {x: 1}\nb: &b {x: 2, y: 2}\nc:\n  <<: *a\n  <<: *b\n  z: 3\n",
		"a: &a [1, 2]\nb: *a\n", "a: &k foo\n*k : 1\n",
		"a: {<<: {x: 1}}\n", "b: {\"<<\": 1}\n", "a: &a 1\nb: {<<: *a}\n", "a: {<<: 3}\n", "a: &a [*a]\n", "a: *nope\n",
		"{}", "[]", "~", "# nothing\n", "---\n", "--- a\n", "--- {a: b}\n", "- - - a\n", "? a\n: b\n", "{a, b}\n", "[a: b]\n", "{1: a}\n", "{1.5: a}\n", "{~: a}\n", "{[a]: b}\n", "{{a: b}: c}\n",
		"a: b\n...\n", "%YAML 1.1\n---\na: b\n", "a: 'b\n\n  c'\n", "a: \"\\u00e9\\x41\"\n", "a: |-\n  x\n\n  y\nb: >+\n  z\n\n",
		"a:\r\n  b: c\r\n", "\ufeffa: b\n", "a: b # c\n#d\n", "a:\n- b\n-\n- c: d\n", "a: !!set {b, c}\n", "k: é\n", "a: b: c\n", "a:\n\tb: c\n", "'a': \"\n\"",
		"#\r\t#", "# a\n\t# b\nc: d\n", "#\n\t\n#", "\r#\r \r\t    #", "\t{\"a\":\t1}", "\t[]", "\t{a: b}", "\ufeff\t{}",
	} {
		t.Run(text, func(t *testing.T) { twin(t, text) })
	}
}

// FuzzTwin looks for texts of one document that our reader and the kubelet's read
// in two ways.
func FuzzTwin(f *testing.F) {
	for _, s := range []string{"v: 0o17\n", "a: &a {x: 1}\nb: {<<: *a}\n", "- |\n  x\n", "{a: [1, 'b', \"c\"]}", "a: # x\n  b\n", "? x\n: !!str 1\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 2000 || strings.ContainsAny(text, "<!%") || strings.Contains(text, "---") || strings.Contains(text, "...") {
			return // listed differences: merges after keys, tags on quoted scalars, several documents
		}
		twin(t, text)
	})
}

// twin compares both readings of a text of one document. Where ours refuses what
// theirs takes, it must be for a listed reason.
func twin(t *testing.T, text string) {
	t.Helper()
	theirs, theirErr := kubelet(text)
	docs := decode.Documents([]byte(text))
	if len(docs) > 1 {
		return
	}
	var ours any
	var ourErr error
	if len(docs) == 1 {
		if len(docs[0].Errors) > 0 {
			ourErr = fmt.Errorf("%v", docs[0].Errors)
		}
		if docs[0].Root != nil {
			if err := json.Unmarshal(docs[0].Root.JSON(), &ours); err != nil {
				t.Fatalf("our JSON is none: %v", err)
			}
		}
	}
	if ourErr != nil && theirErr == nil && stricter(text) {
		return
	}
	if ourErr == nil && theirErr != nil {
		theirs, theirErr = kubelet(untabbed(text))
	}
	if (ourErr != nil) != (theirErr != nil) {
		t.Fatalf("%q: ours: %v, the kubelet's: %v (%v)", text, ourErr, theirErr, theirs)
	}
	if ourErr == nil {
		if diff := cmp.Diff(theirs, ours); diff != "" {
			t.Fatalf("%q (-kubelet +ours):\n%s", text, diff)
		}
	}
}

var lineBreaks = regexp.MustCompile(`\r\n|[\n\r\x{85}\x{2028}\x{2029}]`)

// untabbed returns a text without the tabs before comments and in lines of nothing else,
// which our parser takes where a comment stands before them.
func untabbed(text string) string {
	lines := lineBreaks.Split(text, -1)
	for i, line := range lines {
		if t := strings.TrimLeft(line, " \t"); t == "" || t[0] == '#' {
			lines[i] = t
		}
	}
	return strings.Join(lines, "\n")
}

// stricter tells of texts that we refuse on purpose.
func stricter(text string) bool {
	trimmed := outline(text)
	switch {
	case trimmed == "", trimmed[0] == '<': // empty files and pages
		return true
	case !utf8.ValidString(text), strings.ContainsRune(text, 0): // UTF-16
		return true
	case trimmed[0] == '{' || trimmed[0] == '[': // strict JSON, as the kubelet's own caller does
		return true
	}
	// What follows the first document is not looked at by theirs.
	dec := yamlv2.NewDecoder(strings.NewReader(text))
	for {
		switch err := dec.Decode(new(any)); err {
		case nil:
		case io.EOF:
			return false
		default:
			return true
		}
	}
}

// outline returns a text without the space around it.
func outline(text string) string { return strings.TrimSpace(strings.TrimPrefix(text, "\ufeff")) }

func kubelet(text string) (value any, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	data, err := yaml.YAMLToJSON([]byte(text))
	if t := outline(text); err != nil && t != "" && strings.ContainsAny(t[:1], "{[") && json.Valid([]byte(t)) {
		data, err = []byte(t), nil // its caller takes JSON as it is, which may have tabs anywhere
	}
	if err != nil {
		return nil, err
	}
	return value, json.Unmarshal(data, &value)
}
