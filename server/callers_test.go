package server_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/podkeeper/podkeeper/server"
	"github.com/podkeeper/podkeeper/server/kubeletapi"
)

func tokenLine(token, role string) string {
	return fmt.Sprintf("sha256:%x me %s\n", sha256.Sum256([]byte(token)), role)
}

// from is a request that came from there to there, with a header Authorization.
func from(t *testing.T, remote, local, authorization string) *http.Request {
	t.Helper()
	at, err := net.ResolveTCPAddr("tcp", local)
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(context.WithValue(t.Context(), http.LocalAddrContextKey, net.Addr(at)), http.MethodGet, "/", nil)
	r.RemoteAddr = remote
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	return r
}

func TestBearers(t *testing.T) {
	file := put(t, t.TempDir(), "tokens", []byte("# ours\n\n"+tokenLine("r", "read-only")+tokenLine("f", "full")+tokenLine("both", "full")+tokenLine("both", "read-only")+tokenLine("two", "read-only")+tokenLine("two", "full")))
	for name, c := range map[string]struct {
		authorization string
		want          kubeletapi.Access
	}{
		"full":                 {"Bearer f", kubeletapi.Full},
		"read-only":            {"Bearer r", kubeletapi.ReadOnly},
		"another spelling":     {"bearer  f ", kubeletapi.Full},
		"twice, the lesser":    {"Bearer both", kubeletapi.ReadOnly},
		"twice, in that order": {"Bearer two", kubeletapi.ReadOnly},
		"none":                 {"", 0},
		"an empty one":         {"Bearer ", 0},
		"no scheme":            {"f", 0},
		"another scheme":       {"Basic f", 0},
		"a part of one":        {"Bearer bot", 0},
		"more than one":        {"Bearer f x", 0},
		"the line of one":      {"Bearer " + strings.TrimSpace(tokenLine("f", "full")), 0},
		"a very long one":      {"Bearer " + strings.Repeat("f", 16<<10), 0},
		"what a comment says":  {"Bearer # ours", 0},
	} {
		who, err := server.Callers{Tokens: file}.Who(quiet)
		if err != nil {
			t.Fatal(err)
		}
		got, err := who(from(t, "127.0.0.1:9", "127.0.0.1:1", c.authorization))
		if got != c.want || (err == nil) != (c.want != 0) {
			t.Errorf("%s: %d, %v, want %d", name, got, err, c.want)
		}
	}
}

// A token file that changes is read again; what cannot be read lets nobody in.
func TestTokensAreReadAgain(t *testing.T) {
	dir := t.TempDir()
	file := put(t, dir, "tokens", []byte(tokenLine("a", "full")))
	who, err := server.Callers{Tokens: file}.Who(quiet)
	if err != nil {
		t.Fatal(err)
	}
	check := func(when string, want map[string]bool) {
		t.Helper()
		for token, in := range want {
			if _, err := who(from(t, "127.0.0.1:9", "127.0.0.1:1", "Bearer "+token)); (err == nil) != in {
				t.Errorf("%s: token %s: %v", when, token, err)
			}
		}
	}
	check("at first", map[string]bool{"a": true, "b": false})
	put(t, dir, "tokens", []byte(tokenLine("b", "full")))
	check("another", map[string]bool{"a": false, "b": true})
	put(t, dir, "tokens", []byte(tokenLine("b", "fu")+tokenLine("a", "full")))
	check("one line is wrong", map[string]bool{"a": true, "b": false})
	// So old that nothing but a change of it has it read again.
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(file, old, old); err != nil {
		t.Fatal(err)
	}
	check("older", map[string]bool{"a": true})
	if err := os.Chmod(file, 0o606); err != nil {
		t.Fatal(err)
	}
	check("everybody can write it", map[string]bool{"a": false, "b": false})
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	check("no file", map[string]bool{"a": false, "b": false})
	put(t, dir, "tokens", []byte(tokenLine("a", "full")))
	check("there again", map[string]bool{"a": true})
}

// Nothing that is wrong with a file is found out late, or repeats a line of it.
func TestWrongFilesOfCallers(t *testing.T) {
	dir := t.TempDir()
	hash := strings.Repeat("ab", 32)
	open := put(t, dir, "open", []byte(tokenLine("a", "full")))
	if err := os.Chmod(open, 0o602); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		callers server.Callers
		says    string
	}{
		"no token file":     {server.Callers{Tokens: filepath.Join(dir, "none")}, "no such file"},
		"a plain token":     {server.Callers{Tokens: put(t, dir, "1", []byte("secret me full"))}, "line 1"},
		"a short hash":      {server.Callers{Tokens: put(t, dir, "2", []byte("\nsha256:ab secret full"))}, "line 2"},
		"no name":           {server.Callers{Tokens: put(t, dir, "3", []byte("sha256:"+hash+" full"))}, "line 1"},
		"an unknown role":   {server.Callers{Tokens: put(t, dir, "4", []byte("sha256:"+hash+" secret admin"))}, "line 1"},
		"open to all":       {server.Callers{Tokens: open}, "every user can write it"},
		"no CA file":        {server.Callers{ClientCA: filepath.Join(dir, "none")}, "no such file"},
		"a CA file of none": {server.Callers{ClientCA: put(t, dir, "5", []byte("secret"))}, "no certificate"},
	} {
		_, err := c.callers.Who(quiet)
		if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), hash) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
}

// Who has no credentials gets in over the loopback device only, and only where that is
// asked for.
func TestAnonymous(t *testing.T) {
	file := put(t, t.TempDir(), "tokens", []byte(tokenLine("a", "full")))
	for name, c := range map[string]struct {
		on                           bool
		remote, local, authorization string
		want                         kubeletapi.Access
	}{
		"off":                    {false, "127.0.0.1:9", "127.0.0.1:1", "", 0},
		"from here":              {true, "127.0.0.1:9", "127.0.0.1:1", "", kubeletapi.ReadOnlyPort},
		"from here, IPv6":        {true, "[::1]:9", "[::1]:1", "", kubeletapi.ReadOnlyPort},
		"from here, mapped":      {true, "[::ffff:127.0.0.1]:9", "[::ffff:127.0.0.1]:1", "", kubeletapi.ReadOnlyPort},
		"from elsewhere":         {true, "10.0.0.2:9", "10.0.0.1:1", "", 0},
		"from here, by its name": {true, "10.0.0.1:9", "10.0.0.1:1", "", 0},
		"with a bad token":       {true, "127.0.0.1:9", "127.0.0.1:1", "Bearer b", 0},
		"with a good one":        {true, "10.0.0.2:9", "10.0.0.1:1", "Bearer a", kubeletapi.Full},
	} {
		who, err := server.Callers{Tokens: file, Anonymous: c.on}.Who(quiet)
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := who(from(t, c.remote, c.local, c.authorization)); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// What the README says makes a token makes one.
func TestTokenOfTheReadme(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, script, _ := strings.Cut(string(readme), "```sh\n  token=")
	script, _, ok := strings.Cut(script, "```")
	if !ok {
		t.Fatal("the README does not say how to make a token")
	}
	file := filepath.Join(t.TempDir(), "tokens")
	shown, err := exec.Command("sh", "-c", strings.ReplaceAll("token="+script, "/etc/podkeeper/tokens", file)).Output()
	if err != nil {
		t.Fatal(err)
	}
	who, err := server.Callers{Tokens: file}.Who(quiet)
	if err != nil {
		t.Fatal(err)
	}
	got, err := who(from(t, "127.0.0.1:9", "127.0.0.1:1", "Bearer "+strings.TrimSpace(string(shown))))
	if got != kubeletapi.ReadOnly || err != nil {
		t.Errorf("got %d, %v", got, err)
	}
}

func TestSocketOfAGroup(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	group := os.Getgid()
	if os.Geteuid() == 0 {
		group = 12345
	}
	l, err := server.Listen(path, group)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if gid := int(info.Sys().(*syscall.Stat_t).Gid); info.Mode().Perm() != 0o660 || gid != group {
		t.Errorf("mode %o, group %d, want 660, %d", info.Mode().Perm(), gid, group)
	}
}
