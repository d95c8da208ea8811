// Package stream carries what goes to and fro between a client and a process or a
// port in a pod: exec, attach and port-forward of the kubelet's API over SPDY/3.1 and
// WebSocket, and run, which has its answer in a body.
//
// Whom a request means has been found by then, and who may, too. What is done is a
// function of the caller's, so that nothing here knows of engines:
//
//	stream.Exec(w, r, cfg, func(ctx context.Context, command []string, s runtime.Streams) (int, error) {…})
//
// # Protocols
//
// The WebSocket protocols before v5 are served by k8s.io/cri-streaming. The others are
// served here, on k8s.io/streaming: v5.channel.k8s.io, in which input can end; SPDY, as
// what cri-streaming has of it keeps goroutines for clients that open more streams than
// they said, or go away meanwhile; and SPDY/3.1+portforward.k8s.io, which is SPDY within a
// WebSocket.
//
// # Ends
//
// A call returns when all that it started has ended. That a client went away is seen
// on its connection (conn.go), also while nothing is read of it, and ends what was done
// for it. The last words to a client are given a moment to arrive.
//
// The other side, for the local socket, is in client.go.
package stream
