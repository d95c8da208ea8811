package credential_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podkeeper/podkeeper/runtime"
	"github.com/podkeeper/podkeeper/runtime/credential"
)

// withHelpers puts credential helpers, each a script, where programs are found.
func withHelpers(t *testing.T, scripts map[string]string) {
	t.Helper()
	dir := t.TempDir()
	for name, script := range scripts {
		write(t, filepath.Join(dir, "docker-credential-"+name), "#!/bin/sh\n"+script)
	}
	t.Setenv("PATH", dir+":/usr/bin:/bin")
}

// A helper is asked for the registry, as docker asks it, and comes before what
// stands in the file.
func TestHelpers(t *testing.T) {
	withHelpers(t, map[string]string{
		"all":   `[ "$1" = get ] || exit 9; read -r server; echo "{\"ServerURL\": \"$server\", \"Username\": \"all of $server\", \"Secret\": \"S3CR3T\"}"`,
		"one":   `cat >/dev/null; echo '{"Username": "<token>", "Secret": "T0K3N"}'`,
		"none":  `cat >/dev/null; echo 'credentials not found in native keychain'; exit 1`,
		"fails": `cat >/dev/null; echo 'S3CR3T is wrong' | tee /dev/stderr; exit 1`,
		"babel": `cat >/dev/null; echo S3CR3T`,
	})
	node := credential.Node{Text: `{"credsStore": "all", "credHelpers": {"one.example": "one", "none.example": "none", "fails.example": "fails", "babel.example": "babel", "lost.example": "lost", "path.example": "../x"},
		"auths": {"r.example": {"username": "file", "password": "x"}, "none.example": {"username": "file", "password": "x"}, "fails.example": {"username": "file", "password": "x"}}}`}
	for image, test := range map[string]struct {
		want []runtime.Auth
		err  string
	}{
		"r.example/app":     {[]runtime.Auth{{Username: "all of r.example", Password: "S3CR3T", Server: "r.example"}, {Username: "file", Password: "x", Server: "r.example"}}, ""},
		"app":               {[]runtime.Auth{{Username: "all of https://index.docker.io/v1/", Password: "S3CR3T", Server: "https://index.docker.io/v1/"}}, ""},
		"one.example/app":   {[]runtime.Auth{{IdentityToken: "T0K3N", Server: "one.example"}}, ""},
		"none.example/app":  {[]runtime.Auth{{Username: "file", Password: "x", Server: "none.example"}}, ""},
		"fails.example/app": {[]runtime.Auth{{Username: "file", Password: "x", Server: "fails.example"}}, "credential helper fails, for fails.example: exit status 1"},
		"babel.example/app": {nil, "credential helper babel, for babel.example: its answer is not the JSON of credentials"},
		"lost.example/app":  {nil, "credential helper lost, for lost.example: exec:"},
		"path.example/app":  {nil, "credential helper ../x, for path.example: want a name, not a path"},
	} {
		got, err := node.Find(t.Context(), image, nil)
		if (err != nil) != (test.err != "") || err != nil && !strings.HasPrefix(err.Error(), test.err) || err != nil && strings.Contains(err.Error(), "S3CR3T") {
			t.Errorf("%s: %v, want %q", image, err, test.err)
		}
		// Auth hides itself from a diff.
		type plain runtime.Auth
		show := cmp.Transformer("plain", func(a runtime.Auth) plain { return plain(a) })
		if diff := cmp.Diff(test.want, got, show); diff != "" {
			t.Errorf("%s (-want +got):\n%s", image, diff)
		}
	}
}

// A helper that hangs, or whose child holds its output, is not waited for.
func TestHelperThatHangs(t *testing.T) {
	withHelpers(t, map[string]string{"hangs": "sleep 1000 & sleep 1000"})
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	begin := time.Now()
	_, err := credential.Node{Text: `{"credsStore": "hangs"}`}.Find(ctx, "r.example/app", nil)
	if err == nil || time.Since(begin) > 10*time.Second {
		t.Errorf("after %s: %v", time.Since(begin), err)
	}
}
