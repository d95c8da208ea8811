package dashboard

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
)

// keyHeader has the half of the session that is not in the cookie.
const keyHeader = "X-Podkeeper-Key"

// hosts returns what a Host header may say of a page that is served there. Any
// other name was made to lead here by somebody else.
func hosts(at netip.AddrPort) []string {
	names := []string{at.Addr().String(), "127.0.0.1", "::1", "localhost"}
	var list []string
	for _, name := range names {
		list = append(list, net.JoinHostPort(name, strconv.Itoa(int(at.Port()))))
	}
	if at.Port() == 80 { // which browsers leave out
		list = append(list, at.Addr().String(), "127.0.0.1", "[::1]", "localhost")
	}
	return list
}

// strange says why a request is not from our own page, or "".
func strange(r *http.Request, hosts []string) (status int, why string) {
	if !slices.Contains(hosts, r.Host) {
		return http.StatusMisdirectedRequest, "this address is not known by that name"
	}
	if origin := r.Header.Get("Origin"); origin != "" && origin != "http://"+r.Host {
		return http.StatusForbidden, "asked for by a page of another origin"
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return 0, ""
	}
	// A link to the page may stand anywhere: what answers holds nothing, and cannot
	// be framed.
	if r.Method == http.MethodGet && r.URL.Path == "/" && r.Header.Get("Sec-Fetch-Dest") == "document" {
		return 0, ""
	}
	return http.StatusForbidden, "asked for by a page of another origin"
}

// policy lets the page load what is served beside it, and nothing else: no script
// or style in the page's own text, no other host, no frame around it.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// protect sets what every answer has.
func protect(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}
