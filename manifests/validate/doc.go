// Package validate judges a pod as the Kubernetes API server judges one that
// is created: the same fields, the same kinds of error, in our words.
//
// It takes a pod after package defaults has filled it in. It changes nothing,
// looks at nothing outside the pod, and knows nothing of files and positions.
// The rules that a kubelet adds for static pods (no ConfigMaps, no service
// account) are not rules here, and neither is what this agent cannot do: that
// is a verdict of package fields.
package validate
