// Package docker speaks to a Docker Engine, 20.10 or newer, on this machine.
//
// It translates and decides nothing: a spec becomes a request (request.go,
// pure), an inspect becomes a [runtime.Container] (observe.go, pure), an
// engine's error becomes one of the runtime's classes (errors.go). The engine's
// texts are passed on to people and never read.
//
// What it refuses to do: speak to an engine on another machine, touch a
// container that is not ours (law 6), create missing paths of the host, and
// wait for ever: each call has a deadline of its own, so that one hung
// container delays nobody but its pod.
//
// An engine call costs milliseconds, so a verb makes those that it is made of
// and no other: EnsureSandbox is create, start and inspect, EnsureContainer is
// create, Start is start. What went wrong is looked into after it went wrong.
package docker
