package server

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/podkeeper/podkeeper/server/kubeletapi"
)

// ReadOnlyGroup is the group (organisation) of client certificates of the read-only
// role.
const ReadOnlyGroup = "podkeeper:read-only"

// token is one line of a token file. The token itself is nowhere.
type token struct {
	hash   [sha256.Size]byte
	name   string
	access kubeletapi.Access
}

// parseTokens reads a token file: a line each is
//
//	sha256:<64 hex digits of the token's SHA-256> <name> full|read-only
//
// and what is empty or begins with # is skipped. Lines that are wrong are left out and
// make up the error, which repeats nothing of them but their numbers.
func parseTokens(data []byte) ([]token, error) {
	var list []token
	var errs []error
	number := 0
	for line := range bytes.Lines(data) {
		number++
		text := strings.TrimSpace(string(line))
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		t, ok := parseToken(strings.Fields(text))
		if !ok {
			errs = append(errs, fmt.Errorf("line %d: want \"sha256:HEX NAME full\" or \"… read-only\"", number))
			continue
		}
		list = append(list, t)
	}
	return list, errors.Join(errs...)
}

func parseToken(fields []string) (t token, ok bool) {
	if len(fields) != 3 {
		return t, false
	}
	digits, ok := strings.CutPrefix(fields[0], "sha256:")
	hash, err := hex.DecodeString(digits)
	if !ok || err != nil || len(hash) != len(t.hash) {
		return t, false
	}
	copy(t.hash[:], hash)
	t.name = fields[1]
	switch fields[2] {
	case "full":
		t.access = kubeletapi.Full
	case "read-only":
		t.access = kubeletapi.ReadOnly
	default:
		return t, false
	}
	return t, true
}

// accessOfToken returns what the bearer of a token may do; zero is nobody. How long it
// takes says nothing of which tokens there are. Of a token that stands there twice the
// lesser access counts.
func accessOfToken(list []token, secret string) kubeletapi.Access {
	hash := sha256.Sum256([]byte(secret))
	access := kubeletapi.Access(0)
	for _, t := range list {
		if subtle.ConstantTimeCompare(t.hash[:], hash[:]) == 1 && (access == 0 || t.access < access) {
			access = t.access
		}
	}
	return access
}
