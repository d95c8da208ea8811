// Package server is the agent's face to people and programs on its machine.
//
// So far it is the local socket of the command line: HTTP over a unix socket
// that only its owner can open, with one resource, the [State] of the whole
// agent, which a client may wait on to change. Commands render it; the server
// knows nothing about them, and nothing it answers changes anything.
package server
