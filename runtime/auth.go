package runtime

import (
	"fmt"
	"io"
	"log/slog"
)

// Auth is how to log in to a registry: with a name and password, or with a token
// that a login gave. Whichever way one is printed, logged or encoded, it shows
// none of them.
type Auth struct {
	Username, Password string
	// IdentityToken is exchanged for a registry token, RegistryToken is sent as it is.
	IdentityToken, RegistryToken string
	// Server is the registry's address as it stands beside the credentials.
	Server string
}

const hiddenAuth = "(credentials)"

// Format hides the credentials, whatever the verb.
func (Auth) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, hiddenAuth) }

// LogValue hides the credentials.
func (Auth) LogValue() slog.Value { return slog.StringValue(hiddenAuth) }

// MarshalJSON hides the credentials.
func (Auth) MarshalJSON() ([]byte, error) { return []byte(`"` + hiddenAuth + `"`), nil }
