// Package sources brings desired pods in, and the objects beside them: from
// folders and single files, and from URLs, merged into one [pod.Set].
//
//	File ──┐
//	File ──┼─ Supply ─► Run (Merge) ─► pod.Set
//	HTTP ──┘
//
// A source tells its whole state each time, never a difference: what it has to
// say of itself, and every pod that it supplies. So a supply that was missed
// costs nothing, and the newest one is all that a reader needs.
//
// Law 1 is held here, per origin (one file, one URL): good documents apply, and
// while an origin has any error, nothing that it supplied before goes away. The
// last good documents lie in a [Store], from which a broken file, a folder that
// is missing at start and a URL that does not answer are supplied after a
// restart of the agent. That is the one place where the values of Secrets come to
// a disk; without a Store none does. An immutable object that changes counts as
// broken, so that it stays as it was until its origin has it no more.
//
// A hint (fsnotify) only brings the next look forward. The look that comes
// every period is the truth, and all there is where hints cannot be had.
//
// The package decodes nothing itself (package manifests does), picks no winner
// among claims ([pod.Set.Resolve] does), and removes nothing.
package sources
