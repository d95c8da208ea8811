package sources

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/textproto"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/hashicorp/go-retryablehttp"
	"sigs.k8s.io/yaml"
)

const (
	maxRetries   = 2 // of one fetch, all within fetchTimeout
	maxRedirects = 10
)

// answer is what a fetch brought: an error, "as before", or a body.
type answer struct {
	err        error // free of secrets
	unchanged  bool
	body       []byte
	validators validators
}

// validators let a server say that nothing changed.
type validators struct{ etag, modified string }

// getter asks one URL.
type getter struct {
	url     *url.URL
	header  http.Header
	client  *retryablehttp.Client
	secrets *strings.Replacer
}

func newGetter(u *url.URL, cfg HTTPConfig) (*getter, error) {
	header := http.Header{}
	for name, values := range cfg.Header {
		if name == "" || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' || r == ':' }) {
			return nil, errors.New("a header has an invalid name")
		}
		for _, v := range values {
			if strings.ContainsFunc(v, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
				return nil, fmt.Errorf("header %s has an invalid value", name)
			}
			header.Add(name, v)
		}
	}
	transport := cfg.Transport
	if transport == nil {
		t, err := newTransport(cfg)
		if err != nil {
			return nil, err
		}
		transport = t
	}
	g := &getter{url: u, header: header, secrets: hide(u, header)}
	g.client = retryablehttp.NewClient()
	g.client.Logger = nil // it would print whole URLs
	g.client.HTTPClient = &http.Client{Transport: transport, CheckRedirect: g.redirect}
	g.client.CheckRetry = retry
	g.client.RetryMax = maxRetries
	g.client.RetryWaitMin, g.client.RetryWaitMax = 200*time.Millisecond, time.Second
	g.client.Backoff = backoff
	g.client.ErrorHandler = retryablehttp.PassthroughErrorHandler
	return g, nil
}

var errRedirects = fmt.Errorf("more than %d redirects", maxRedirects)

func retry(ctx context.Context, resp *http.Response, err error) (bool, error) {
	if errors.Is(err, errRedirects) {
		return false, nil
	}
	return retryablehttp.DefaultRetryPolicy(ctx, resp, err)
}

// backoff doubles the wait. What a server asks for with Retry-After is not
// heeded within one fetch: the next period is soon enough.
func backoff(least, most time.Duration, attempt int, _ *http.Response) time.Duration {
	return min(least<<attempt, most)
}

func newTransport(cfg HTTPConfig) (*http.Transport, error) {
	tlsConfig := &tls.Config{MinVersion: tls.VersionTLS12}
	if cfg.CAFile != "" {
		pem, err := os.ReadFile(cfg.CAFile)
		if err != nil {
			return nil, fmt.Errorf("read CA: %w", err)
		}
		tlsConfig.RootCAs = x509.NewCertPool()
		if !tlsConfig.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("read CA: no certificate in %s", cfg.CAFile)
		}
	}
	if (cfg.CertFile == "") != (cfg.KeyFile == "") {
		return nil, errors.New("a client certificate needs both its file and that of its key")
	}
	if cfg.CertFile != "" {
		load := func() (*tls.Certificate, error) {
			cert, err := tls.LoadX509KeyPair(cfg.CertFile, cfg.KeyFile)
			if err != nil {
				return nil, fmt.Errorf("read client certificate: %w", err)
			}
			return &cert, nil
		}
		if _, err := load(); err != nil {
			return nil, err
		}
		tlsConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return load() }
	}
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: fetchTimeout}).DialContext,
		TLSClientConfig:       tlsConfig,
		ForceAttemptHTTP2:     true,
		MaxIdleConnsPerHost:   1,
		IdleConnTimeout:       90 * time.Second,
		TLSHandshakeTimeout:   fetchTimeout,
		ResponseHeaderTimeout: fetchTimeout,
	}, nil
}

// hide returns what takes the configured secrets out of a text, should a library
// have put one in.
func hide(u *url.URL, header http.Header) *strings.Replacer {
	var pairs []string
	add := func(secret string) {
		if len(secret) > 3 {
			pairs = append(pairs, secret, "(hidden)")
		}
	}
	for _, values := range header {
		for _, v := range values {
			add(v)
		}
	}
	if u.User != nil {
		add(u.User.String())
		if password, ok := u.User.Password(); ok {
			add(password)
		}
	}
	add(u.RawQuery)
	for _, values := range u.Query() {
		for _, v := range values {
			add(v)
		}
	}
	return strings.NewReplacer(pairs...)
}

// close frees idle connections.
func (g *getter) close() { g.client.HTTPClient.CloseIdleConnections() }

// redirect keeps what is meant for the configured host from any other.
func (g *getter) redirect(req *http.Request, via []*http.Request) error {
	if len(via) >= maxRedirects {
		return errRedirects
	}
	req.Header.Del("Referer") // it has the query
	trusted := sameHost(g.url, req.URL)
	for _, r := range via {
		trusted = trusted && sameHost(g.url, r.URL)
	}
	if trusted {
		return nil
	}
	for name := range g.header {
		req.Header.Del(name)
	}
	return nil
}

// sameHost reports whether to is the host that from is, on the same port; the
// step up from plain HTTP to TLS on their usual ports is none to another host.
func sameHost(from, to *url.URL) bool {
	if !strings.EqualFold(from.Hostname(), to.Hostname()) {
		return false
	}
	if from.Scheme == to.Scheme {
		return port(from) == port(to)
	}
	return to.Scheme == "https" && port(from) == "80" && port(to) == "443"
}

func port(u *url.URL) string {
	switch p := u.Port(); {
	case p != "":
		return p
	case u.Scheme == "https":
		return "443"
	default:
		return "80"
	}
}

// fetch asks once, with a few quick retries.
func (g *getter) fetch(ctx context.Context, v validators) answer {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	a, err := g.try(ctx, v)
	if err == nil {
		return a
	}
	if ctx.Err() == context.DeadlineExceeded {
		return answer{err: fmt.Errorf("no whole answer within %s", fetchTimeout)}
	}
	// The error of the client names the URL, and that of a redirect another.
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	return answer{err: errors.New(g.secrets.Replace(err.Error()))}
}

func (g *getter) try(ctx context.Context, v validators) (a answer, err error) {
	req, err := retryablehttp.NewRequestWithContext(ctx, http.MethodGet, g.url.String(), nil)
	if err != nil {
		return answer{}, err
	}
	for name, values := range g.header {
		if textproto.CanonicalMIMEHeaderKey(name) == "Host" {
			req.Host = values[0]
			continue
		}
		req.Header[name] = values
	}
	if _, ok := g.header["User-Agent"]; !ok {
		req.Header.Set("User-Agent", "podkeeper")
	}
	if v.etag != "" {
		req.Header.Set("If-None-Match", v.etag)
	}
	if v.modified != "" {
		req.Header.Set("If-Modified-Since", v.modified)
	}
	resp, err := g.client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	switch {
	case resp.StatusCode == http.StatusNotModified && v != (validators{}):
		return answer{unchanged: true}, nil
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		return answer{}, fmt.Errorf("answered %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	}
	body, err := readAll(resp.Body, resp.ContentLength)
	if err != nil {
		return answer{}, fmt.Errorf("read body: %w", err)
	}
	return answer{body: body, validators: validators{etag: resp.Header.Get("Etag"), modified: resp.Header.Get("Last-Modified")}}, nil
}

// refusedBody says why a body cannot be a manifest, or "".
func refusedBody(body []byte) string {
	trimmed := bytes.TrimSpace(bytes.TrimPrefix(body, []byte("\ufeff")))
	switch {
	case len(body) == 0:
		return "the body is empty: only an explicit empty list removes pods"
	case len(trimmed) == 0:
		return "the body is blank: only an explicit empty list removes pods"
	case trimmed[0] == '<':
		return "the body is an HTML page"
	}
	return ""
}

// emptyList reports whether a body says in so many words that it lists nothing.
func emptyList(body []byte) bool {
	var list struct {
		Kind  string `json:"kind"`
		Items *[]any `json:"items"`
	}
	err := yaml.Unmarshal(body, &list)
	return err == nil && strings.HasSuffix(list.Kind, "List") && list.Items != nil && len(*list.Items) == 0
}
