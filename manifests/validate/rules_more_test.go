package validate_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/podkeeper/podkeeper/manifests/validate"
	v1 "k8s.io/api/core/v1"
)

// What each kind of volume that is elsewhere cannot do without, and the like.
func TestRemoteVolumes(t *testing.T) {
	kinds := map[string][]string{
		"awsElasticBlockStore: {volumeID: '', partition: 256}":                            {"partition Invalid", "volumeID Required"},
		"azureDisk: {diskName: '', diskURI: x, kind: Managed}":                            {"diskName Required", "diskURI NotSupported"},
		"azureDisk: {diskName: d, diskURI: 'https://x', kind: Shared, cachingMode: Nope}": {"cachingMode NotSupported"},
		"azureFile: {secretName: '', shareName: ''}":                                      {"secretName Required", "shareName Required"},
		"cephfs: {monitors: []}":                                                          {"monitors Required"},
		"cinder: {volumeID: '', secretRef: {}}":                                           {"secretRef.name Required", "volumeID Required"},
		"csi: {driver: ''}":                                                               {"driver Required"},
		"csi: {driver: CSI.Example.com}":                                                  nil,
		"csi: {driver: a_b, nodePublishSecretRef: {name: A}}":                             {"driver Invalid", "nodePublishSecretRef.name Invalid"},
		"fc: {}":           {"targetWWNs Required"},
		"fc: {wwids: [a]}": nil,
		"fc: {targetWWNs: [a], wwids: [b], lun: 256}":                {"lun Invalid", "targetWWNs Invalid"},
		"fc: {targetWWNs: [a]}":                                      {"lun Required"},
		"flexVolume: {driver: '', options: {x.K8s.io/y: z, a/b: c}}": {"driver Required", "options[x.K8s.io/y] Invalid"},
		"flocker: {datasetName: a/b, datasetUUID: c}":                {" Invalid", "datasetName Invalid"},
		"flocker: {}": {" Required"},
		"gcePersistentDisk: {pdName: '', partition: -1}":                                {"partition Invalid", "pdName Required"},
		"gitRepo: {repository: '', directory: ../a}":                                    {"directory Invalid", "repository Required"},
		"glusterfs: {endpoints: '', path: ''}":                                          {"endpoints Required", "path Required"},
		"iscsi: {targetPortal: p, iqn: naa.1, lun: 0}":                                  {"iqn Invalid"},
		"iscsi: {targetPortal: p, iqn: eui.02004567A425678D, lun: 0, initiatorName: x}": {"initiatorName Invalid"},
		"photonPersistentDisk: {pdID: ''}":                                              {"pdID Required"},
		"portworxVolume: {volumeID: ''}":                                                {"volumeID Required"},
		"quobyte: {registry: '', volume: ''}":                                           {"registry Required", "volume Required"},
		"quobyte: {registry: 'a:1,b', volume: v}":                                       {"registry Invalid"},
		"rbd: {monitors: [], image: ''}":                                                {"image Required", "monitors Required"},
		"scaleIO: {gateway: '', system: '', secretRef: null}":                           {"gateway Required", "system Required", "volumeName Required"},
		"storageos: {volumeName: A, volumeNamespace: B}":                                {"volumeName Invalid", "volumeNamespace Invalid"},
		"vsphereVolume: {volumePath: ''}":                                               {"volumePath Required"},
	}
	rules := map[string]rule{}
	for volume, want := range kinds {
		kind, _, _ := strings.Cut(volume, ":")
		var whole []string
		for _, w := range want {
			whole = append(whole, strings.Replace("volumes[0]."+kind+"."+w, ". ", " ", 1))
		}
		rules[volume] = rule{"volumes: [{name: v, " + volume + "}]", whole}
	}
	run(t, rules)
}

func TestResources(t *testing.T) {
	run(t, map[string]rule{
		"huge pages alone":                     {`containers: [{name: a, resources: {limits: {hugepages-2Mi: 2Mi}, requests: {hugepages-2Mi: 2Mi}}}]`, []string{"containers[0].resources Forbidden"}},
		"huge pages and a half":                {`containers: [{name: a, resources: {limits: {hugepages-2Mi: 3Mi, cpu: 1}}}]`, []string{"containers[0].resources.limits[hugepages-2Mi] Invalid"}},
		"huge pages without a limit":           {`containers: [{name: a, resources: {requests: {hugepages-2Mi: 2Mi, cpu: 1}}}]`, []string{"containers[0].resources.limits Required"}},
		"a device and a half":                  {`containers: [{name: a, resources: {limits: {example.com/gpu: 1500m}}}]`, []string{"containers[0].resources.limits[example.com/gpu] Invalid"}},
		"fewer devices than the limit":         {`containers: [{name: a, resources: {limits: {example.com/gpu: 2}, requests: {example.com/gpu: 1}}}]`, []string{"containers[0].resources.requests Invalid"}},
		"a name of a quota":                    {`containers: [{name: a, resources: {limits: {requests.cpu: 1}}}]`, []string{"containers[0].resources.limits[requests.cpu] Invalid"}},
		"no name":                              {`containers: [{name: a, resources: {limits: {"a b": 1}}}]`, []string{"containers[0].resources.limits[a b] Invalid", "containers[0].resources.limits[a b] Invalid"}},
		"a claim that the pod does not have":   {`containers: [{name: a, resources: {claims: [{name: c}]}}]`, []string{"containers[0].resources.claims[0] NotFound"}},
		"a claim and a part of it":             {`{resourceClaims: [{name: c, resourceClaimName: x}], containers: [{name: a, resources: {claims: [{name: c, request: r}, {name: c}]}}]}`, []string{"containers[0].resources.claims[1] Duplicate"}},
		"a claim of nothing":                   {`resourceClaims: [{name: c}]`, []string{"resourceClaims[0] Invalid"}},
		"overhead":                             {`overhead: {cpu: -1}`, []string{"overhead.limits[cpu] Invalid"}},
		"less for the pod than for containers": {`{resources: {requests: {cpu: 1}}, containers: [{name: a, resources: {requests: {cpu: 1}}}, {name: b, resources: {requests: {cpu: 1m}}}]}`, []string{"resources.requests[cpu] Invalid"}},
		"less for the pod than at the start":   {`{resources: {requests: {memory: 2Gi}}, initContainers: [{name: s, restartPolicy: Always, resources: {requests: {memory: 1Gi}}}, {name: i, resources: {requests: {memory: 1500Mi}}}], containers: [{name: a}]}`, []string{"resources.requests[memory] Invalid"}},
		"a container's limit above the pod's":  {`{resources: {limits: {cpu: 1}}, containers: [{name: a, resources: {limits: {cpu: 2}}}]}`, []string{"resources.containers[0][cpu].limits Invalid"}},
		"a device for the pod":                 {`resources: {limits: {example.com/gpu: 1}}`, []string{"resources.limits[example.com/gpu] NotSupported"}},
		"claims of the pod":                    {`{resourceClaims: [{name: c, resourceClaimName: x}], resources: {claims: [{name: c}]}}`, []string{"resources.claims Forbidden"}},
	})
}

func TestSecurity(t *testing.T) {
	run(t, map[string]rule{
		"a user below nobody":                   {`securityContext: {runAsUser: -1, runAsGroup: -1, fsGroup: -1, supplementalGroups: [1, -1]}`, []string{"securityContext.fsGroup Invalid", "securityContext.runAsGroup Invalid", "securityContext.runAsUser Invalid", "securityContext.supplementalGroups[1] Invalid"}},
		"privileged without escalation":         {`containers: [{name: a, securityContext: {privileged: true, allowPrivilegeEscalation: false}}]`, []string{"containers[0].securityContext Invalid"}},
		"SYS_ADMIN without escalation":          {`containers: [{name: a, securityContext: {capabilities: {add: [CAP_SYS_ADMIN]}, allowPrivilegeEscalation: false}}]`, []string{"containers[0].securityContext Invalid"}},
		"an open /proc with the host's users":   {`containers: [{name: a, securityContext: {procMount: Unmasked}}]`, []string{"containers[0].securityContext.procMount Invalid"}},
		"an open /proc with own users":          {`{hostUsers: false, containers: [{name: a, securityContext: {procMount: Unmasked}}]}`, nil},
		"the host's namespaces, own users":      {`{hostUsers: false, hostNetwork: true, hostPID: true, hostIPC: true}`, []string{"hostIPC Forbidden", "hostNetwork Forbidden", "hostPID Forbidden"}},
		"one PID namespace and the host's":      {`{shareProcessNamespace: true, hostPID: true}`, []string{"shareProcessNamespace Invalid"}},
		"a seccomp profile of nowhere":          {`securityContext: {seccompProfile: {type: Localhost}}`, []string{"securityContext.seccompProfile.localhostProfile Required"}},
		"a seccomp profile that climbs":         {`securityContext: {seccompProfile: {type: Localhost, localhostProfile: ../a}}`, []string{"securityContext.seccompProfile.localhostProfile Invalid"}},
		"an AppArmor profile of two kinds":      {`securityContext: {appArmorProfile: {type: Unconfined, localhostProfile: a}}`, []string{"securityContext.appArmorProfile.localhostProfile Invalid"}},
		"an AppArmor profile in spaces":         {`securityContext: {appArmorProfile: {type: Localhost, localhostProfile: " a"}}`, []string{"securityContext.appArmorProfile.localhostProfile Invalid"}},
		"sysctls":                               {`securityContext: {sysctls: [{name: net.core.somaxconn, value: "1"}, {name: net.core.somaxconn, value: "2"}, {name: A, value: ""}, {value: ""}]}`, []string{"securityContext.sysctls[1].name Duplicate", "securityContext.sysctls[2].name Invalid", "securityContext.sysctls[3].name Required"}},
		"a sysctl of the host's network":        {`{hostNetwork: true, securityContext: {sysctls: [{name: net/ipv4/ip_forward, value: "1"}]}}`, []string{"securityContext.sysctls[0].name Invalid"}},
		"a sysctl of the host's IPC":            {`{hostIPC: true, securityContext: {sysctls: [{name: kernel.shmmax, value: "1"}, {name: fs.mqueue.msg_max, value: "1"}, {name: kernel.x, value: "1"}]}}`, []string{"securityContext.sysctls[0].name Invalid", "securityContext.sysctls[1].name Invalid"}},
		"no such system":                        {`os: {name: plan9}`, []string{"os NotSupported"}},
		"options of Windows on Linux":           {`{os: {name: linux}, containers: [{name: a, securityContext: {windowsOptions: {}}}]}`, []string{"containers[0].securityContext.windowsOptions Forbidden"}},
		"users of Linux on Windows":             {`{os: {name: windows}, hostPID: true, securityContext: {runAsUser: 1}}`, []string{"hostPID Forbidden", "securityContext.runAsUser Forbidden"}},
		"a process of the host beside others":   {`{containers: [{name: a, securityContext: {windowsOptions: {hostProcess: true}}}, {name: b}]}`, []string{"hostNetwork Invalid", "spec Invalid"}},
		"a user of a domain of Windows is good": {`securityContext: {windowsOptions: {runAsUserName: 'corp.example.com\user'}}`, nil},
		"a user of Windows of dots":             {`securityContext: {windowsOptions: {runAsUserName: '.x\. .'}}`, []string{"securityContext.windowsOptions.runAsUserName Invalid", "securityContext.windowsOptions.runAsUserName Invalid"}},
		"a user of Windows":                     {`securityContext: {windowsOptions: {runAsUserName: 'a\b\c', gmsaCredentialSpec: ""}}`, []string{"securityContext.windowsOptions.gmsaCredentialSpec Invalid", "securityContext.windowsOptions.runAsUserName Invalid"}},
	})
}

func TestScheduling(t *testing.T) {
	const need = "requiredDuringSchedulingIgnoredDuringExecution"
	const like = "preferredDuringSchedulingIgnoredDuringExecution"
	run(t, map[string]rule{
		"a node with no such label":      {`nodeSelector: {"a b": c}`, []string{"nodeSelector Invalid"}},
		"no term for nodes":              {`affinity: {nodeAffinity: {` + need + `: {nodeSelectorTerms: []}}}`, []string{"affinity.nodeAffinity." + need + ".nodeSelectorTerms Required"}},
		"an expression without values":   {`affinity: {nodeAffinity: {` + need + `: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: In}, {key: a, operator: Exists, values: [b]}, {key: a, operator: Gt}, {key: a, operator: Is}]}]}}}`, []string{"affinity.nodeAffinity." + need + ".nodeSelectorTerms[0].matchExpressions[0].values Required", "affinity.nodeAffinity." + need + ".nodeSelectorTerms[0].matchExpressions[1].values Forbidden", "affinity.nodeAffinity." + need + ".nodeSelectorTerms[0].matchExpressions[2].values Required", "affinity.nodeAffinity." + need + ".nodeSelectorTerms[0].matchExpressions[3].operator Invalid"}},
		"a preference of no weight":      {`affinity: {nodeAffinity: {` + like + `: [{weight: 0, preference: {matchFields: [{key: metadata.uid, operator: In, values: [a]}]}}]}}`, []string{"affinity.nodeAffinity." + like + "[0].preference.matchFields[0].key Invalid", "affinity.nodeAffinity." + like + "[0].weight Invalid"}},
		"pods of no topology":            {`affinity: {podAntiAffinity: {` + need + `: [{labelSelector: {matchLabels: {a: b}}, namespaces: [A]}]}}`, []string{"affinity.podAntiAffinity." + need + "[0].namespace Invalid", "affinity.podAntiAffinity." + need + "[0].topologyKey Invalid", "affinity.podAntiAffinity." + need + "[0].topologyKey Invalid", "affinity.podAntiAffinity." + need + "[0].topologyKey Required"}},
		"keys without a selector":        {`affinity: {podAffinity: {` + like + `: [{weight: 1, podAffinityTerm: {topologyKey: zone, matchLabelKeys: [a], mismatchLabelKeys: [a]}}]}}`, []string{"affinity.podAffinity." + like + "[0].podAffinityTerm.matchLabelKeys Forbidden", "affinity.podAffinity." + like + "[0].podAffinityTerm.matchLabelKeys[0] Invalid", "affinity.podAffinity." + like + "[0].podAffinityTerm.mismatchLabelKeys Forbidden"}},
		"a toleration of nothing":        {`tolerations: [{}]`, []string{"tolerations[0].operator Invalid"}},
		"a toleration of everything":     {`tolerations: [{operator: Exists}]`, nil},
		"a value that exists":            {`tolerations: [{key: a, operator: Exists, value: b}]`, []string{"tolerations[0].operator Invalid"}},
		"seconds of no effect":           {`tolerations: [{key: a, operator: Exists, effect: NoSchedule, tolerationSeconds: 1}]`, []string{"tolerations[0].effect Invalid"}},
		"no such effect":                 {`tolerations: [{key: a, operator: Lt, value: "1", effect: Never}]`, []string{"tolerations[0].effect NotSupported", "tolerations[0].operator NotSupported"}},
		"a spread twice":                 {`topologySpreadConstraints: [{maxSkew: 1, topologyKey: z, whenUnsatisfiable: DoNotSchedule}, {maxSkew: 0, topologyKey: z, whenUnsatisfiable: DoNotSchedule}]`, []string{"topologySpreadConstraints[0].{topologyKey, whenUnsatisfiable} Duplicate", "topologySpreadConstraints[1].maxSkew Invalid"}},
		"domains that may be missed":     {`topologySpreadConstraints: [{maxSkew: 1, topologyKey: z, whenUnsatisfiable: ScheduleAnyway, minDomains: 1, nodeTaintsPolicy: Nope}]`, []string{"topologySpreadConstraints[0].minDomains Invalid", "topologySpreadConstraints[0].nodeTaintsPolicy NotSupported"}},
		"gates and a node":               {`{nodeName: n, schedulingGates: [{name: a/b}, {name: a/b}]}`, []string{"nodeName Forbidden", "schedulingGates[1] Duplicate"}},
		"a readiness gate of no name":    {`readinessGates: [{conditionType: a b}]`, []string{"readinessGates[0].conditionType Invalid"}},
		"no such preemption":             {`preemptionPolicy: Nope`, []string{"preemptionPolicy NotSupported"}},
		"a group and who answers for it": {`{schedulingGroup: {}, evictionResponders: [{name: example.com/x}]}`, []string{"schedulingGroup Forbidden", "schedulingGroup.podGroupName Invalid"}},
	})
}

func TestLifetime(t *testing.T) {
	run(t, map[string]rule{
		"no such restart policy":       {`restartPolicy: always`, []string{"restartPolicy NotSupported"}},
		"a grace period below nothing": {`terminationGracePeriodSeconds: -1`, []string{"terminationGracePeriodSeconds Invalid"}},
		"no grace period":              {`terminationGracePeriodSeconds: null`, []string{"terminationGracePeriodSeconds Required"}},
		"a deadline at once":           {`activeDeadlineSeconds: 0`, []string{"activeDeadlineSeconds Invalid"}},
		"names of other objects":       {`{serviceAccountName: A, serviceAccount: B, nodeName: A, priorityClassName: A, runtimeClassName: ""}`, []string{"deprecatedServiceAccount Invalid", "nodeName Invalid", "priorityClassName Invalid", "runtimeClassName Invalid", "serviceAccountName Invalid"}},
	})
}

func TestMetadata(t *testing.T) {
	const seccomp, appArmor = v1.SeccompContainerAnnotationKeyPrefix, v1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix
	tests := map[string]struct {
		edit func(*v1.Pod)
		want []string
	}{
		"no name and no namespace": {
			func(p *v1.Pod) { p.Name, p.Namespace = "", "" },
			[]string{"metadata.name Required", "metadata.namespace Required"},
		},
		"labels and annotations": {
			func(p *v1.Pod) {
				p.Labels = map[string]string{"a b": "c", "d": "e f"}
				p.Annotations = map[string]string{"a b": "c", "UPPER/case": "is good"}
			},
			[]string{"metadata.annotations Invalid", "metadata.labels Invalid", "metadata.labels Invalid"},
		},
		"a finalizer of nobody": {
			func(p *v1.Pod) { p.Finalizers = []string{"orphan", "plain", "example.com/x"} },
			[]string{"metadata.finalizers[1] Invalid"},
		},
		"costs of deletion": {
			func(p *v1.Pod) { p.Annotations = map[string]string{v1.PodDeletionCost: "+1"} },
			[]string{"metadata.annotations[controller.kubernetes.io/pod-deletion-cost] Invalid"},
		},
		"a mirror of no node": {
			func(p *v1.Pod) { p.Annotations = map[string]string{v1.MirrorPodAnnotationKey: "x"} },
			[]string{"metadata.annotations[kubernetes.io/config.mirror] Invalid"},
		},
		"tolerations in an annotation": {
			func(p *v1.Pod) {
				p.Annotations = map[string]string{v1.TolerationsAnnotationKey: `[{"operator":"Equal"}]`}
			},
			[]string{"metadata.annotations.scheduler.alpha.kubernetes.io/tolerations[0].operator Invalid"},
		},
		"profiles in annotations": {
			func(p *v1.Pod) {
				p.Annotations = map[string]string{seccomp + "app": "nope", appArmor + "nope": "runtime/default"}
			},
			[]string{
				"metadata.annotations.container.seccomp.security.alpha.kubernetes.io/app Invalid",
				"metadata.annotations[container.apparmor.security.beta.kubernetes.io/nope] Invalid",
			},
		},
		"profiles in annotations that the fields contradict": {
			func(p *v1.Pod) {
				p.Annotations = map[string]string{seccomp + "app": "localhost/a", appArmor + "app": "unconfined"}
				p.Spec.Containers[0].SecurityContext = &v1.SecurityContext{
					SeccompProfile: &v1.SeccompProfile{Type: v1.SeccompProfileTypeLocalhost, LocalhostProfile: new("b")},
				}
				p.Spec.SecurityContext.AppArmorProfile = &v1.AppArmorProfile{Type: v1.AppArmorProfileTypeRuntimeDefault}
			},
			[]string{
				"containers[0].securityContext.appArmorProfile.type Forbidden",
				"containers[0].securityContext.seccompProfile.localhostProfile Forbidden",
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := good()
			test.edit(p)
			if diff := cmp.Diff(test.want, short(validate.Pod(p))); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
}
