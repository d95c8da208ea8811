// Package oracle lets Kubernetes judge what manifests/defaults and
// manifests/validate decide: it runs the API server's own defaulting and
// validation beside ours, over the project's manifests, generated pods and objects,
// and reports where the two differ.
//
// It is a module of its own, so that k8s.io/kubernetes and its replace lines
// stay out of the agent's go.mod. Nothing imports it.
//
// What is compared: what a manifest decodes to, whether the pod is accepted, the
// multiset of (field, kind of error), and the defaulted object as JSON. Messages
// are ours and are not compared, and neither is the status. The differences that
// are meant are listed with their reasons, in differences.go and (of decoding)
// manifests_test.go; there is no other way to be different.
//
//	go test ./...                                  2,000 generated pods, a fifth of the sweep
//	go test -run Generated ./... -pods=100000      as many as you have time for
//	go test -run EachField ./... -every=1          the whole sweep: each value in each field
//	go test -run Generated ./... -seed=4711        one of them, with what differs
//	go test -fuzz FuzzManifest                     from bytes, guided by coverage
package oracle
