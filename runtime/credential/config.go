package credential

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/podkeeper/podkeeper/runtime"
)

// config is a docker configuration, as far as it is about logins.
type config struct {
	entries []entry
	// store is the credential helper for all registries, helpers those for some, by
	// the registry; both without docker-credential- before the name.
	store   string
	helpers map[string]string
}

// entry holds for what place covers.
type entry struct {
	place place
	auth  runtime.Auth
}

// login is an entry as the file has it.
type login struct {
	Username      string `json:"username"`
	Password      string `json:"password"`
	Auth          string `json:"auth"` // base64 of name:password
	IdentityToken string `json:"identitytoken"`
	RegistryToken string `json:"registrytoken"`
}

// errSyntax is all that is said of a text that is not what it should be: the
// parser's own words could repeat a part of it.
var errSyntax = errors.New("it is not the JSON of a docker configuration")

// parse reads a config.json.
func parse(data []byte) (config, error) {
	var file struct {
		Auths       map[string]login  `json:"auths"`
		CredsStore  string            `json:"credsStore"`
		CredHelpers map[string]string `json:"credHelpers"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return config{}, errSyntax
	}
	entries, err := read(file.Auths)
	return config{entries: entries, store: file.CredsStore, helpers: file.CredHelpers}, err
}

// parseOld reads a .dockercfg, which has nothing but the entries.
func parseOld(data []byte) (config, error) {
	var logins map[string]login
	if err := json.Unmarshal(data, &logins); err != nil {
		return config{}, errSyntax
	}
	entries, err := read(logins)
	return config{entries: entries}, err
}

// read returns the entries that can be used; an error names those that cannot.
func read(logins map[string]login) ([]entry, error) {
	var entries []entry
	var errs []error
	for _, server := range slices.Sorted(maps.Keys(logins)) {
		l := logins[server]
		if l == (login{}) {
			continue // a credential helper has it
		}
		place, err := parsePlace(server)
		if err == nil && l.Auth != "" {
			l.Username, l.Password, err = decode(l.Auth)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("entry %q: %w", server, err))
			continue
		}
		entries = append(entries, entry{place, runtime.Auth{
			Username: l.Username, Password: l.Password,
			IdentityToken: l.IdentityToken, RegistryToken: l.RegistryToken, Server: server,
		}})
	}
	return entries, errors.Join(errs...)
}

// decode reads name:password in base64, with or without padding.
func decode(auth string) (username, password string, err error) {
	text, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(auth, "="))
	username, password, colon := strings.Cut(string(text), ":")
	if err != nil || !colon || username == "" {
		return "", "", errors.New("auth is not name:password in base64")
	}
	return username, strings.TrimRight(password, "\x00"), nil
}
