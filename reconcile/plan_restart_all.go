package reconcile

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/runtime"
)

// Restart is a restart of all containers of a pod in its sandbox, which the exit of
// one of them asked for. Volumes and addresses stay.
type Restart struct {
	// Container is the one that asked for it, ID its attempt.
	Container string `json:"container"`
	ID        string `json:"id"`
	ExitCode  int    `json:"exitCode"`
}

func (r Restart) message() string {
	return fmt.Sprintf("container %s exited with %d: all containers are restarted", r.Container, r.ExitCode)
}

// restartsAll reports whether a container may ask for a restart of all.
func restartsAll(c *v1.Container) bool {
	return slices.ContainsFunc(c.RestartPolicyRules, func(r v1.ContainerRestartRule) bool {
		return r.Action == v1.ContainerRestartRuleActionRestartAllContainers
	})
}

// beginRestart begins a restart of all containers where one ended that asks for it.
// From then on no attempt made before counts for what is to be done.
func (g *generationPlan) beginRestart(sandbox runtime.SandboxRef) {
	if g.in.frozen != (Waiting{}) {
		return
	}
	at := slices.IndexFunc(g.members, func(m member) bool { return g.asksForAll(m, sandbox) })
	g.judged()
	if at < 0 || g.plan.Finished {
		return
	}
	source := g.members[at].Name
	g.state.Restart = Restart{Container: source, ID: g.last(source).ID, ExitCode: g.last(source).ExitCode}
	for _, m := range g.members {
		next := g.nextAttempt(m.Name)
		if next == 0 {
			continue
		}
		was := g.state.container(m.Name)
		if g.done(m) {
			was.Level = 0 // it has done its work, as it is to do again
		}
		was.From = next
		g.state.Containers[m.Name] = was
	}
}

// judged remembers which exits have had their word: an edit of the rules is about
// those to come.
func (g *generationPlan) judged() {
	for _, m := range g.members {
		if last := g.last(m.Name); last != nil {
			was := g.state.container(m.Name)
			was.Judged = last.ID
			g.state.Containers[m.Name] = was
		}
	}
}

// asksForAll reports whether the last attempt of a container ended in a way for
// which all are to be restarted, and nobody has asked yet. How one ended that an
// edit stopped says nothing; nor, where the file is lost that would tell whether
// somebody has, where it would stop anything or others began since.
func (g *generationPlan) asksForAll(m member, sandbox runtime.SandboxRef) bool {
	last, was := g.last(m.Name), g.state.container(m.Name)
	if last == nil || last.ID == was.Judged || last.Sandbox != sandbox || was.Stopped.Edit && was.Stopped.ID == last.ID || len(g.hashChange(m.Name, was.Hash)) > 0 {
		return false
	}
	if g.record.State.Admitted.IsZero() && slices.ContainsFunc(g.observed, func(c runtime.Container) bool {
		return !c.IsSandbox() && (c.State == runtime.Running || c.Started.After(last.Finished))
	}) {
		return false
	}
	at := slices.IndexFunc(m.RestartPolicyRules, func(r v1.ContainerRestartRule) bool { return applies(r, last.ExitCode) })
	return at >= 0 && m.RestartPolicyRules[at].Action == v1.ContainerRestartRuleActionRestartAllContainers
}

// outlived reports whether a container is of before the last restart of all.
func (g *generationPlan) outlived(c runtime.Container) bool {
	return c.Attempt < g.state.container(c.Name).From
}

// stopForRestart ends a container as Kubernetes does then: soon, and without its
// preStop hook.
func (g *generationPlan) stopForRestart(c runtime.Container) {
	was := g.state.container(c.Name)
	was.Stopped = Stopped{ID: c.ID, Message: g.state.Restart.message(), Again: true}
	g.state.Containers[c.Name] = was
	g.add(Step{
		Verb: StopContainer, Container: c.Name, Attempt: c.Attempt, ID: c.ID,
		Grace: minGrace, Reason: RestartingAllContainers, Message: was.Stopped.Message,
	})
}

// restartHolds reports whether nothing starts yet: the restart is not written down,
// something is left to stop, or the back-off of the container that asked for it,
// which is everybody's, is not over. An edit of that container ends its back-off.
func (g *generationPlan) restartHolds() bool {
	restart := g.state.Restart
	if restart == (Restart{}) {
		return false
	}
	w, held := Waiting{RestartingAllContainers, restart.message()}, restart != g.record.State.Restart
	for _, m := range g.members {
		c, found := g.newest(m.Name)
		held = held || found && c.State == runtime.Running && g.outlived(c)
	}
	if c, found := g.newest(restart.Container); !held && found && c.ID == restart.ID && len(g.definitionChange(c)) == 0 {
		w, held = g.backOff(restart.Container, c)
	}
	if !held {
		return false
	}
	for _, m := range g.members {
		if !g.runs(m) {
			g.wait(m.Name, w)
		}
	}
	return true
}
