package credential_test

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/runtime"
	"github.com/podkeeper/podkeeper/runtime/credential"
)

// names returns the user names, or tokens, of logins.
func names(logins []runtime.Auth) []string {
	var list []string
	for _, l := range logins {
		list = append(list, l.Username+l.IdentityToken+l.RegistryToken)
	}
	return list
}

// entries returns a configuration whose entry for each place has the place's
// number as its user.
func entries(places ...string) string {
	var list []string
	for i, place := range places {
		auth := base64.StdEncoding.EncodeToString([]byte(string(rune('a'+i)) + ":pw"))
		list = append(list, `"`+place+`": {"auth": "`+auth+`"}`)
	}
	return `{"auths": {` + strings.Join(list, ", ") + `}}`
}

func secret(name string, kind v1.SecretType, key, text string) *pod.Object {
	return &pod.Object{
		Key:  pod.ObjectKey{Kind: pod.Secret, Namespace: "ns", Name: name},
		Type: kind, Data: map[string]pod.Value{key: pod.SecretValue(text)},
	}
}

// Which entries hold for an image, and in which order they are tried.
func TestPlaces(t *testing.T) {
	for name, test := range map[string]struct {
		image  string
		places []string
		want   []string
	}{
		"a registry":                  {"r.example/app:1", []string{"r.example", "s.example"}, []string{"a"}},
		"a URL":                       {"r.example/app:1", []string{"https://r.example/v2/", "http://r.example/v1"}, []string{"b", "a"}},
		"a port":                      {"r.example:5000/app", []string{"r.example", "r.example:5000", "r.example:5001"}, []string{"b"}},
		"the longest path first":      {"r.example/a/b/app@sha256:" + strings.Repeat("0", 64), []string{"r.example", "r.example/a", "r.example/a/b", "r.example/x"}, []string{"c", "b", "a"}},
		"a path ends at a slash":      {"r.example/abc/app", []string{"r.example/ab"}, nil},
		"the image itself":            {"r.example/a/app:1", []string{"r.example/a/app"}, []string{"a"}},
		"wildcards last":              {"eu.r.example/app", []string{"*.r.example", "eu.r.example", "??.*.example"}, []string{"b", "a", "c"}},
		"a wildcard is of one part":   {"x.eu.r.example/app", []string{"*.r.example", "*.*.r.example"}, []string{"b"}},
		"a wildcard and another port": {"r.example:1/app", []string{"*.example:2", "*.example:1"}, []string{"b"}},
		"capitals":                    {"r.example/app", []string{"R.EXAMPLE"}, []string{"a"}},
		"an address":                  {"127.0.0.1:5000/app", []string{"127.0.0.1:5000"}, []string{"a"}},
		"an IPv6 address":             {"[::1]:5000/app", []string{"[::1]:5000"}, []string{"a"}},
		"Docker's":                    {"app", []string{"https://index.docker.io/v1/"}, []string{"a"}},
		"Docker's, by other names":    {"docker.io/me/app", []string{"docker.io", "index.docker.io", "registry-1.docker.io"}, []string{"a", "b", "c"}},
		"Docker's, with a path":       {"me/app", []string{"docker.io/me", "docker.io/you", "docker.io"}, []string{"a", "c"}},
		"Docker's is no other's":      {"r.example/app", []string{"docker.io"}, nil},
	} {
		node := credential.Node{Text: entries(test.places...)}
		got, err := node.Find(t.Context(), test.image, nil)
		if diff := cmp.Diff(test.want, names(got)); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}

// Secrets come before the node, and each login is tried once.
func TestOrderOfSources(t *testing.T) {
	dir := t.TempDir()
	first, second := filepath.Join(dir, "first"), filepath.Join(dir, "second")
	write(t, first, `{"auths": {"r.example": {"username": "first", "password": "x"}, "empty.example": {}}}`)
	write(t, second, `{"auths": {"r.example": {"identitytoken": "second"}, "https://r.example/a": {"registrytoken": "deeper"}}}`)
	node := credential.Node{Files: []string{first, filepath.Join(dir, "none"), second}, Text: `{"auths": {"r.example": {"username": "text", "password": "x"}}}`}
	secrets := []*pod.Object{
		secret("one", v1.SecretTypeDockerConfigJson, v1.DockerConfigJsonKey, `{"auths": {"r.example": {"username": "one", "password": "x"}}}`),
		secret("old", v1.SecretTypeDockercfg, v1.DockerConfigKey, `{"r.example": {"username": "old", "password": "x", "email": "e"}}`),
		secret("again", v1.SecretTypeDockerConfigJson, v1.DockerConfigJsonKey, `{"auths": {"r.example": {"username": "one", "password": "x"}}}`),
	}
	for image, want := range map[string][]string{
		"r.example/app":     {"one", "old", "text", "first", "second"},
		"r.example/a/app":   {"one", "old", "deeper", "text", "first", "second"},
		"s.example/app":     nil,
		"empty.example/app": nil,
	} {
		got, err := node.Find(t.Context(), image, secrets)
		if diff := cmp.Diff(want, names(got)); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", image, err, diff)
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

// C104: what cannot be read is named without a word of what stands in it, and the
// rest is used.
func TestBrokenConfigurations(t *testing.T) {
	const leak = "S3CR3T"
	good := secret("good", v1.SecretTypeDockerConfigJson, v1.DockerConfigJsonKey, entries("r.example"))
	for name, test := range map[string]struct {
		secret *pod.Object
		want   string
	}{
		"no JSON":           {secret("bad", v1.SecretTypeDockerConfigJson, v1.DockerConfigJsonKey, `{"auths": `+leak), "pull secret ns/bad: it is not the JSON of a docker configuration"},
		"a wrong type":      {secret("bad", v1.SecretTypeDockerConfigJson, v1.DockerConfigJsonKey, `{"auths": {"r.example": {"password": ["`+leak+`"]}}}`), "pull secret ns/bad: it is not the JSON of a docker configuration"},
		"nothing":           {secret("bad", v1.SecretTypeDockerConfigJson, "other", leak), "pull secret ns/bad: it is not the JSON of a docker configuration"},
		"an old one":        {secret("bad", v1.SecretTypeDockercfg, v1.DockerConfigKey, leak), "pull secret ns/bad: it is not the JSON of a docker configuration"},
		"an opaque one":     {secret("bad", v1.SecretTypeOpaque, v1.DockerConfigJsonKey, leak), "pull secret ns/bad: its type is Opaque, want kubernetes.io/dockerconfigjson"},
		"no base64":         {secret("bad", v1.SecretTypeDockerConfigJson, v1.DockerConfigJsonKey, `{"auths": {"r.example": {"auth": "`+leak+`!"}}}`), `pull secret ns/bad: entry "r.example": auth is not name:password in base64`},
		"no password":       {secret("bad", v1.SecretTypeDockerConfigJson, v1.DockerConfigJsonKey, `{"auths": {"r.example": {"auth": "`+base64.StdEncoding.EncodeToString([]byte(leak))+`"}}}`), `pull secret ns/bad: entry "r.example": auth is not name:password in base64`},
		"no registry":       {secret("bad", v1.SecretTypeDockerConfigJson, v1.DockerConfigJsonKey, `{"auths": {"": {"auth": "`+leak+`"}}}`), `pull secret ns/bad: entry "": it names no registry`},
		"a helper's name":   {secret("bad", v1.SecretTypeDockerConfigJson, v1.DockerConfigJsonKey, `{"credsStore": "evil"}`), ""},
		"nothing is broken": {good, ""},
	} {
		got, err := credential.Node{}.Find(t.Context(), "r.example/app", []*pod.Object{test.secret, good})
		said := ""
		if err != nil {
			said = err.Error()
		}
		if said != test.want || strings.Contains(said, leak) {
			t.Errorf("%s: %q, want %q", name, said, test.want)
		}
		if diff := cmp.Diff([]string{"a"}, names(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if _, err := (credential.Node{}).Find(t.Context(), "Not An Image", nil); err == nil {
		t.Error("a name that is none was looked up")
	}
	file := filepath.Join(t.TempDir(), "config.json")
	write(t, file, leak)
	if _, err := (credential.Node{Files: []string{file}}).Find(t.Context(), "r.example/app", nil); err == nil || !strings.Contains(err.Error(), file) || strings.Contains(err.Error(), leak) {
		t.Errorf("a broken file: %v", err)
	}
}
