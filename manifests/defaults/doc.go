// Package defaults fills in what a manifest leaves open, as the Kubernetes API
// server does when an object is created: protocols, pull policies, probe numbers,
// volume modes, requests from limits, the type of a Secret.
//
// It only ever adds what is absent (and, as Kubernetes does, rounds quantities
// up to a thousandth); it judges nothing, logs nothing and looks nothing up.
// What a static pod gets from the node it runs on - the name's suffix, the node
// name, tolerations - is not set here. Package validate expects its result.
package defaults
