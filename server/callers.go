package server

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/podkeeper/podkeeper/server/kubeletapi"
)

// Callers says who may come to the secure port. Its zero value is nobody.
type Callers struct {
	// ClientCA is a file of the certificates that client certificates are checked with,
	// Tokens one of bearer tokens' hashes (see parseTokens for its lines); "" is none.
	// Both are read again when they change.
	ClientCA, Tokens string
	// Anonymous lets those without credentials who come from the machine itself do what
	// the read-only port lets everybody do.
	Anonymous bool
}

// None reports whether nobody has credentials.
func (c Callers) None() bool { return c.ClientCA == "" && c.Tokens == "" }

// Who reads the files and returns what tells callers apart. Its error names the file
// that is wrong. Later, what is wrong with a file is logged, and what cannot be read
// lets nobody in.
func (c Callers) Who(log *slog.Logger) (kubeletapi.Who, error) {
	g := &guard{anonymous: c.Anonymous, log: log}
	if c.ClientCA != "" {
		g.cas = &watched[*x509.CertPool]{paths: []string{c.ClientCA}, parse: parseCAs}
		if _, _, err := g.cas.get(); err != nil {
			return nil, fmt.Errorf("client CA file %s: %w", c.ClientCA, err)
		}
	}
	if c.Tokens != "" {
		g.tokens = &watched[[]token]{paths: []string{c.Tokens}, parse: func(files [][]byte) ([]token, error) {
			info, err := os.Stat(c.Tokens)
			if err == nil && info.Mode().Perm()&0o002 != 0 {
				err = errors.New("every user can write it; chmod o-w")
			}
			if err != nil {
				return nil, err
			}
			return parseTokens(files[0])
		}}
		if _, _, err := g.tokens.get(); err != nil {
			return nil, fmt.Errorf("token file %s: %w", c.Tokens, withoutPath(err))
		}
	}
	return g.who, nil
}

// withoutPath leaves the path to who wraps the error.
func withoutPath(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}

func parseCAs(files [][]byte) (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(files[0]) {
		return pool, errors.New("no certificate in it")
	}
	return pool, nil
}

// guard tells callers of the secure port apart.
type guard struct {
	cas       *watched[*x509.CertPool] // nil takes no certificates
	tokens    *watched[[]token]        // nil takes no tokens
	anonymous bool
	log       *slog.Logger
}

// who takes the first credential that holds. One that does not is never anonymous.
func (g *guard) who(r *http.Request) (kubeletapi.Access, error) {
	tried := false
	if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 && g.cas != nil {
		tried = true
		if access := g.certificate(r.TLS.PeerCertificates); access != 0 {
			return access, nil
		}
	}
	if header := r.Header.Get("Authorization"); header != "" {
		tried = true
		if access := g.bearer(header); access != 0 {
			return access, nil
		}
	}
	if !tried && g.anonymous && fromHere(r) {
		return kubeletapi.ReadOnlyPort, nil
	}
	return 0, kubeletapi.Wrong(kubeletapi.ErrUnauthenticated, "Unauthorized")
}

// certificate is asked for each request: a connection may outlive its certificate.
func (g *guard) certificate(chain []*x509.Certificate) kubeletapi.Access {
	pool, changed, err := g.cas.get()
	if err != nil {
		if changed {
			g.log.Warn("client certificates cannot be checked; nobody comes in with one", "err", err)
		}
		return 0
	}
	others := x509.NewCertPool()
	for _, c := range chain[1:] {
		others.AddCert(c)
	}
	_, err = chain[0].Verify(x509.VerifyOptions{
		Roots: pool, Intermediates: others, CurrentTime: time.Now(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	switch {
	case err != nil:
		g.log.Debug("client certificate refused", "subject", chain[0].Subject.String(), "err", err)
		return 0
	case slices.Contains(chain[0].Subject.Organization, ReadOnlyGroup):
		return kubeletapi.ReadOnly
	default:
		return kubeletapi.Full
	}
}

func (g *guard) bearer(header string) kubeletapi.Access {
	scheme, secret, _ := strings.Cut(header, " ")
	secret = strings.TrimSpace(secret)
	if !strings.EqualFold(scheme, "Bearer") || secret == "" || g.tokens == nil {
		return 0
	}
	list, changed, err := g.tokens.get()
	if err != nil && changed {
		g.log.Warn("tokens are left out", "err", err)
	}
	return accessOfToken(list, secret)
}

// fromHere reports whether a request came over the loopback device.
func fromHere(r *http.Request) bool {
	remote, err := netip.ParseAddrPort(r.RemoteAddr)
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if err != nil || !ok {
		return false
	}
	at, err := netip.ParseAddrPort(local.String())
	return err == nil && remote.Addr().Unmap().IsLoopback() && at.Addr().Unmap().IsLoopback()
}
