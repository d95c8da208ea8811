package fields

import (
	"slices"
	"strings"
)

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
	// Each: what is below is named one by one, not as a whole.
	Each bool
	// Tests show that what is acted on is done: each is the folder of a test and
	// its name, agent.TestEditOfLimits. Every field that is acted on has one, or
	// takes those of its parent.
	Tests []string
	// Needs is what not every machine has: "AppArmor in the kernel". A field with
	// it is request-checked: its tests hold the exact request to the engine or
	// the kernel, and that a machine without it refuses the pod before anything is
	// made for it.
	Needs string

	judged string // the path of the rule that gave the verdict, in what Of returns
}

const (
	unsupported = "not supported by this version"
	noScheduler = "there is no scheduler, and one node"
	ofServer    = "it is an API server's to set"
	ofAgent     = "it is the agent's to set"
)

// Table returns all rules, sorted by path.
//
// Who makes a field work changes its rule in the same commit: its verdict to
// Acted, no Reason any more, and the tests that show it, best on a real engine.
// Then `go generate ./manifests/fields`. A test looks for each test that is named.
func Table() []Rule {
	rules := slices.Concat(metadata(), spec(), volumes(), containers("spec.containers[]"))
	for _, list := range []string{"spec.initContainers", "spec.ephemeralContainers"} {
		rules = append(rules, Rule{Path: list, Verdict: Refused, Class: Pod, Reason: unsupported})
		// They will be restarted by the same edits as others.
		for _, r := range containers(list + "[]") {
			rules = append(rules, Rule{Path: r.Path, Class: r.Class})
		}
	}
	slices.SortFunc(rules, func(a, b Rule) int { return strings.Compare(a.Path, b.Path) })
	return rules
}

func metadata() []Rule {
	rules := []Rule{
		{Path: "apiVersion", Verdict: Acted, Class: None, Tests: tests("manifests.TestHeaders")},
		{Path: "kind", Verdict: Acted, Class: None, Tests: tests("manifests.TestHeaders")},
		{Path: "metadata", Verdict: Accepted, Class: None, Reason: ofServer, Each: true},
		{Path: "metadata.name", Verdict: Acted, Tests: tests("manifests.TestIdentity", "agent.TestRenamingAPodInItsFile")},
		{Path: "metadata.namespace", Verdict: Acted, Tests: tests("manifests.TestIdentity", "agent.TestLogLinks")},
		{Path: "metadata.uid", Verdict: Acted, Tests: tests("agent.TestUIDThatIsInUse")},
		{Path: "metadata.labels", Verdict: Acted, Class: Live, Tests: tests("agent.TestEditOfOneContainer")},
		{Path: "metadata.annotations", Verdict: Acted, Class: Live, Tests: tests("manifests.TestUpdateReplace")},
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

func spec() []Rule {
	resolver := []string{"Default", "ClusterFirst", "ClusterFirstWithHostNet"}
	return []Rule{
		{Path: "spec.restartPolicy", Verdict: Acted, Class: Live, Tests: tests("agent.TestRunToCompletion", "agent.TestReboots")},
		{Path: "spec.terminationGracePeriodSeconds", Verdict: Acted, Class: Live, Tests: tests("agent.TestNoGracePeriod", "agent.TestEditGivesTheOldContainerTime")},
		{Path: "spec.activeDeadlineSeconds", Verdict: Refused, Class: Live, Reason: unsupported},
		{Path: "spec.hostNetwork", Verdict: Acted, Class: Pod, Tests: tests("runtime/docker.TestNamespaces")},
		{Path: "spec.hostPID", Verdict: Acted, Class: Pod, Tests: tests("runtime/docker.TestNamespaces")},
		{Path: "spec.hostIPC", Verdict: Acted, Class: Pod, Tests: tests("runtime/docker.TestNamespaces")},
		{Path: "spec.hostname", Verdict: Acted, Class: Pod, Tests: tests("agent.TestEditOfThePod")},
		{Path: "spec.hostUsers", Verdict: Refused, Class: Pod, Reason: unsupported, Neutral: []string{"true"}},
		{Path: "spec.shareProcessNamespace", Verdict: Refused, Class: Pod, Reason: unsupported, Neutral: []string{"false"}},
		{Path: "spec.subdomain", Verdict: Refused, Class: Pod, Reason: unsupported},
		{Path: "spec.hostnameOverride", Verdict: Refused, Class: Pod, Reason: unsupported},
		{Path: "spec.setHostnameAsFQDN", Verdict: Refused, Class: Pod, Reason: unsupported, Neutral: []string{"false"}},
		{Path: "spec.hostAliases", Verdict: Refused, Class: Pod, Reason: unsupported},
		{Path: "spec.dnsPolicy", Verdict: Acted, Class: Pod, Reason: unsupported, Only: resolver, Tests: tests("runtime/docker.TestResolvers")},
		{Path: "spec.dnsConfig", Verdict: Refused, Class: Pod, Reason: unsupported, Each: true},
		{Path: "spec.securityContext", Verdict: Refused, Class: Pod, Reason: unsupported, Each: true},
		{Path: "spec.securityContext.runAsNonRoot", Neutral: []string{"false"}},
		{Path: "spec.securityContext.supplementalGroupsPolicy", Neutral: []string{"Merge"}},
		{Path: "spec.securityContext.fsGroupChangePolicy", Neutral: []string{"Always", "OnRootMismatch"}},
		{Path: "spec.runtimeClassName", Verdict: Refused, Class: Pod, Reason: unsupported},
		{Path: "spec.overhead", Verdict: Refused, Class: Pod, Reason: unsupported},
		{Path: "spec.resourceClaims", Verdict: Refused, Class: Pod, Reason: unsupported},
		{Path: "spec.resources", Verdict: Refused, Class: InPlace, Reason: unsupported},
		{Path: "spec.os", Verdict: Refused, Class: None, Reason: "only linux is supported", Neutral: []string{"linux"}},
		{Path: "spec.imagePullSecrets", Verdict: Refused, Class: Live, Reason: unsupported},
		{Path: "spec.serviceAccountName", Verdict: Refused, Class: None, Reason: "there is no API server that has service accounts", Neutral: []string{"default"}},
		{Path: "spec.serviceAccount", Verdict: Refused, Class: None, Reason: "there is no API server that has service accounts", Neutral: []string{"default"}},
		{Path: "spec.automountServiceAccountToken", Verdict: Refused, Class: None, Reason: "there is no API server that gives tokens", Neutral: []string{"false"}},
		{Path: "spec.enableServiceLinks", Verdict: Accepted, Class: None, Reason: "there are no Services"},
		{Path: "spec.nodeName", Verdict: Accepted, Class: None, Reason: "the node is the one on which the agent runs"},
		{Path: "spec.nodeSelector", Verdict: Accepted, Class: None, Reason: noScheduler},
		{Path: "spec.affinity", Verdict: Accepted, Class: None, Reason: noScheduler},
		{Path: "spec.topologySpreadConstraints", Verdict: Accepted, Class: None, Reason: noScheduler},
		{Path: "spec.schedulerName", Verdict: Accepted, Class: None, Reason: noScheduler},
		{Path: "spec.schedulingGates", Verdict: Accepted, Class: None, Reason: noScheduler},
		{Path: "spec.schedulingGroup", Verdict: Accepted, Class: None, Reason: noScheduler},
		{Path: "spec.tolerations", Verdict: Accepted, Class: None, Reason: "the node has no taints"},
		{Path: "spec.priority", Verdict: Accepted, Class: None, Reason: "nothing is evicted by this version"},
		{Path: "spec.priorityClassName", Verdict: Accepted, Class: None, Reason: "nothing is evicted by this version"},
		{Path: "spec.preemptionPolicy", Verdict: Accepted, Class: None, Reason: noScheduler},
		{Path: "spec.evictionResponders", Verdict: Accepted, Class: None, Reason: "evictions are not asked for through an API here"},
		{Path: "spec.readinessGates", Verdict: Accepted, Class: Live, Reason: "nobody here sets such conditions, so the pod does not wait for them"},
	}
}

func volumes() []Rule {
	rules := []Rule{
		{Path: "spec.volumes", Class: Pod},
		{Path: "spec.volumes[].name", Verdict: Acted, Tests: tests("agent.TestLifeOfAnEmptyDir")},
		{Path: "spec.volumes[].emptyDir", Verdict: Acted, Tests: tests("agent.TestLifeOfAnEmptyDir")},
		{Path: "spec.volumes[].emptyDir.medium", Only: []string{"Memory"}, Reason: unsupported, Tests: tests("node/volume.TestMemoryC071")},
		{Path: "spec.volumes[].emptyDir.mode", Verdict: Refused, Reason: unsupported},
		{Path: "spec.volumes[].hostPath", Verdict: Acted, Tests: tests("agent.TestHostPathTypes", "agent.TestHostPathSocket")},
	}
	for _, kind := range []string{
		"awsElasticBlockStore", "azureDisk", "azureFile", "cephfs", "cinder", "configMap", "csi", "downwardAPI", "ephemeral",
		"fc", "flexVolume", "flocker", "gcePersistentDisk", "gitRepo", "glusterfs", "image", "iscsi", "nfs",
		"persistentVolumeClaim", "photonPersistentDisk", "portworxVolume", "projected", "quobyte", "rbd", "scaleIO", "secret",
		"storageos", "vsphereVolume",
	} {
		rules = append(rules, Rule{Path: "spec.volumes[]." + kind, Verdict: Refused, Reason: unsupported, Presence: true})
	}
	return rules
}

// containers returns the rules of a list of containers.
func containers(list string) []Rule {
	rules := []Rule{
		{Path: ".name", Verdict: Acted, Class: None, Tests: tests("agent.TestContainersThatComeAndGo")},
		{Path: ".image", Verdict: Acted, Class: Container, Tests: tests("agent.TestEditOfOneContainer", "agent.TestImageWithAHealthCheck")},
		{Path: ".command", Verdict: Acted, Class: Container, Tests: tests("agent.TestCommandAndArgsOfTheImage", "agent.TestVariableExpansion")},
		{Path: ".args", Verdict: Acted, Class: Container, Tests: tests("agent.TestCommandAndArgsOfTheImage", "agent.TestVariableExpansion")},
		{Path: ".workingDir", Verdict: Acted, Class: Container, Tests: tests("runtime/docker.TestRequests")},
		{Path: ".env", Verdict: Acted, Class: Container, Tests: tests("agent.TestVariableExpansion")},
		{Path: ".env[].valueFrom", Verdict: Refused, Reason: unsupported},
		{Path: ".envFrom", Verdict: Refused, Class: Container, Reason: unsupported},
		{Path: ".ports", Verdict: Acted, Class: Live, Tests: tests("agent.TestTwoPodsWithOneHostPort")},
		{Path: ".ports[].hostPort", Class: Pod, Tests: tests("agent.TestTwoPodsWithOneHostPort", "runtime/docker.TestHostPorts")},
		{Path: ".ports[].hostIP", Class: Pod, Tests: tests("runtime/docker.TestHostPorts")},
		{Path: ".resources", Class: InPlace},
		{Path: ".resizePolicy", Verdict: Acted, Class: Live, Tests: tests("reconcile.TestPlan")},
		{Path: ".resources.claims", Verdict: Refused, Class: Container, Reason: unsupported},
		{Path: ".restartPolicy", Verdict: Refused, Class: Live, Reason: unsupported},
		{Path: ".restartPolicyRules", Verdict: Refused, Class: Live, Reason: unsupported},
		{Path: ".volumeMounts", Verdict: Acted, Class: Container, Tests: tests("agent.TestLifeOfAnEmptyDir", "runtime/docker.TestMounts")},
		{Path: ".volumeMounts[].subPath", Verdict: Refused, Reason: unsupported},
		{Path: ".volumeMounts[].subPathExpr", Verdict: Refused, Reason: unsupported},
		{Path: ".volumeMounts[].bindMountOptions", Verdict: Refused, Reason: unsupported},
		{Path: ".volumeMounts[].mountPropagation", Verdict: Refused, Reason: unsupported, Neutral: []string{"None"}},
		{Path: ".volumeMounts[].recursiveReadOnly", Verdict: Refused, Reason: unsupported, Neutral: []string{"Disabled"}},
		{Path: ".volumeDevices", Verdict: Refused, Class: Container, Reason: unsupported},
		{Path: ".livenessProbe", Verdict: Refused, Class: Live, Reason: unsupported},
		{Path: ".readinessProbe", Verdict: Refused, Class: Live, Reason: unsupported},
		{Path: ".startupProbe", Verdict: Refused, Class: Live, Reason: unsupported},
		{Path: ".lifecycle", Verdict: Refused, Class: Live, Reason: unsupported, Each: true},
		{Path: ".lifecycle.stopSignal", Class: Container},
		{Path: ".terminationMessagePath", Verdict: Accepted, Class: Container, Reason: "termination messages are not read by this version"},
		{Path: ".terminationMessagePolicy", Verdict: Accepted, Class: Live, Reason: "termination messages are not read by this version"},
		{Path: ".imagePullPolicy", Verdict: Acted, Class: Live, Tests: tests("agent.TestPullPolicyWithoutARegistry")},
		{Path: ".stdin", Verdict: Acted, Class: Container, Tests: tests("runtime/docker.TestRequests")},
		{Path: ".stdinOnce", Verdict: Acted, Class: Container, Tests: tests("runtime/docker.TestRequests")},
		{Path: ".tty", Verdict: Acted, Class: Container, Tests: tests("runtime/docker.TestRequests")},
		{Path: ".securityContext", Verdict: Refused, Class: Container, Reason: unsupported, Each: true},
		{Path: ".securityContext.privileged", Neutral: []string{"false"}},
		{Path: ".securityContext.runAsNonRoot", Neutral: []string{"false"}},
		{Path: ".securityContext.readOnlyRootFilesystem", Neutral: []string{"false"}},
		{Path: ".securityContext.allowPrivilegeEscalation", Neutral: []string{"true"}},
		{Path: ".securityContext.procMount", Neutral: []string{"Default"}},
		// Only debug containers have it.
		{Path: ".targetContainerName", Class: None},
	}
	for _, side := range []string{".resources.limits", ".resources.requests"} {
		rules = append(rules,
			Rule{Path: side, Verdict: Refused, Reason: "only cpu and memory are supported by this version", Each: true},
			Rule{Path: side + "{cpu}", Verdict: Acted, Tests: tests("agent.TestEditOfLimits", "runtime/docker.TestSmallestLimits")},
			Rule{Path: side + "{memory}", Verdict: Acted, Tests: tests("agent.TestEditOfLimits", "agent.TestOutOfMemory")},
			Rule{Path: side + "{ephemeral-storage}", Verdict: Accepted, Reason: "the use of disk is not limited by this version"},
		)
	}
	for i := range rules {
		rules[i].Path = list + rules[i].Path
	}
	if list != "spec.ephemeralContainers[]" {
		rules = slices.DeleteFunc(rules, func(r Rule) bool { return strings.HasSuffix(r.Path, ".targetContainerName") })
	}
	return rules
}

func tests(names ...string) []string { return names }
