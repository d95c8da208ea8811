package fields

// Why some kinds of volume cannot be had on a machine without a cluster.
const (
	gone      = "Kubernetes itself has no driver for it any more"
	byDriver  = "CSI drivers are found through an API server; mount it on the machine, and take a hostPath"
	onMachine = "nothing here attaches such disks; mount it on the machine, and take a hostPath"
)

func volumes() []Rule {
	rules := []Rule{
		{Path: "spec.volumes", Class: Pod},
		{Path: "spec.volumes[].name", Verdict: Acted, Tests: tests("agent.TestLifeOfAnEmptyDir")},
	}
	kinds := []Rule{
		{Path: "emptyDir", Verdict: Acted, Tests: tests("agent.TestLifeOfAnEmptyDir")},
		{Path: "emptyDir.medium", Only: []string{"Memory"}, Reason: unsupported, Tests: tests("node/volume.TestMemoryC071")},
		{Path: "emptyDir.mode", Verdict: Refused, Reason: unsupported},
		{Path: "hostPath", Verdict: Acted, Tests: tests("agent.TestHostPathTypes", "agent.TestHostPathSocket")},
		{Path: "configMap", Verdict: Acted, Tests: tests("agent.TestEditOfAConfigMap", "agent.TestPodThatWaitsForAVolume", "reconcile.TestContent")},
		{Path: "secret", Verdict: Acted, Tests: tests("agent.TestSecretFiles", "reconcile.TestContent")},
		{Path: "downwardAPI", Verdict: Acted, Tests: tests("agent.TestEditOfAConfigMap", "reconcile.TestContent")},
		{Path: "projected", Verdict: Acted, Tests: tests("agent.TestSecretFiles", "reconcile.TestContent")},
		{Path: "projected.sources[].serviceAccountToken", Verdict: Refused, Presence: true, Reason: "there is no API server that gives tokens"},
		{Path: "projected.sources[].clusterTrustBundle", Verdict: Refused, Presence: true, Reason: "there is no API server that has trust bundles"},
		{Path: "projected.sources[].podCertificate", Verdict: Refused, Presence: true, Reason: "there is no API server that signs certificates"},
		{Path: "persistentVolumeClaim", Verdict: Refused, Presence: true, Reason: unsupported},
		{Path: "ephemeral", Verdict: Refused, Presence: true, Reason: unsupported},
		{Path: "image", Verdict: Acted, Needs: "an engine that mounts images (Docker Engine 28)", Tests: tests("runtime/docker.TestMountsOfNewerEngines", "reconcile.TestImageVolume", "reconcile.TestLacking")},
		{Path: "nfs", Verdict: Refused, Presence: true, Reason: unsupported},
		{Path: "iscsi", Verdict: Refused, Presence: true, Reason: unsupported},

		{Path: "gitRepo", Verdict: Refused, Presence: true, Reason: "Kubernetes itself does it no more; clone in an init container, into an emptyDir"},
		{Path: "csi", Verdict: Refused, Presence: true, Reason: byDriver},
		{Path: "fc", Verdict: Refused, Presence: true, Reason: onMachine},
		{Path: "flexVolume", Verdict: Refused, Presence: true, Reason: "Kubernetes has given it up for CSI; mount it on the machine, and take a hostPath"},
	}
	for _, kind := range []string{"awsElasticBlockStore", "azureDisk", "azureFile", "cinder", "gcePersistentDisk", "portworxVolume", "vsphereVolume"} {
		kinds = append(kinds, Rule{Path: kind, Verdict: Refused, Presence: true, Reason: byDriver})
	}
	for _, kind := range []string{"cephfs", "flocker", "glusterfs", "photonPersistentDisk", "quobyte", "rbd", "scaleIO", "storageos"} {
		kinds = append(kinds, Rule{Path: kind, Verdict: Refused, Presence: true, Reason: gone})
	}
	for _, r := range kinds {
		r.Path = "spec.volumes[]." + r.Path
		rules = append(rules, r)
	}
	return rules
}
