// Package runtime is the contract with a container engine: the verbs, the
// shapes in which the world is observed, the errors that callers tell apart,
// and the schema of the labels by which the agent knows its containers again.
//
// It decides nothing. Adapters (runtime/docker) translate; runtime/fake is a
// model of an engine; runtime/runtimetest is the suite that both must pass.
//
// A pod is one sandbox container, which holds the namespaces, and the
// containers that join it. Both are a [Container] here, since an engine lists,
// inspects, stops and removes them alike; the sandbox bears the name
// [SandboxName].
//
// Every verb is idempotent in the sense of law 4: Ensure finds it there, Stop
// and Remove find it gone. A verb never touches a container that is not ours
// (law 6): [Owned] is the test, and each adapter applies it before it acts.
package runtime
