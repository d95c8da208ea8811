package kubeletapi_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/podkeeper/podkeeper/server"
	"github.com/podkeeper/podkeeper/server/kubeletapi"
)

// authority signs client certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	if c, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return authority{c, key}
}

func (a authority) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
}

// client is a certificate of a group that ends then.
func (a authority) client(t *testing.T, until time.Time, use x509.ExtKeyUsage, groups ...string) *tls.Certificate {
	t.Helper()
	c := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "me", Organization: groups},
		NotBefore: until.Add(-24 * time.Hour), NotAfter: until,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{use},
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, c, a.cert, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// memory keeps a certificate.
type memory map[string][]byte

func (m memory) ReadFile(name string) ([]byte, error) {
	if data, ok := m[name]; ok {
		return data, nil
	}
	return nil, fs.ErrNotExist
}

func (m memory) WriteFile(name string, data []byte) error { m[name] = data; return nil }

func write(t *testing.T, dir, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// secure serves answers as the secure port does, on a port of the loopback device.
func secure(t *testing.T, a kubeletapi.Answers, callers server.Callers) (address string, roots *x509.CertPool) {
	t.Helper()
	who, err := callers.Who(quiet)
	if err != nil {
		t.Fatal(err)
	}
	store := memory{}
	cfg, err := server.Certificate{Store: store, Names: []string{"127.0.0.1"}}.TLS(callers.ClientCA != "", quiet)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- server.Serve(ctx, tls.NewListener(l, cfg), kubeletapi.Handler(a, kubeletapi.NewStreams(10), who, quiet), quiet)
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	roots = x509.NewCertPool()
	roots.AppendCertsFromPEM(store[server.MadeCertificate])
	return l.Addr().String(), roots
}

// Every route is for those only whose credentials are good for it, over real
// connections. What is said to nobody is always the same.
func TestRoutesByCredentials(t *testing.T) {
	dir := t.TempDir()
	ours, foreign := newAuthority(t), newAuthority(t)
	line := func(token, role string) string {
		return fmt.Sprintf("sha256:%x %s %s\n", sha256.Sum256([]byte(token)), role, role)
	}
	address, roots := secure(t, everything(), server.Callers{
		ClientCA: write(t, dir, "ca.pem", ours.pem()),
		Tokens:   write(t, dir, "tokens", []byte(line("reader", "read-only")+line("root", "full"))),
	})
	later, before := time.Now().Add(time.Hour), time.Now().Add(-time.Minute)
	const nobody = kubeletapi.Access(0)
	for name, c := range map[string]struct {
		token       string
		certificate *tls.Certificate
		access      kubeletapi.Access
	}{
		"no credentials":                 {"", nil, nobody},
		"a read-only token":              {"reader", nil, kubeletapi.ReadOnly},
		"a full token":                   {"root", nil, kubeletapi.Full},
		"a token that nobody has":        {"roo", nil, nobody},
		"the hash of a token":            {fmt.Sprintf("%x", sha256.Sum256([]byte("root"))), nil, nobody},
		"a certificate":                  {"", ours.client(t, later, x509.ExtKeyUsageClientAuth, "admins"), kubeletapi.Full},
		"a read-only certificate":        {"", ours.client(t, later, x509.ExtKeyUsageClientAuth, "x", server.ReadOnlyGroup), kubeletapi.ReadOnly},
		"one of another authority":       {"", foreign.client(t, later, x509.ExtKeyUsageClientAuth), nobody},
		"one that expired":               {"", ours.client(t, before, x509.ExtKeyUsageClientAuth), nobody},
		"one of a server":                {"", ours.client(t, later, x509.ExtKeyUsageServerAuth), nobody},
		"one that expired, with a token": {"reader", ours.client(t, before, x509.ExtKeyUsageClientAuth), kubeletapi.ReadOnly},
		"a good one, and a bad token":    {"x", ours.client(t, later, x509.ExtKeyUsageClientAuth), kubeletapi.Full},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := &tls.Config{RootCAs: roots}
			if c.certificate != nil {
				cfg.Certificates = []tls.Certificate{*c.certificate}
			}
			transport := &http.Transport{TLSClientConfig: cfg}
			defer transport.CloseIdleConnections()
			client := &http.Client{Transport: transport}
			for _, pattern := range kubeletapi.Patterns(everything()) {
				row := rows[pattern]
				method, path, _ := strings.Cut(pattern, " ")
				if row.path != "" {
					path = row.path
				}
				req, err := http.NewRequestWithContext(t.Context(), method, "https://"+address+path, nil)
				if err != nil {
					t.Fatal(err)
				}
				if c.token != "" {
					req.Header.Set("Authorization", "Bearer "+c.token)
				}
				resp, err := client.Do(req)
				if err != nil {
					t.Errorf("%s: %v", pattern, err)
					continue
				}
				body, _ := io.ReadAll(resp.Body)
				resp.Body.Close()
				switch code := resp.StatusCode; {
				case c.access == nobody && (code != http.StatusUnauthorized || string(body) != "Unauthorized\n"):
					t.Errorf("%s: %d %q, want 401", pattern, code, body)
				case c.access != nobody && (c.access < row.access) != (code == http.StatusForbidden) || code == http.StatusNotFound:
					t.Errorf("%s: %d %q, with %d of %d", pattern, code, body, c.access, row.access)
				case c.access != nobody && code == http.StatusUnauthorized:
					t.Errorf("%s: 401 for somebody who is known", pattern)
				}
			}
		})
	}
}

// TLS is 1.2 at least.
func TestOldTLSIsRefused(t *testing.T) {
	address, roots := secure(t, everything(), server.Callers{})
	for version, ok := range map[uint16]bool{tls.VersionTLS11: false, tls.VersionTLS12: true, tls.VersionTLS13: true} {
		conn, err := (&tls.Dialer{Config: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS10, MaxVersion: version}}).DialContext(t.Context(), "tcp", address)
		if (err == nil) != ok {
			t.Errorf("%s: %v", tls.VersionName(version), err)
		}
		if err == nil {
			conn.Close()
		}
	}
}

// descriptors returns how many are open.
func descriptors(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// Clients that vanish in the middle of an answer leave no descriptor behind, and their
// places to others, while the server goes on.
func TestClientsThatVanish(t *testing.T) {
	answers, tokens := bigFile(t), write(t, t.TempDir(), "tokens", fmt.Appendf(nil, "sha256:%x me full\n", sha256.Sum256([]byte("me"))))
	before := descriptors(t)
	t.Run("while it runs", func(t *testing.T) {
		address, roots := secure(t, answers, server.Callers{Tokens: tokens})
		idle := descriptors(t)
		for range 20 { // ten streams at a time
			var conns []net.Conn
			for range 10 {
				conn, err := net.Dial("tcp", address)
				if err != nil {
					t.Fatal(err)
				}
				secured := tls.Client(conn, &tls.Config{RootCAs: roots, ServerName: "127.0.0.1"})
				if _, err := io.WriteString(secured, "GET /logs/big HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer me\r\n\r\n"); err != nil {
					t.Fatal(err)
				}
				line := make([]byte, len("HTTP/1.1 200"))
				if _, err := io.ReadFull(secured, line); err != nil || string(line) != "HTTP/1.1 200" {
					t.Fatalf("%s, %v", line, err)
				}
				conns = append(conns, conn)
			}
			for _, conn := range conns {
				if err := conn.(*net.TCPConn).SetLinger(0); err != nil { // as one whose machine is gone
					t.Error(err)
				}
				conn.Close()
			}
			for deadline := time.Now().Add(time.Minute); descriptors(t) > idle; <-time.After(time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatalf("%d descriptors are open, %d were before", descriptors(t), idle)
				}
			}
		}
	})
	if after := descriptors(t); after > before {
		t.Errorf("%d descriptors are open, %d were before", after, before)
	}
}
