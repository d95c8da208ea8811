// Package sourcestest is a file tree in memory for tests of what reads
// manifests: a model with inodes, links, times and hints, which can be made to
// lose hints, to fail, and to change in the midst of being read.
//
// It has no permissions, and starts no goroutine, so that it can be used in a
// testing/synctest bubble.
package sourcestest
