// Package sim is the simulation: the whole agent, from sources to loop, on a
// fake engine, file tree, web server and root dir, in virtual time.
//
// It has no code but tests. A seed gives a scenario (edits, torn writes, broken
// files, folders that vanish, ConfigMaps that come, change and go, init containers,
// sidecars, probes and hooks that work or fail, requests of more CPU and memory than
// there is, pressure of memory and disk that comes and goes, shutdowns of the machine
// that come to their end or are called off, engine restarts, calls that hang, fail or
// lose their reply, people with the engine's command line, clock jumps, crashes of the
// agent at every boundary) and the order of all effects; so a seed that
// fails fails again, byte for byte:
//
//	go test ./agent/sim -run TestSeeds -seed 1234 -v
//
// While it runs, every change of a container is held against the laws of
// ARCHITECTURE.md; each invariant names its law. When the faults stop, the node
// must reach exactly what the sources say, and then be still. That each
// invariant can fail is shown by TestPlantedBugs: parts of the agent that lie,
// each caught by the invariant that it breaks.
//
// It refuses to know how the agent works. What is checked is what the engine,
// the root dir and the sources show, never a state inside the agent.
package sim
