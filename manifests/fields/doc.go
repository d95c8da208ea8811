// Package fields says of each field of a pod what becomes of it here.
//
// [Table] is the one place: it gives each leaf of v1.Pod a verdict (acted on,
// accepted without effect, refused), a class (what an edit of it restarts) and,
// where it is acted on, the tests that show it. A rule covers everything below its path, and the most specific one wins.
// [Check] holds a pod against the table. docs/fields.md is generated from it:
//
//	go test ./manifests/fields -run Doc -update
//
// A new field of Kubernetes gets neither verdict nor class by accident: a test
// finds the leaves by reflection and fails until the table knows each of them.
// The package refuses to validate: whether a value is a good one is not asked
// here, only whether the field does anything.
package fields

//go:generate go test . -run Doc -update
