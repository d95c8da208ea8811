package credential

import (
	"cmp"
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/distribution/reference"

	"github.com/podkeeper/podkeeper/runtime"
)

// place is a registry, or what lies below a path in it. Each part of the host
// between dots may have wildcards.
type place struct{ host, port, path string }

// hub is what references call the registry of Docker, which has other names too.
const hub = "docker.io"

func parsePlace(text string) (place, error) {
	// It is no URL: a wildcard may be what begins a query in one.
	if _, rest, ok := strings.Cut(text, "://"); ok {
		text = rest
	}
	host, path, _ := strings.Cut(text, "/")
	port := ""
	if i := strings.LastIndexByte(host, ':'); i > strings.LastIndexByte(host, ']') {
		host, port = host[:i], host[i+1:]
	}
	if host == "" {
		return place{}, errors.New("it names no registry")
	}
	p := place{host: strings.ToLower(host), port: port, path: strings.Trim(path, "/")}
	// The version of the registry's API says nothing of where an image is.
	for _, api := range []string{"v1", "v2"} {
		if rest, ok := strings.CutPrefix(p.path+"/", api+"/"); ok {
			p.path = strings.TrimSuffix(rest, "/")
			break
		}
	}
	switch p.host {
	case "index.docker.io", "registry-1.docker.io", "registry.docker.io":
		p.host = hub
	}
	return p, nil
}

// covers reports whether an image with that reference lies there.
func (p place) covers(image reference.Named) bool {
	at, err := parsePlace(reference.Domain(image))
	if err != nil || p.port != at.port {
		return false
	}
	pattern, parts := strings.Split(p.host, "."), strings.Split(at.host, ".")
	if len(pattern) != len(parts) {
		return false
	}
	if strings.HasPrefix(at.host, "[") { // IPv6; no set of characters
		return p.host == at.host && p.holds(image)
	}
	for i := range pattern {
		if ok, err := path.Match(pattern[i], parts[i]); err != nil || !ok {
			return false
		}
	}
	return p.holds(image)
}

func (p place) holds(image reference.Named) bool {
	return p.path == "" || strings.HasPrefix(reference.Path(image)+"/", p.path+"/")
}

// best returns the logins of all entries that cover an image, the longest path
// and then the plainest host first, else in their order.
func best(configs []config, image reference.Named) []runtime.Auth {
	var covering []entry
	for _, c := range configs {
		for _, e := range c.entries {
			if e.place.covers(image) {
				covering = append(covering, e)
			}
		}
	}
	slices.SortStableFunc(covering, func(a, b entry) int {
		return cmp.Or(cmp.Compare(len(b.place.path), len(a.place.path)), cmp.Compare(wildcards(a.place.host), wildcards(b.place.host)))
	})
	var logins []runtime.Auth
	for _, e := range covering {
		logins = append(logins, e.auth)
	}
	return logins
}

func wildcards(host string) int {
	return strings.Count(host, "*") + strings.Count(host, "?") + strings.Count(host, "[")
}
