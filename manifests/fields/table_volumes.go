package fields

// Why some kinds of volume cannot be had on a machine without a cluster.
const (
	gone      = "Kubernetes itself has no driver for it any more; mount it on the machine, and take a hostPath"
	byDriver  = "CSI drivers are found through an API server; mount it on the machine, and take a hostPath"
	onHost    = "a session with a target outlives the pods that use it, and the machine's iscsid keeps it: log in and mount it there, and take a hostPath"
	noSource  = "nothing is copied into it: a claim begins as an empty folder; fill it in an init container"
	noVolumes = "there are no volumes to choose from: a claim is an empty folder of its own"
	onMachine = "nothing here attaches such disks; mount it on the machine, and take a hostPath"
)

func volumes() []Rule {
	rules := []Rule{
		{Path: "spec.volumes", Class: Pod},
		{Path: "spec.volumes[].name", Verdict: Acted, Tests: tests("agent.TestLifeOfAnEmptyDir")},
	}
	kinds := []Rule{
		{Path: "emptyDir", Verdict: Acted, Tests: tests("agent.TestLifeOfAnEmptyDir")},
		{Path: "emptyDir.medium", Verdict: Acted, Tests: tests("agent.TestEmptyDirInMemory", "node/volume.TestMemoryC071", "node/volume.TestHugePages")},
		{Path: "emptyDir.sizeLimit", Verdict: Acted, But: "a pod that puts more on the disk is evicted; one of medium Memory holds no more", Tests: tests("agent.TestEvictionByOwnLimit", "agent.TestEmptyDirInMemory", "node/volume.TestMemoryIsBoundedByThePod")},
		{Path: "emptyDir.mode", Verdict: Acted, Tests: tests("agent.TestKindsOfVolumes", "node/volume.TestFSGroupOfOtherKindsC073")},
		{Path: "hostPath", Verdict: Acted, Tests: tests("agent.TestHostPathTypes", "agent.TestHostPathSocket", "agent.TestDevices")},
		{Path: "configMap", Verdict: Acted, Tests: tests("agent.TestEditOfAConfigMap", "agent.TestPodThatWaitsForAVolume", "reconcile.TestContent")},
		{Path: "secret", Verdict: Acted, Tests: tests("agent.TestSecretFiles", "reconcile.TestContent")},
		{Path: "downwardAPI", Verdict: Acted, Tests: tests("agent.TestEditOfAConfigMap", "reconcile.TestContent")},
		{Path: "projected", Verdict: Acted, Tests: tests("agent.TestSecretFiles", "reconcile.TestContent")},
		{Path: "projected.sources[].serviceAccountToken", Verdict: Refused, Presence: true, Reason: "there is no API server that gives tokens"},
		{Path: "projected.sources[].clusterTrustBundle", Verdict: Refused, Presence: true, Reason: "there is no API server that has trust bundles"},
		{Path: "projected.sources[].podCertificate", Verdict: Refused, Presence: true, Reason: "there is no API server that signs certificates"},
		{Path: "persistentVolumeClaim", Verdict: Acted, Tests: tests("agent.TestClaimOutlivesItsPod", "node/volume.TestClaimHasAFolderThatOutlivesThePod")},
		{Path: "ephemeral", Verdict: Acted, Tests: tests("agent.TestKindsOfVolumes", "node/volume.TestEphemeralClaim")},
		{Path: "ephemeral.volumeClaimTemplate.metadata", Verdict: Accepted, Reason: "no object is made of it: its folder is the pod's", Each: true},
		{Path: "ephemeral.volumeClaimTemplate.spec.storageClassName", Only: []string{"local", "standard"}, Reason: "there is only storage of this machine: leave it out, or write local or standard", Tests: tests("node/volume.TestEphemeralClaim")},
		{Path: "ephemeral.volumeClaimTemplate.spec.volumeMode", Verdict: Refused, Neutral: []string{"Filesystem"}, Reason: "a claim is a folder: only Filesystem is supported"},
		{Path: "ephemeral.volumeClaimTemplate.spec.selector", Verdict: Refused, Presence: true, Reason: noVolumes},
		{Path: "ephemeral.volumeClaimTemplate.spec.volumeName", Verdict: Refused, Reason: noVolumes},
		{Path: "ephemeral.volumeClaimTemplate.spec.dataSource", Verdict: Refused, Presence: true, Reason: noSource},
		{Path: "ephemeral.volumeClaimTemplate.spec.dataSourceRef", Verdict: Refused, Presence: true, Reason: noSource},
		{Path: "ephemeral.volumeClaimTemplate.spec.volumeAttributesClassName", Verdict: Accepted, Reason: "there is one kind of storage"},
		{Path: "ephemeral.volumeClaimTemplate.spec.resources.limits", Verdict: Accepted, Reason: "the request is the size"},
		{Path: "image", Verdict: Acted, Needs: "an engine that mounts images (Docker Engine 28)", Tests: tests("runtime/docker.TestMountsOfNewerEngines", "reconcile.TestImageVolume", "reconcile.TestLacking")},
		{Path: "nfs", Verdict: Acted, Needs: "mount.nfs on the machine", Tests: tests("node/volume.TestNFSAsksMountForExactlyThis", "node/volume.TestNFSSaysWhatIsMissing")},
		{Path: "iscsi", Verdict: Refused, Presence: true, Reason: onHost},

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
