// Package fake is a container engine in memory: a model, not a recorder.
//
// An [Engine] is the machine's engine. It lives on while agents come and go,
// holds containers of ours and of others, and does to them what Docker does:
// names are unique, a second sandbox on a host port fails to start and stays
// created, a container whose sandbox was restarted runs on in a network that is
// gone. A [Client] is one agent's connection; fencing it is the agent's death.
//
// What a call finds and does is decided at one instant, its effect. A [Fate]
// says when that is and what goes wrong, by hashing the seed, the verb, the
// object and how many such calls came before; it never draws from a stream that
// several goroutines share. Instants are unique, so that the order of all
// effects, and with it the trace, follows from the seed alone, whatever the
// order in which goroutines run. This needs virtual time (testing/synctest);
// with [Immediate] calls take no time and nothing fails, in any kind of time.
//
// A container's process is a [Program], which the engine is told or reads from
// the command ([ParseProgram]).
//
// It refuses to judge: what an agent may do is the business of the tests that
// use it, which see every change through Config.Observe. Only an attempt to
// touch a container that is not the client's is kept, in Violations, since a
// contract that is kept leaves no other trace of it.
package fake
