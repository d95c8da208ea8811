package pod

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strconv"
)

// Value is one value of a ConfigMap or Secret. Whichever way one of a Secret is
// printed, logged or encoded, it says [Hidden]; only Reveal gives it away. It is
// never modified; the zero Value is the empty one of a ConfigMap.
type Value struct {
	// Behind a pointer: fmt asks no method for a verb that is not one of strings,
	// nor for a value in an unexported field.
	text   *string
	secret bool
}

// Hidden is what a secret value looks like.
const Hidden = "(hidden)"

var (
	_ fmt.Stringer   = Value{}
	_ fmt.GoStringer = Value{}
	_ slog.LogValuer = Value{}
	_ json.Marshaler = Value{}
)

// PlainValue returns a value that everybody may see.
func PlainValue(text string) Value { return Value{text: &text} }

// SecretValue returns a value that hides itself.
func SecretValue(text string) Value { return Value{text: &text, secret: true} }

// Secret reports whether the value hides itself, and so must not come near a
// disk.
func (v Value) Secret() bool { return v.secret }

// Reveal returns the bytes of the value, secret or not. Who calls it answers for
// where they go.
func (v Value) Reveal() string {
	if v.text == nil {
		return ""
	}
	return *v.text
}

// Equal reports whether both hold the same bytes, and are as secret.
func (v Value) Equal(o Value) bool { return v.secret == o.secret && v.Reveal() == o.Reveal() }

// String returns the value, or Hidden.
func (v Value) String() string {
	if v.secret {
		return Hidden
	}
	return v.Reveal()
}

// GoString is String in quotes.
func (v Value) GoString() string { return strconv.Quote(v.String()) }

// LogValue is String.
func (v Value) LogValue() slog.Value { return slog.StringValue(v.String()) }

// MarshalJSON is String as JSON. Nothing reads it back.
func (v Value) MarshalJSON() ([]byte, error) { return json.Marshal(v.String()) }
