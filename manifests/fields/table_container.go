package fields

import (
	"slices"
	"strings"
)

// containers returns the rules of a list of containers.
func containers(list string) []Rule {
	rules := []Rule{
		{Path: ".name", Verdict: Acted, Class: None, Tests: tests("agent.TestContainersThatComeAndGo")},
		{Path: ".image", Verdict: Acted, Class: Container, Tests: tests("agent.TestEditOfOneContainer", "agent.TestImageWithAHealthCheck")},
		{Path: ".command", Verdict: Acted, Class: Container, Tests: tests("agent.TestCommandAndArgsOfTheImage", "agent.TestVariableExpansion")},
		{Path: ".args", Verdict: Acted, Class: Container, Tests: tests("agent.TestCommandAndArgsOfTheImage", "agent.TestVariableExpansion")},
		{Path: ".workingDir", Verdict: Acted, Class: Container, Tests: tests("agent.TestWorkingDirAndStdin")},
		{Path: ".env", Verdict: Acted, Class: Container, Tests: tests("agent.TestVariableExpansion")},
		{Path: ".env[].valueFrom", Verdict: Acted, Tests: tests("agent.TestEnvironment", "reconcile.TestEnvironment")},
		{Path: ".env[].valueFrom.fileKeyRef", Tests: tests("agent.TestVariablesFromAFile", "reconcile.TestEnvFile")},
		{Path: ".envFrom", Verdict: Acted, Class: Container, Tests: tests("agent.TestEnvironment", "agent.TestContainerThatWaitsForItsConfig")},
		{Path: ".ports", Verdict: Acted, Class: Live, Tests: tests("agent.TestTwoPodsWithOneHostPort")},
		{Path: ".ports[].hostPort", Class: Pod, Tests: tests("agent.TestTwoPodsWithOneHostPort", "agent.TestHostPortsOfAllKinds", "runtime/docker.TestHostPorts")},
		{Path: ".ports[].hostIP", Class: Pod, Tests: tests("agent.TestHostPortsOfAllKinds", "runtime/docker.TestHostPorts")},
		{Path: ".resources", Class: InPlace},
		{Path: ".resizePolicy", Verdict: Acted, Class: Live, Tests: tests("reconcile.TestPlan")},
		{Path: ".resources.claims", Verdict: Refused, Class: Container, Reason: byScheduler},
		{Path: ".restartPolicy", Verdict: Acted, Class: Live, Tests: tests("agent.TestRestartPolicyOfAContainer", "reconcile.TestPlan")},
		{Path: ".restartPolicyRules", Verdict: Acted, Class: Live, Tests: tests("agent.TestRestartPolicyOfAContainer", "reconcile.TestRestartRules")},
		{Path: ".restartPolicyRules[].action", Verdict: Acted, Class: Live, Tests: tests("agent.TestRestartOfAllContainers", "reconcile.TestRestartRules")},
		{Path: ".volumeMounts", Verdict: Acted, Class: Container, Tests: tests("agent.TestLifeOfAnEmptyDir", "runtime/docker.TestMounts")},
		{Path: ".volumeMounts[].subPath", Verdict: Acted, Tests: tests("agent.TestSubPaths", "agent.TestSubPathThatLeadsOut", "node/volume.TestSubPathWinsEveryRace")},
		{Path: ".volumeMounts[].subPathExpr", Verdict: Acted, Tests: tests("agent.TestSubPathExpr", "agent.TestSubPaths", "reconcile.TestSubPathExpr")},
		{Path: ".volumeMounts[].bindMountOptions", Verdict: Acted, Tests: tests("agent.TestKindsOfVolumes", "node/volume.TestSubPathWithMountOptions")},
		{Path: ".volumeMounts[].mountPropagation", Verdict: Acted, Needs: "for Bidirectional, an engine that may run privileged containers", Tests: tests("agent.TestMountPropagation", "agent.TestPropagationOfAVolume", "agent.TestBidirectionalPropagation", "node/volume.TestVolumesThatPropagateAreShared")},
		{Path: ".volumeMounts[].recursiveReadOnly", Verdict: Acted, Needs: "for Enabled, Docker Engine 25 and Linux 5.12", Tests: tests("reconcile.TestLacking", "reconcile.TestMounts", "runtime/docker.TestMountsOfNewerEngines")},
		{Path: ".volumeDevices", Verdict: Refused, Class: Container, Reason: "claims are folders here; a block device can be had by a hostPath of type BlockDevice"},
		{Path: ".livenessProbe", Verdict: Acted, Class: Live, Tests: tests("agent.TestWhatFailingProbesDo", "agent.TestProbesOverTheNetwork", "reconcile/probe.TestExec")},
		{Path: ".readinessProbe", Verdict: Acted, Class: Live, Tests: tests("agent.TestReadinessOverAnAgentRestart", "agent.TestProbesOverTheNetwork", "reconcile/probe.TestHTTPRequest")},
		{Path: ".startupProbe", Verdict: Acted, Class: Live, Tests: tests("agent.TestStartupProbe", "reconcile/probe.TestStartupHoldsTheOthersBackUntilItSucceeds")},
		{Path: ".lifecycle", Class: Live},
		{Path: ".lifecycle.postStart", Verdict: Acted, Tests: tests("agent.TestPostStart", "agent.TestPostStartThatFails")},
		{Path: ".lifecycle.postStart.tcpSocket", Verdict: Refused, Reason: "Kubernetes has never run such a hook, and fails the container for it; " + otherHooks},
		{Path: ".lifecycle.preStop", Verdict: Acted, Tests: tests("agent.TestPreStop", "agent.TestNoGracePeriodForAHook")},
		{Path: ".lifecycle.preStop.tcpSocket", Verdict: Refused, Reason: "Kubernetes has never run such a hook; " + otherHooks},
		{Path: ".lifecycle.stopSignal", Verdict: Acted, Class: Container, Tests: tests("agent.TestStopSignals")},
		{Path: ".terminationMessagePath", Verdict: Acted, Class: Container, Tests: tests("agent.TestTerminationMessages")},
		{Path: ".terminationMessagePolicy", Verdict: Acted, Class: Live, Tests: tests("agent.TestTerminationMessages")},
		{Path: ".imagePullPolicy", Verdict: Acted, Class: Live, Tests: tests("agent.TestPullPolicyWithoutARegistry")},
		{Path: ".stdin", Verdict: Acted, Class: Container, Tests: tests("agent.TestWorkingDirAndStdin")},
		{Path: ".stdinOnce", Verdict: Acted, Class: Container, Tests: tests("agent.TestWorkingDirAndStdin")},
		{Path: ".tty", Verdict: Acted, Class: Container, Tests: tests("agent.TestWorkingDirAndStdin")},
		{Path: ".securityContext", Class: Container},
		{Path: ".securityContext.privileged", Verdict: Acted, Tests: tests("agent.TestPrivileges", "runtime/docker.TestRequests")},
		{Path: ".securityContext.capabilities", Verdict: Acted, Tests: tests("agent.TestPrivileges")},
		{Path: ".securityContext.allowPrivilegeEscalation", Verdict: Acted, Tests: tests("agent.TestPrivileges")},
		{Path: ".securityContext.seccompProfile", Verdict: Acted, Tests: tests("agent.TestPrivileges")},
		{Path: ".securityContext.readOnlyRootFilesystem", Verdict: Acted, Tests: tests("agent.TestSecurityContextOfPodAndContainer")},
		{Path: ".securityContext.runAsUser", Verdict: Acted, Tests: tests("agent.TestSecurityContextOfPodAndContainer")},
		{Path: ".securityContext.runAsGroup", Verdict: Acted, But: besideGroup, Tests: tests("agent.TestSecurityContextOfPodAndContainer", "reconcile.TestSecurity")},
		{Path: ".securityContext.runAsNonRoot", Verdict: Acted, Tests: tests("agent.TestRunAsNonRoot")},
		{Path: ".securityContext.windowsOptions", Verdict: Refused, Reason: "this is a Linux machine"},
		{Path: ".securityContext.procMount", Verdict: Acted, Needs: "for Unmasked, an engine that maps users", Tests: tests("reconcile.TestSecurity", "runtime/docker.TestRequests", "reconcile.TestLacking")},
		{Path: ".securityContext.appArmorProfile", Verdict: Acted, Needs: "AppArmor", Tests: tests("reconcile.TestSecurity", "runtime/docker.TestRequests", "agent.TestAppArmor")},
		{Path: ".securityContext.seLinuxOptions", Verdict: Acted, Needs: "SELinux", Tests: tests("reconcile.TestSecurity", "runtime/docker.TestRequests", "agent.TestWhatTheMachineLacks")},
		// Only debug containers have it.
		{Path: ".targetContainerName", Class: None},
	}
	for _, side := range []string{".resources.limits", ".resources.requests"} {
		rules = append(rules,
			Rule{Path: side, Verdict: Refused, Reason: "there are no device plugins; a device can be had by a hostPath below /dev", Each: true},
			Rule{Path: side + "{cpu}", Verdict: Acted, Tests: tests("agent.TestEditOfLimits", "runtime/docker.TestSmallestLimits")},
			Rule{Path: side + "{memory}", Verdict: Acted, Tests: tests("agent.TestEditOfLimits", "agent.TestOutOfMemory")},
			Rule{Path: side + "{" + hugePages + "}", Verdict: Acted, Needs: onHugePages, Tests: tests("reconcile.TestRoomRefuses", "agent.TestWhatTheMachineLacks")},
		)
	}
	rules = append(rules,
		Rule{Path: ".resources.requests{ephemeral-storage}", Verdict: Acted, Tests: tests("reconcile.TestDemand", "reconcile.TestRoomRefuses")},
		Rule{Path: ".resources.limits{ephemeral-storage}", Verdict: Acted, But: "a pod that takes more is evicted", Tests: tests("gc.TestOverLimit", "agent.TestEvictionByStorageLimits")},
	)
	for i := range rules {
		rules[i].Path = list + rules[i].Path
	}
	if list != "spec.ephemeralContainers[]" {
		rules = slices.DeleteFunc(rules, func(r Rule) bool { return strings.HasSuffix(r.Path, ".targetContainerName") })
	}
	return rules
}
