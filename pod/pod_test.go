package pod_test

import (
	"slices"
	"testing"

	"github.com/podkeeper/podkeeper/pod"
)

func TestHashRoundTrip(t *testing.T) {
	for text, want := range map[string]pod.Hash{
		"1-abc":                    {Version: 1, Digest: "abc"},
		"12-a-b":                   {Version: 12, Digest: "a-b"},
		"":                         {},
		"abc":                      {},
		"1-":                       {},
		"x-abc":                    {},
		"99999999999999999999-abc": {},
	} {
		got := pod.ParseHash(text)
		if got != want {
			t.Errorf("%q is read as %+v, want %+v", text, got, want)
		}
		if want != (pod.Hash{}) && got.String() != text {
			t.Errorf("%q is written as %q", text, got)
		}
	}
}

func TestKeyText(t *testing.T) {
	key := pod.Key{Namespace: "n", Name: "p"}
	text, err := key.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	var back pod.Key
	if err := back.UnmarshalText(text); err != nil || back != key {
		t.Errorf("%s is read back as %s, %v", text, back, err)
	}
	if err := back.UnmarshalText([]byte("p")); err == nil {
		t.Error("a name without a namespace is taken for a key")
	}
}

// The first of two origins wins a conflict: by kind, then by name.
func TestOriginOrder(t *testing.T) {
	origin := func(kind pod.SourceKind, name string) pod.Origin {
		return pod.Origin{Source: pod.SourceID{Kind: kind, Name: "s"}, Name: name}
	}
	want := []pod.Origin{
		origin(pod.FileSource, "/m/a.yaml"), origin(pod.FileSource, "/m/b.yaml"),
		origin(pod.HTTPSource, "http://a"), origin(pod.HTTPSource, "http://b"), origin(pod.APISource, "a"),
	}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, pod.Origin.Compare)
	if !slices.Equal(got, want) {
		t.Errorf("sorted %v, want %v", got, want)
	}
}

func TestProblemText(t *testing.T) {
	for want, p := range map[string]pod.Problem{
		"a.yaml:3:5: error: spec.x: is wrong": {Severity: pod.Error, File: "a.yaml", Line: 3, Column: 5, Field: "spec.x", Message: "is wrong"},
		"a.yaml:3: warning: is odd":           {Severity: pod.Warning, File: "a.yaml", Line: 3, Message: "is odd"},
		"a.yaml: note: is unused":             {Severity: pod.Note, File: "a.yaml", Column: 5, Message: "is unused"},
		"error: is wrong":                     {Severity: pod.Error, Message: "is wrong"},
	} {
		if got := p.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
