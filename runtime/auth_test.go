package runtime_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/podkeeper/podkeeper/runtime"
)

// C104: credentials do not show, however somebody prints them.
func TestAuthHidesItself(t *testing.T) {
	auth := runtime.Auth{Username: "anna", Password: "S3CR3T", IdentityToken: "T0K3N", RegistryToken: "B3AR3R", Server: "r.example"}
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "auth", auth, "list", []runtime.Auth{auth})
	encoded, err := json.Marshal(map[string]any{"auth": auth, "at": &auth})
	if err != nil {
		t.Fatal(err)
	}
	said := []string{log.String(), string(encoded)}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x"} {
		said = append(said, fmt.Sprintf(verb, auth), fmt.Sprintf(verb, &auth), fmt.Sprintf(verb, []runtime.Auth{auth}), fmt.Sprintf(verb, struct{ A runtime.Auth }{auth}))
	}
	for _, text := range said {
		for _, secret := range []string{auth.Username, auth.Password, auth.IdentityToken, auth.RegistryToken, fmt.Sprintf("%x", auth.Password)} {
			if strings.Contains(text, secret) {
				t.Errorf("%s shows in %q", secret, text)
			}
		}
	}
}
