// Package runtimetest holds the contract of package runtime as tests.
//
// [Run] runs them on one implementation, which an [Env] describes: the runtime
// under test, a second one with another root dir on the same engine, an image
// and commands with known behaviour, and [Somebody], who does to the engine
// what people do with its command line. The fake runs the suite always, an
// adapter where its engine answers; what holds on both is what the rest of the
// project may rely on.
//
// It asks for nothing that only one of them has: no image store, no log files,
// no host paths. Tests run in parallel, each on an Env and a root dir of its
// own; none takes longer than a few seconds on a real engine.
package runtimetest
