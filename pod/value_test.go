package pod_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/podkeeper/podkeeper/pod"
)

const canary = "S3CR3T-4711"

// C104: whichever way a secret value gets into a text, it says nothing.
func TestSecretValueHidesItself(t *testing.T) {
	v := pod.SecretValue(canary)
	type holder struct {
		inner pod.Value
		Outer pod.Value
		Map   map[string]pod.Value
		Ptr   *pod.Value
	}
	object := &pod.Object{Data: map[string]pod.Value{"k": v}}
	texts := map[string]string{}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%b", "%t", "%e", "%p", "%T", "%08.3f"} {
		for name, held := range map[string]any{"the value": v, "a pointer": &v, "a field": holder{v, v, map[string]pod.Value{"k": v}, &v}, "a list": []pod.Value{v}, "an object": object} {
			texts[name+" by "+verb] = fmt.Sprintf(verb, held)
		}
	}
	for name, held := range map[string]any{"the value": v, "a field": holder{Outer: v}, "an object": object} {
		data, err := json.Marshal(held)
		if err != nil {
			t.Fatal(err)
		}
		texts[name+" as JSON"] = string(data)
		var b bytes.Buffer
		slog.New(slog.NewTextHandler(&b, nil)).Info("x", "v", held)
		slog.New(slog.NewJSONHandler(&b, nil)).Info("x", "v", held)
		texts[name+" in a log"] = b.String()
	}
	hex := fmt.Sprintf("%x", canary)
	for how, text := range texts {
		if strings.Contains(text, canary) || strings.Contains(strings.ToLower(text), hex) {
			t.Errorf("%s shows it: %s", how, text)
		}
	}
	if got := v.Reveal(); got != canary {
		t.Errorf("revealed as %q", got)
	}
}

func TestPlainValueShowsItself(t *testing.T) {
	v := pod.PlainValue("a\nb")
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	got := []string{v.String(), fmt.Sprintf("%v", v), fmt.Sprintf("%q", v), string(data), pod.Value{}.String()}
	want := []string{"a\nb", "a\nb", `"a\nb"`, `"a\nb"`, ""}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%d: %q, want %q", i, got[i], want[i])
		}
	}
	if v.Equal(pod.SecretValue("a\nb")) || !v.Equal(pod.PlainValue("a\nb")) || !(pod.Value{}).Equal(pod.PlainValue("")) {
		t.Error("Equal compares neither more nor less than bytes and secrecy")
	}
}
