// Package probe finds out whether containers have started, live and are ready,
// as their startup, liveness and readiness probes say.
//
//	Update (targets of one group) ──► Run ──► []Report (outcomes that changed, failures)
//	                                   │ ▲
//	                             Check ▼ │ Result
//	                                 Checker: exec, HTTP, TCP, gRPC
//
// [Run] is one goroutine that owns all state: a heap of what is due when, and the
// checks under way. A check is a goroutine for as long as it takes; there is none
// for a probe that waits. A check that hangs counts against the bound only for a
// moment, so the others do not wait for it (law 7).
//
// When a probe is due: its ticks come each period from the container's start and
// its initial delay on, at an offset that follows from the container's id. So the
// probes of containers that start together spread out, and an agent that starts
// again goes on at the same beat. Before its first success a startup or readiness
// probe is also tried soon after the start and at growing distances; such a try
// can succeed, but its failure counts for nothing. So a container that is ready
// soon is known to be, whatever the period. Liveness and readiness wait for the
// startup probe, and go on at once when it has succeeded.
//
// What a probe has come to is an [Outcome] that changes only when enough checks
// in a row agree. Readiness begins as failure, liveness as success. A startup or
// liveness probe that has failed is not checked again: the container is to be
// replaced by one with another id. All time is that of the monotonic clock.
//
// The package knows nothing of pods, plans and engines.
package probe
