package probe

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// transport returns one that asks no proxy and keeps no connection. With http2
// it speaks that only, in the clear too; else HTTP/1, and with TLS what the server
// prefers.
func transport(http2 bool) *http.Transport {
	var protocols http.Protocols
	protocols.SetHTTP1(!http2)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(http2)
	return &http.Transport{
		Protocols:          &protocols,
		DisableKeepAlives:  true,
		DisableCompression: true,
		// Whether a pod answers is asked, not who it is: its certificate is rarely for
		// its IP.
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}
}

func (c *Checker) httpGet(ctx context.Context, check Check) Result {
	code, err := c.get(ctx, check, userAgent)
	// The body is not shown: nobody knows what is in it.
	switch {
	case err != nil:
		return failed(err.Error())
	case code < http.StatusOK || code >= http.StatusBadRequest:
		return failed(fmt.Sprintf("HTTP probe failed with statuscode: %d", code))
	case code >= http.StatusMultipleChoices:
		return Result{Outcome: Success, Warning: true, Reason: "Probe terminated redirects"}
	default:
		return Result{Outcome: Success}
	}
}

// Get makes the request of a hook, and returns the status of the answer. A server
// that is asked by TLS and has none is asked without it.
func (c *Checker) Get(ctx context.Context, check Check) (int, error) {
	code, err := c.get(ctx, check, hookAgent)
	if errors.Is(err, http.ErrSchemeMismatch) {
		plain := *check.Handler.HTTPGet
		plain.Scheme = v1.URISchemeHTTP
		check.Handler.HTTPGet = &plain
		code, err = c.get(ctx, check, hookAgent)
	}
	return code, err
}

// get reads the answer of one request, as much of it as is read.
func (c *Checker) get(ctx context.Context, check Check, agent string) (int, error) {
	get := check.Handler.HTTPGet
	request, err := httpRequest(ctx, check, agent)
	if err != nil {
		return 0, err
	}
	client := http.Client{Transport: c.http, Timeout: check.Timeout, CheckRedirect: sameHost}
	if get.Protocol != nil && *get.Protocol == v1.HTTPProtocolHTTP2 {
		client.Transport = c.http2
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, io.LimitReader(response.Body, maxOutput))
	return response.StatusCode, err
}

// sameHost follows redirects that stay on the host; the answer that leads away
// from it is the last.
func sameHost(next *http.Request, via []*http.Request) error {
	if next.URL.Hostname() != via[0].URL.Hostname() {
		return http.ErrUseLastResponse
	}
	if len(via) >= 10 {
		return errors.New("stopped after 10 redirects")
	}
	return nil
}

func httpRequest(ctx context.Context, check Check, agent string) (*http.Request, error) {
	get := check.Handler.HTTPGet
	host, err := address(check, get.Host, get.Port)
	if err != nil {
		return nil, err
	}
	// The path may have a query. One that is no URL is sent as it is.
	target, err := url.Parse(get.Path)
	if err != nil {
		target = &url.URL{Path: get.Path}
	}
	target.Scheme, target.Host = "http", host
	if get.Scheme != "" {
		target.Scheme = strings.ToLower(string(get.Scheme))
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return nil, err
	}
	header := request.Header
	for _, h := range get.HTTPHeaders {
		header.Add(h.Name, h.Value)
	}
	if _, given := header["User-Agent"]; !given {
		header.Set("User-Agent", agent)
	}
	switch accept, given := header["Accept"]; {
	case !given:
		header.Set("Accept", "*/*")
	case accept[0] == "":
		header.Del("Accept")
	}
	if name := header.Get("Host"); name != "" {
		request.Host = name
	}
	return request, nil
}
