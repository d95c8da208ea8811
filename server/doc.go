// Package server is the agent's face to people and programs.
//
// [Serve] serves any handler until it is told to end, and leaves nothing behind. On the
// local socket, which only its owner or a group can open, [Handler] answers the command
// line: the [State] of the whole agent and what happened, both of which a client may wait
// on to change, what is done by hand, and the kubelet API. [Callers] and [Certificate]
// are the secure port's: who comes in, and what it shows of itself.
//
// Commands render what they get; the server knows nothing about them, nor of the loop.
package server
