// Package decode turns the bytes of a manifest into trees that know where each
// value stands, and such a tree into a Kubernetes object.
//
// [Documents] splits a file into its documents and reads each by itself, so
// that a syntax error in one leaves the others usable. YAML scalars mean what
// they mean to the kubelet (YAML 1.1 as sigs.k8s.io/yaml reads it: yes and on
// are booleans, 0755 is octal); a document that begins with { or [ is strict
// JSON. [Object] then holds a tree against a Go type and names everything that
// does not fit, not only the first thing, while it still fills in what fits: so
// the name of a broken pod can be read.
//
// It differs from the kubelet's reader where that one is surprising: an
// explicit key beats a merged one wherever it stands, and what follows the
// first document is read as well.
//
// The package refuses to quote values in its messages: a manifest holds
// secrets. It knows no kind of object, no defaults and no verdicts.
package decode
