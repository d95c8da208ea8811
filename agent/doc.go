// Package agent wires the agent together: what is built, run and joined. It is
// the only place that names concrete adapters; everything that decides is below
// it and knows none of them.
//
//	sources ─► set ─► reconcile.Loop ─► runtime, volumes, log links, root dir
//	                      │
//	                      └─► snapshot ─► server (socket), systemd, gc
//
// [Run] keeps pods until its context ends, and leaves them running. [Once],
// [Look] and [DeleteAll] are the same parts with another set or another end.
package agent
