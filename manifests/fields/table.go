package fields

import (
	"slices"
	"strings"
)

// Reasons that several rules give.
const (
	otherHooks = "use exec, httpGet or sleep"

	besideGroup = "the engine then adds none of the groups that the image has the user in"

	noScheduler = "there is no scheduler, and one node"

	byScheduler = "ResourceClaims are allocated by a scheduler, and there is none; a device can be had by a hostPath below /dev"

	noToken = "no token is mounted, since there is no API server that gives one"

	ofServer = "it is an API server's to set"

	ofAgent = "it is the agent's to set"

	onHugePages = "huge pages that are set aside (no container is kept to its share of them)"
)

// Table returns all rules, sorted by path.
//
// Who makes a field work changes its rule in the same commit: its verdict to
// Acted, no Reason any more, and the tests that show it, best on a real engine.
// Then `go generate ./manifests/fields`. A test looks for each test that is named.
func Table() []Rule {
	rules := slices.Concat(metadata(), spec(), volumes(), containers("spec.containers[]"))
	// The definition of one that is no sidecar is part of the pod: see manifests/hash.go.
	rules = append(rules, Rule{
		Path: "spec.initContainers", Verdict: Acted, Class: Pod, Tests: tests("agent.TestInitContainers", "agent.TestSidecars"),
	})
	rules = append(rules, containers("spec.initContainers[]")...)
	rules = append(rules, Rule{
		Path: "spec.ephemeralContainers", Verdict: Refused, Class: Pod,
		Reason: "they are for debugging a pod that runs, and no manifest can have them",
	})
	for _, r := range containers("spec.ephemeralContainers[]") {
		rules = append(rules, Rule{Path: r.Path, Class: r.Class})
	}
	slices.SortFunc(rules, func(a, b Rule) int { return strings.Compare(a.Path, b.Path) })
	return rules
}

func tests(names ...string) []string { return names }

func metadata() []Rule {
	rules := []Rule{
		{Path: "apiVersion", Verdict: Acted, Class: None, Tests: tests("manifests.TestHeaders")},
		{Path: "kind", Verdict: Acted, Class: None, Tests: tests("manifests.TestHeaders")},
		{Path: "metadata", Verdict: Accepted, Class: None, Reason: ofServer, Each: true},
		{Path: "metadata.name", Verdict: Acted, Tests: tests("manifests.TestIdentity", "agent.TestRenamingAPodInItsFile")},
		{Path: "metadata.namespace", Verdict: Acted, Tests: tests("manifests.TestIdentity", "agent.TestLogLinks")},
		{Path: "metadata.uid", Verdict: Acted, Tests: tests("agent.TestUIDThatIsInUse")},
		{Path: "metadata.labels", Verdict: Acted, Class: Live, Tests: tests("agent.TestEditOfOneContainer")},
		{Path: "metadata.annotations", Verdict: Acted, Class: Live, Tests: tests("manifests.TestUpdateReplace", "agent.TestRestartOnChange")},
		{Path: "metadata.generateName", Verdict: Accepted, Reason: "a pod of a manifest has a name"},
		{Path: "status", Verdict: Accepted, Class: None, Reason: "it is found out, not given"},
	}
	for _, key := range AgentAnnotations() {
		rules = append(rules, Rule{Path: "metadata.annotations{" + key + "}", Verdict: Accepted, Class: None, Reason: ofAgent})
	}
	return rules
}

// AgentAnnotations returns the annotations that are the agent's to set.
func AgentAnnotations() []string {
	return []string{
		"kubernetes.io/config.hash",
		"kubernetes.io/config.mirror",
		"kubernetes.io/config.seen",
		"kubernetes.io/config.source",
	}
}
