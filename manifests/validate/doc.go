// Package validate judges a pod, or an object beside it, as the API server of
// Kubernetes 1.37 judges one that is created, with its features as they come: the
// same fields, the same kinds of error, in our words. Whoever knows kubectl's
// answers knows these.
//
// It takes an object after package defaults has filled it in. It changes nothing,
// looks at nothing outside the object, and knows nothing of files and positions:
// an error names a field, and package decode knows where that stands.
//
// The rules that a kubelet adds for static pods (no ConfigMaps, no service
// account) are not rules here, and neither is what this agent cannot do: that
// is a verdict of package fields. Nor are the warnings of the API server here.
//
// Each file is about one noun. A rule is a function from a value and its path to
// the errors, nil where there are none; rule.go has those that many share.
//
// The judge of this package is upstream itself: tools/oracle runs both on the
// same pods, and lists the few differences with their reasons. A number in
// quotes is a port of a probe here, and env has no names that a shell cannot
// read; some errors name their field more closely.
package validate
