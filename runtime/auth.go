package runtime

import "log/slog"

// Auth is how to log in to a registry: with a name and password, or with a token
// that a login gave. However it is printed, it shows none of them.
type Auth struct {
	Username, Password string
	// IdentityToken is exchanged for a registry token, RegistryToken is sent as it is.
	IdentityToken, RegistryToken string
	// Server is the registry's address as it stands beside the credentials.
	Server string
}

const hidden = "[credentials]"

// String hides the credentials.
func (Auth) String() string { return hidden }

// GoString hides the credentials.
func (Auth) GoString() string { return hidden }

// LogValue hides the credentials.
func (Auth) LogValue() slog.Value { return slog.StringValue(hidden) }

// MarshalJSON hides the credentials.
func (Auth) MarshalJSON() ([]byte, error) { return []byte(`"` + hidden + `"`), nil }
