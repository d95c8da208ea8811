// Package kubeletapi is the kubelet's HTTP API: one table of routes, who may use
// each, and the handlers whose answers are text or JSON.
//
// [Handler] is one face of it: the local socket, the secure port and the read-only
// port serve the same routes, and differ in what [Who] says of a caller. It knows
// nothing of the loop or the engine; what it answers from are the functions of
// [Answers], and a route whose function is nil is not there.
//
// To add a route: a field of [Answers], a handler func(w, r) error in a file of its
// own, a line in routes, and a row in the table test.
package kubeletapi
