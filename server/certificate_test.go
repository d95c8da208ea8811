package server_test

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/podkeeper/podkeeper/server"
)

// store keeps a certificate, unless full.
type store struct {
	files map[string][]byte
	full  error
}

func newStore() *store { return &store{files: map[string][]byte{}} }

func (s *store) ReadFile(name string) ([]byte, error) {
	if data, ok := s.files[name]; ok {
		return data, nil
	}
	return nil, fs.ErrNotExist
}

func (s *store) WriteFile(name string, data []byte) error {
	if s.full == nil {
		s.files[name] = data
	}
	return s.full
}

// show returns what a handshake shows now.
func show(t *testing.T, cfg *tls.Config) *tls.Certificate {
	t.Helper()
	c, err := cfg.GetCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.Leaf == nil {
		t.Fatal("no leaf")
	}
	return c
}

func shownFirst(t *testing.T, s *store, names ...string) (*tls.Config, *tls.Certificate) {
	t.Helper()
	cfg, err := server.Certificate{Store: s, Names: names}.TLS(false, quiet)
	if err != nil {
		t.Fatal(err)
	}
	return cfg, show(t, cfg)
}

func same(a, b *tls.Certificate) bool { return bytes.Equal(a.Certificate[0], b.Certificate[0]) }

// A certificate of our own making outlives the agent, is for all names, and is made
// anew before it ends, while the agent runs, too.
func TestOwnCertificate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		cfg, first := shownFirst(t, s, "n1", "127.0.0.1", "::1")
		for _, name := range []string{"n1", "127.0.0.1", "::1"} {
			if err := first.Leaf.VerifyHostname(name); err != nil {
				t.Error(err)
			}
		}
		if _, again := shownFirst(t, s, "n1", "127.0.0.1"); !same(first, again) {
			t.Error("another start made another one")
		}
		time.Sleep(330 * 24 * time.Hour)
		if !same(first, show(t, cfg)) {
			t.Error("it was made anew more than a month before its end")
		}
		time.Sleep(6 * 24 * time.Hour)
		second := show(t, cfg)
		if same(first, second) || !second.Leaf.NotAfter.After(first.Leaf.NotAfter) {
			t.Error("it was not made anew in its last month")
		}
		if _, kept := shownFirst(t, s, "n1"); !same(second, kept) {
			t.Error("the new one was not kept")
		}
		if _, other := shownFirst(t, s, "n2"); same(second, other) {
			t.Error("one for another name was taken")
		}
		s.files[server.MadeCertificate] = []byte("half of i")
		if _, after := shownFirst(t, s, "n1"); same(second, after) {
			t.Error("half a certificate was taken")
		}
	})
}

// A clock that steps back over the beginning of a certificate does not leave the agent
// with one that nobody takes.
func TestOwnCertificateFromTheFuture(t *testing.T) {
	s := newStore()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(400 * 24 * time.Hour)
		shownFirst(t, s, "n1")
	})
	synctest.Test(t, func(t *testing.T) {
		if _, c := shownFirst(t, s, "n1"); time.Now().Before(c.Leaf.NotBefore) {
			t.Error("it does not hold yet")
		}
	})
}

func TestOwnCertificateThatCannotBeKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := errors.New("disk full")
		if _, err := (server.Certificate{Store: &store{full: full}, Names: []string{"n"}}).TLS(false, quiet); !errors.Is(err, full) {
			t.Errorf("at the start: %v", err)
		}
		s := newStore()
		cfg, first := shownFirst(t, s, "n")
		s.full = full
		time.Sleep(364 * 24 * time.Hour)
		if same(first, show(t, cfg)) {
			t.Error("a full disk keeps the old one, which ends")
		}
	})
}

// pair writes a certificate and its key, each as a file.
func pair(t *testing.T, dir, name string) (cert, key []byte) {
	t.Helper()
	s := newStore()
	shownFirst(t, s, name)
	both := s.files[server.MadeCertificate]
	cut := bytes.Index(both, []byte("-----BEGIN PRIVATE"))
	cert, key = both[:cut], both[cut:]
	put(t, dir, "crt", cert)
	put(t, dir, "key", key)
	return cert, key
}

func put(t *testing.T, dir, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCertificateOfFilesIsReadAgain(t *testing.T) {
	dir := t.TempDir()
	pair(t, dir, "a")
	cfg, err := server.Certificate{File: filepath.Join(dir, "crt"), Key: filepath.Join(dir, "key")}.TLS(false, quiet)
	if err != nil {
		t.Fatal(err)
	}
	named := func(want string) {
		t.Helper()
		if got := show(t, cfg).Leaf.Subject.CommonName; got != want {
			t.Errorf("shows %s, want %s", got, want)
		}
	}
	named("a")
	_, key := pair(t, dir, "b")
	named("b")
	put(t, dir, "key", []byte("half"))
	named("b")
	put(t, dir, "key", key)
	cert, key := pair(t, t.TempDir(), "c")
	put(t, dir, "crt", cert)
	named("b")
	put(t, dir, "key", key)
	named("c")
	if err := os.Remove(filepath.Join(dir, "key")); err != nil {
		t.Fatal(err)
	}
	named("c")
}

func TestCertificateOfFilesThatAreWrong(t *testing.T) {
	dir := t.TempDir()
	pair(t, dir, "a")
	put(t, dir, "key", []byte("half"))
	for name, c := range map[string]server.Certificate{
		"no such file":    {File: filepath.Join(dir, "none"), Key: filepath.Join(dir, "key")},
		"not its own key": {File: filepath.Join(dir, "crt"), Key: filepath.Join(dir, "key")},
	} {
		if _, err := c.TLS(false, quiet); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}
