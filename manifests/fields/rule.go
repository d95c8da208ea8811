package fields

// Verdict is what becomes of a field.
type Verdict string

// The verdicts.
const (
	// Acted: what it asks for is done.
	Acted Verdict = "acted on"
	// Accepted: it has no effect here, for a reason that is shown.
	Accepted Verdict = "accepted"
	// Refused: the pod is not run while it asks for something.
	Refused Verdict = "refused"
)

// Class is what an edit of a field restarts.
type Class string

// The classes.
const (
	// Pod: the pod is replaced.
	Pod Class = "pod"
	// Container: the container is restarted.
	Container Class = "container"
	// Live: it takes effect and nothing restarts.
	Live Class = "live"
	// InPlace: the running container is changed; resizePolicy may ask for a restart.
	InPlace Class = "in place"
	// None: it is identity, or has no effect.
	None Class = "none"
)

// Rule is what holds for a field and all that is below it. What a rule leaves
// empty, it takes from the rule of the nearest parent.
type Rule struct {
	// Path has [] for the items of a list and {} for the values of a map:
	// spec.containers[].ports[].hostPort, metadata.labels{}. A key between the
	// braces is for that key only.
	Path    string
	Verdict Verdict
	Class   Class
	// Reason says why a field is accepted without effect or refused.
	Reason string
	// Neutral are values, besides an absent or empty one, that ask for nothing.
	Neutral []string
	// Only are the values that are acted on; others are refused. Empty: all.
	Only []string
	// Presence: being there asks for something, even with nothing in it.
	Presence bool
	// Warn: that it has no effect may keep the pod from its work, so it is said as
	// a warning, not as a note.
	Warn bool
	// Each: what is below is named one by one, not as a whole.
	Each bool
	// Tests show that what is acted on is done: each is the folder of a test and
	// its name, agent.TestEditOfLimits. Every field that is acted on has one, or
	// takes those of its parent.
	Tests []string
	// But is what a field that is acted on does less, or otherwise, than in Kubernetes.
	// It is not taken from a parent.
	But string
	// Needs is what not every machine has: "AppArmor in the kernel". A field with
	// it is request-checked: its tests hold the exact request to the engine or
	// the kernel, and that a machine without it refuses the pod before anything is
	// made for it.
	Needs string

	judged string // the path of the rule that gave the verdict, in what Of returns
}
