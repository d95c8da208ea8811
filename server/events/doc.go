// Package events keeps what happened to pods and to the node as event objects of
// Kubernetes: the same thing said again is counted, not repeated, and what is old
// or too much is forgotten. Nothing of it is written to disk.
package events
