package sources_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/podkeeper/podkeeper/sources"
)

func TestHTTPOverTLS(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.TLS.PeerCertificates) == 0 {
			http.Error(w, "who are you", http.StatusForbidden)
			return
		}
		fmt.Fprint(w, "p x:1")
	}))
	server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	defer server.Close()

	dir := t.TempDir()
	// The test server's own certificate is its authority, and the client's too.
	pair := server.TLS.Certificates[0]
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]})
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	must(t, err)
	certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	must(t, os.WriteFile(certFile, cert, 0o600))
	must(t, os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}), 0o600))

	for name, test := range map[string]struct {
		edit func(*sources.HTTPConfig)
		want func(sources.Supply) bool
	}{
		"an unknown authority": {func(*sources.HTTPConfig) {}, func(s sources.Supply) bool {
			return strings.Contains(s.Source.Problem, "certificate")
		}},
		"no client certificate": {func(c *sources.HTTPConfig) { c.CAFile = certFile }, func(s sources.Supply) bool {
			return strings.Contains(s.Source.Problem, "403")
		}},
		"both": {func(c *sources.HTTPConfig) { c.CAFile, c.CertFile, c.KeyFile = certFile, certFile, keyFile }, supplies("p")},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := sources.HTTPConfig{URL: server.URL, Period: 100 * time.Millisecond, Parse: parse, Log: discard}
			test.edit(&cfg)
			src, err := sources.NewHTTP(cfg)
			must(t, err)
			out, _ := runReal(t, src)
			eventually(t, out, name, test.want)
		})
	}
	for name, cfg := range map[string]sources.HTTPConfig{
		"no CA file":              {CAFile: dir + "/none"},
		"a CA file without one":   {CAFile: keyFile},
		"a certificate alone":     {CertFile: certFile},
		"a certificate not there": {CertFile: dir + "/none", KeyFile: keyFile},
	} {
		cfg.URL, cfg.Parse, cfg.Log = server.URL, parse, discard
		if _, err := sources.NewHTTP(cfg); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}
