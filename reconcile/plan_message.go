package reconcile

import "strings"

// The kubelet's limits: of a message's end, of the log in its place, and of all
// messages of a pod together.
const (
	maxMessage      = 4096
	maxLogMessage   = 2048
	maxMessageLines = 80
	maxPodMessages  = 12 << 10
)

// foldMessages remembers what containers said of their ends, each its share of
// what a pod may say. It says more than why the agent stopped it.
func (g *generationPlan) foldMessages() {
	for name, was := range g.state.Containers {
		if was.Last == nil || was.Last.Read {
			continue
		}
		message := g.in.Learnt[was.Last.ID].Message
		if message == nil {
			continue
		}
		said := *message
		last := *was.Last // of a state that others read
		last.Read = true
		if share := maxPodMessages / max(1, len(g.members)); len(said) > share {
			said = said[:share]
		}
		if said != "" {
			last.Message = strings.ToValidUTF8(said, "\uFFFD")
		}
		was.Last = &last
		g.state.Containers[name] = was
	}
}

// readMessages looks at what containers said that have ended.
func (g *generationPlan) readMessages() {
	for _, c := range g.observed {
		last := g.state.container(c.Name).Last
		if c.IsSandbox() || last == nil || last.ID != c.ID || last.Read {
			continue
		}
		step := Step{Verb: ReadMessage, Container: c.Name, Attempt: c.Attempt, ID: c.ID}
		if f, failed := g.in.Failures[step.failureKey()]; failed && g.in.Now.Before(f.Retry) {
			g.wakeAt(f.Retry)
			continue
		}
		g.add(step)
	}
}
