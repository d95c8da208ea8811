// Package reconcile is the heart of the agent: it compares what each pod should
// be with what it is, and takes the next step towards it.
//
//	Input ── PlanPod (pure) ──► Plan: waves of Steps, what waits and why, when to
//	  ▲                          │     look again
//	  │                          ▼ first wave only
//	 state ◄── fold ◄─────── execute
//
// One goroutine, [Loop.Run], owns the state: desired pods, observed containers,
// what the root dir remembers, images, back-offs. Everything else reports to it.
// Whatever happens only marks pods as due; a due pod is planned from all that is
// known of it, and the first wave of its plan is handed to a goroutine. When that
// reports, the pod is due again. Nothing resumes a plan (law 3).
//
// Begin with step.go and input.go, the vocabulary of plans; then plan_holder.go,
// which version of a pod is wanted; plan.go, what goes for it; plan_generation.go,
// what is done about that one; and the situations in testdata/plan, each with the plan that follows.
// record.go says what is remembered, backoff.go and admit.go hold rules that are
// worth reading alone, status.go words it all as Kubernetes does.
//
// What a container is told is evaluated when it is made, and no plan holds it:
// env.go, downward.go, payload.go, hosts.go and dns.go, all pure, from the objects
// that references.go names. Where something is missing the plan says so.
//
// The package refuses to know about any engine, file format or network: it acts
// through runtime.Runtime and the three small interfaces of [Deps]. It never
// touches a container while the agent starts or stops (law 5), and removes
// nothing because something was not said (law 1).
package reconcile
