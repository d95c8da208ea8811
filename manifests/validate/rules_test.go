package validate_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/podkeeper/podkeeper/manifests/validate"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

// rule is a part of a pod and the errors it has: "field kind", where kind is
// Invalid, Required, NotSupported, Forbidden, Duplicate, NotFound, TooLong or
// TooMany, and spec. stands before the field. None is a good pod.
type rule struct {
	spec string // YAML, on top of a good pod
	want []string
}

// run judges the pods of rules, keyed by a sentence.
func run(t *testing.T, rules map[string]rule) {
	t.Helper()
	for name, r := range rules {
		t.Run(name, func(t *testing.T) {
			p := good()
			p.Spec.Containers = nil
			if err := yaml.UnmarshalStrict([]byte(r.spec), &p.Spec); err != nil {
				t.Fatal(err)
			}
			if p.Spec.Containers == nil {
				p.Spec.Containers = []v1.Container{container("app")}
			}
			complete(&p.Spec)
			if diff := gocmp.Diff(r.want, short(validate.Pod(p))); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
}

// complete does for containers what package defaults would.
func complete(s *v1.PodSpec) {
	for _, list := range [][]v1.Container{s.Containers, s.InitContainers} {
		for i := range list {
			c := &list[i]
			c.Image = cmp.Or(c.Image, "busybox:stable")
			c.ImagePullPolicy = cmp.Or(c.ImagePullPolicy, v1.PullIfNotPresent)
			c.TerminationMessagePolicy = cmp.Or(c.TerminationMessagePolicy, v1.TerminationMessageReadFile)
			for j := range c.Ports {
				c.Ports[j].Protocol = cmp.Or(c.Ports[j].Protocol, v1.ProtocolTCP)
			}
			for _, probe := range []*v1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
				if probe != nil {
					probe.SuccessThreshold = cmp.Or(probe.SuccessThreshold, 1)
				}
			}
		}
	}
}

func short(errs field.ErrorList) []string {
	var list []string
	for _, err := range errs {
		kind := strings.TrimPrefix(string(err.Type), "FieldValue")
		list = append(list, strings.TrimPrefix(err.Field, "spec.")+" "+kind)
	}
	slices.Sort(list)
	return list
}

func TestContainers(t *testing.T) {
	run(t, map[string]rule{
		"no containers":                                 {`containers: []`, []string{"containers Required"}},
		"a container without a name":                    {`containers: [{}]`, []string{"containers[0].name Required"}},
		"a name that is no label":                       {`containers: [{name: A_b}]`, []string{"containers[0].name Invalid"}},
		"two containers of one name":                    {`containers: [{name: a}, {name: a}]`, []string{"containers[1].name Duplicate"}},
		"an init container of the same name":            {`{containers: [{name: a}], initContainers: [{name: a}]}`, []string{"initContainers[0].name Duplicate"}},
		"no such pull policy":                           {`containers: [{name: a, imagePullPolicy: Sometimes}]`, []string{"containers[0].imagePullPolicy NotSupported"}},
		"no such message policy":                        {`containers: [{name: a, terminationMessagePolicy: Nope}]`, []string{"containers[0].terminationMessagePolicy NotSupported"}},
		"a probe of an init container":                  {`initContainers: [{name: a, livenessProbe: {exec: {command: [x]}}}]`, []string{"initContainers[0].livenessProbe Forbidden"}},
		"a probe of a sidecar is good":                  {`initContainers: [{name: a, restartPolicy: Always, livenessProbe: {exec: {command: [x]}}}]`, nil},
		"hooks of an init container":                    {`initContainers: [{name: a, lifecycle: {preStop: {exec: {command: [x]}}}}]`, []string{"initContainers[0].lifecycle Forbidden"}},
		"a container's own restart policy":              {`containers: [{name: a, restartPolicy: Nope}]`, []string{"containers[0].restartPolicy NotSupported"}},
		"restart rules without a policy":                {`containers: [{name: a, restartPolicyRules: [{action: Restart, exitCodes: {operator: In, values: [1]}}]}]`, []string{"containers[0].restartPolicy Required"}},
		"a restart rule that says nothing":              {`containers: [{name: a, restartPolicy: Never, restartPolicyRules: [{action: Stop}]}]`, []string{"containers[0].restartPolicyRules[0].action NotSupported", "containers[0].restartPolicyRules[0].exitCodes Required"}},
		"an init container that restarts in place":      {`initContainers: [{name: a, resizePolicy: [{resourceName: cpu, restartPolicy: RestartContainer}]}]`, []string{"initContainers[0].resizePolicy[0].restartPolicy Invalid"}},
		"a resize policy for a pod that never restarts": {`{restartPolicy: Never, containers: [{name: a, resizePolicy: [{resourceName: cpu, restartPolicy: RestartContainer}]}]}`, []string{"containers[0].resizePolicy Invalid"}},
		"two resize policies of one resource":           {`containers: [{name: a, resizePolicy: [{resourceName: cpu, restartPolicy: NotRequired}, {resourceName: cpu, restartPolicy: NotRequired}]}]`, []string{"containers[0].resizePolicy[1] Duplicate"}},
		"an ephemeral container with a manifest":        {`ephemeralContainers: [{name: a, image: a, imagePullPolicy: Never, terminationMessagePolicy: File}]`, []string{"ephemeralContainers Forbidden"}},
		"ports of an ephemeral container":               {`ephemeralContainers: [{name: a, image: a, imagePullPolicy: Never, terminationMessagePolicy: File, targetContainerName: nope, ports: [{containerPort: 1, protocol: TCP}]}]`, []string{"ephemeralContainers Forbidden", "ephemeralContainers[0].ports Forbidden", "ephemeralContainers[0].targetContainerName NotFound"}},
	})
}

func TestProbesAndHooks(t *testing.T) {
	run(t, map[string]rule{
		"a probe that does nothing":                   {`containers: [{name: a, livenessProbe: {}}]`, []string{"containers[0].livenessProbe Required"}},
		"a probe that does two things":                {`containers: [{name: a, livenessProbe: {exec: {command: [x]}, grpc: {port: 1}}}]`, []string{"containers[0].livenessProbe.grpc Forbidden"}},
		"a command without words":                     {`containers: [{name: a, readinessProbe: {exec: {command: []}}}]`, []string{"containers[0].readinessProbe.exec.command Required"}},
		"two successes of a liveness probe":           {`containers: [{name: a, livenessProbe: {exec: {command: [x]}, successThreshold: 2}}]`, []string{"containers[0].livenessProbe.successThreshold Invalid"}},
		"two successes of a readiness probe are good": {`containers: [{name: a, readinessProbe: {exec: {command: [x]}, successThreshold: 2}}]`, nil},
		"numbers below nothing": {`containers: [{name: a, startupProbe: {exec: {command: [x]}, initialDelaySeconds: -1, timeoutSeconds: -1, periodSeconds: -1, failureThreshold: -1}}]`, []string{
			"containers[0].startupProbe.failureThreshold Invalid", "containers[0].startupProbe.initialDelaySeconds Invalid",
			"containers[0].startupProbe.periodSeconds Invalid", "containers[0].startupProbe.timeoutSeconds Invalid",
		}},
		"a grace period of a readiness probe": {`containers: [{name: a, readinessProbe: {exec: {command: [x]}, terminationGracePeriodSeconds: 1}}]`, []string{"containers[0].readinessProbe.terminationGracePeriodSeconds Invalid"}},
		"a path, scheme and header of a request": {`containers: [{name: a, livenessProbe: {httpGet: {port: 80, scheme: ftp, httpHeaders: [{name: "a b", value: c}]}}}]`, []string{
			"containers[0].livenessProbe.httpGet.httpHeaders Invalid", "containers[0].livenessProbe.httpGet.path Required", "containers[0].livenessProbe.httpGet.scheme NotSupported",
		}},
		"h2c over TLS":                  {`containers: [{name: a, livenessProbe: {httpGet: {path: /, port: 80, scheme: HTTPS, protocol: HTTP2}}}]`, []string{"containers[0].livenessProbe.httpGet.protocol Invalid"}},
		"a sleep longer than the grace": {`containers: [{name: a, lifecycle: {preStop: {sleep: {seconds: 31}}}}]`, []string{"containers[0].lifecycle.preStop.sleep Invalid"}},
		"a sleep as long as the grace":  {`containers: [{name: a, lifecycle: {preStop: {sleep: {seconds: 30}}}}]`, nil},
		"a signal of no known system":   {`containers: [{name: a, lifecycle: {stopSignal: SIGUSR1}}]`, []string{"containers[0].lifecycle.stopSignal Forbidden"}},
		"a signal of Linux is good":     {`{os: {name: linux}, containers: [{name: a, lifecycle: {stopSignal: SIGRTMAX-14}}]}`, nil},
		"no signal of Windows":          {`{os: {name: windows}, securityContext: null, containers: [{name: a, lifecycle: {stopSignal: SIGUSR1}}]}`, []string{"containers[0].lifecycle.stopSignal NotSupported"}},
		"no signal at all":              {`{os: {name: linux}, containers: [{name: a, lifecycle: {stopSignal: SIGRTMAX-15}}]}`, []string{"containers[0].lifecycle.stopSignal NotSupported"}},
	})
}

func TestVariables(t *testing.T) {
	run(t, map[string]rule{
		"without a name":                     {`containers: [{name: a, env: [{value: x}]}]`, []string{"containers[0].env[0].name Required"}},
		"from nowhere":                       {`containers: [{name: a, env: [{name: A, valueFrom: {}}]}]`, []string{"containers[0].env[0].valueFrom Invalid"}},
		"with a value and from somewhere":    {`containers: [{name: a, env: [{name: A, value: x, valueFrom: {secretKeyRef: {name: s, key: k}}}]}]`, []string{"containers[0].env[0].valueFrom Invalid"}},
		"from two places":                    {`containers: [{name: a, env: [{name: A, valueFrom: {secretKeyRef: {name: s, key: k}, configMapKeyRef: {name: s, key: k}}}]}]`, []string{"containers[0].env[0].valueFrom Invalid"}},
		"from a key that cannot be":          {`containers: [{name: a, env: [{name: A, valueFrom: {secretKeyRef: {name: S, key: a/b}}}]}]`, []string{"containers[0].env[0].valueFrom.secretKeyRef.key Invalid", "containers[0].env[0].valueFrom.secretKeyRef.name Invalid"}},
		"from a field that is for volumes":   {`containers: [{name: a, env: [{name: A, valueFrom: {fieldRef: {apiVersion: v1, fieldPath: metadata.labels}}}]}]`, []string{"containers[0].env[0].valueFrom.fieldRef.fieldPath NotSupported"}},
		"from one label is good":             {`containers: [{name: a, env: [{name: A, valueFrom: {fieldRef: {apiVersion: v1, fieldPath: "metadata.labels['app']"}}}]}]`, nil},
		"from a field that does not exist":   {`containers: [{name: a, env: [{name: A, valueFrom: {fieldRef: {apiVersion: v1, fieldPath: spec.nope}}}]}]`, []string{"containers[0].env[0].valueFrom.fieldRef.fieldPath Invalid"}},
		"from a resource by a wrong divisor": {`containers: [{name: a, env: [{name: A, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: 1Mi}}}]}]`, []string{"containers[0].env[0].valueFrom.resourceFieldRef.divisor Invalid"}},
		"from a resource that is not there":  {`containers: [{name: a, env: [{name: A, valueFrom: {resourceFieldRef: {resource: limits.gpu}}}]}]`, []string{"containers[0].env[0].valueFrom.resourceFieldRef.resource NotSupported"}},
		"from a file in no volume":           {`containers: [{name: a, env: [{name: A, valueFrom: {fileKeyRef: {volumeName: v, key: K, path: p}}}]}]`, []string{"containers[0].env[0].valueFrom.fileKeyRef.volumeName NotFound"}},
		"all of nothing":                     {`containers: [{name: a, envFrom: [{configMapRef: {name: c}}, {}]}]`, []string{"containers[0].envFrom[1] Invalid"}},
		"all of two":                         {`containers: [{name: a, envFrom: [{configMapRef: {name: c}, secretRef: {name: s}}]}]`, []string{"containers[0].envFrom[0] Invalid"}},
	})
}

func TestMounts(t *testing.T) {
	const volumes = "volumes: [{name: v, emptyDir: {}}, {name: p, persistentVolumeClaim: {claimName: c}}, {name: i, image: {reference: a, pullPolicy: Always}}]\n"
	run(t, map[string]rule{
		"of a volume that is not there": {volumes + `containers: [{name: a, volumeMounts: [{name: nope, mountPath: /a}]}]`, []string{"containers[0].volumeMounts[0].name NotFound"}},
		"nowhere":                       {volumes + `containers: [{name: a, volumeMounts: [{name: v, mountPath: ""}]}]`, []string{"containers[0].volumeMounts[0].mountPath Required"}},
		"two at one place":              {volumes + `containers: [{name: a, volumeMounts: [{name: v, mountPath: /a}, {name: p, mountPath: /a}]}]`, []string{"containers[0].volumeMounts[1].mountPath Invalid"}},
		"one twice is good":             {volumes + `containers: [{name: a, volumeMounts: [{name: v, mountPath: /a}, {name: v, mountPath: /b, subPath: x/y}]}]`, nil},
		"a sub path that climbs":        {volumes + `containers: [{name: a, volumeMounts: [{name: v, mountPath: /a}, {name: v, mountPath: /b, subPath: a/../../b}]}]`, []string{"containers[0].volumeMounts[1].subPath Invalid"}},
		"a sub path of the root":        {volumes + `containers: [{name: a, volumeMounts: [{name: v, mountPath: /a, subPath: /etc}]}]`, []string{"containers[0].volumeMounts[0].subPath Invalid"}},
		"both sub paths":                {volumes + `containers: [{name: a, volumeMounts: [{name: v, mountPath: /a, subPath: a, subPathExpr: $(A)}]}]`, []string{"containers[0].volumeMounts[0].subPathExpr Invalid"}},
		"back to the host":              {volumes + `containers: [{name: a, volumeMounts: [{name: v, mountPath: /a, mountPropagation: Bidirectional}]}]`, []string{"containers[0].volumeMounts[0].mountPropagation Forbidden"}},
		"back to the host, privileged":  {volumes + `containers: [{name: a, securityContext: {privileged: true}, volumeMounts: [{name: v, mountPath: /a, mountPropagation: Bidirectional}]}]`, nil},
		"deeply read-only but not here": {volumes + `containers: [{name: a, volumeMounts: [{name: v, mountPath: /a, recursiveReadOnly: Enabled}]}]`, []string{"containers[0].volumeMounts[0].recursiveReadOnly Forbidden"}},
		"options of an image":           {volumes + `containers: [{name: a, volumeMounts: [{name: i, mountPath: /a, bindMountOptions: [noexec, noexec, nope]}]}]`, []string{"containers[0].volumeMounts[0].bindMountOptions Invalid", "containers[0].volumeMounts[0].bindMountOptions[1] Duplicate", "containers[0].volumeMounts[0].bindMountOptions[2] NotSupported"}},
		"a device of a folder":          {volumes + `containers: [{name: a, volumeDevices: [{name: v, devicePath: /dev/x}]}]`, []string{"containers[0].volumeDevices[0].name Invalid"}},
		"a device that climbs":          {volumes + `containers: [{name: a, volumeDevices: [{name: p, devicePath: /dev/../x}]}]`, []string{"containers[0].volumeDevices[0].devicePath Invalid"}},
		"a device that is mounted too":  {volumes + `containers: [{name: a, volumeMounts: [{name: p, mountPath: /a}], volumeDevices: [{name: p, devicePath: /a}]}]`, []string{"containers[0].volumeDevices[0].devicePath Invalid", "containers[0].volumeDevices[0].name Invalid", "containers[0].volumeMounts[0].mountPath Invalid", "containers[0].volumeMounts[0].name Invalid"}},
	})
}

func TestNetwork(t *testing.T) {
	run(t, map[string]rule{
		"a port without a number":                {`containers: [{name: a, ports: [{name: x}]}]`, []string{"containers[0].ports[0].containerPort Required"}},
		"a port above all":                       {`containers: [{name: a, ports: [{containerPort: 65536, hostPort: -1}]}]`, []string{"containers[0].ports[0].containerPort Invalid", "containers[0].ports[0].hostPort Invalid"}},
		"no such protocol":                       {`containers: [{name: a, ports: [{containerPort: 1, protocol: tcp}]}]`, []string{"containers[0].ports[0].protocol NotSupported"}},
		"a host port of two containers":          {`containers: [{name: a, ports: [{containerPort: 1, hostPort: 1}]}, {name: b, ports: [{containerPort: 2, hostPort: 1}]}]`, []string{"containers[1].ports[0].hostPort Duplicate"}},
		"a host port of two init containers":     {`initContainers: [{name: b, ports: [{containerPort: 1, hostPort: 1}]}, {name: c, ports: [{containerPort: 1, hostPort: 1}]}]`, nil},
		"a host port twice in an init container": {`initContainers: [{name: b}, {name: c, ports: [{containerPort: 1, hostPort: 1}, {containerPort: 2, hostPort: 1}]}]`, []string{"initContainers[1].ports[1].hostPort Duplicate"}},
		"another port in the host's network":     {`{hostNetwork: true, containers: [{name: a, ports: [{containerPort: 80, hostPort: 8080}]}]}`, []string{"containers[0].ports[0].hostPort Invalid"}},
		"no such DNS policy":                     {`dnsPolicy: Cluster`, []string{"dnsPolicy NotSupported"}},
		"a search domain that is none":           {`dnsConfig: {searches: [a.test, ".", _x.test., A]}`, []string{"dnsConfig.searches[3] Invalid"}},
		"an option without a name":               {`dnsConfig: {options: [{value: "1"}]}`, []string{"dnsConfig.options[0] Required"}},
		"an alias of no address":                 {`hostAliases: [{ip: 010.0.0.1, hostnames: [a.test, a_b]}]`, []string{"hostAliases[0].hostnames[1] Invalid", "hostAliases[0].ip Invalid"}},
		"a subdomain with a dot":                 {`subdomain: a.b`, []string{"subdomain Invalid"}},
		"a hostname in the host's network":       {`{hostNetwork: true, hostnameOverride: web}`, []string{"hostnameOverride Forbidden"}},
		"a hostname of two kinds":                {`{setHostnameAsFQDN: true, hostnameOverride: web.test}`, []string{"hostnameOverride Forbidden"}},
	})
}

func TestVolumes(t *testing.T) {
	run(t, map[string]rule{
		"without a name":                    {`volumes: [{emptyDir: {}}]`, []string{"volumes[0].name Required"}},
		"two of one name":                   {`volumes: [{name: v, emptyDir: {}}, {name: v, emptyDir: {}}]`, []string{"volumes[1].name Duplicate"}},
		"of no type":                        {`volumes: [{name: v}]`, []string{"volumes[0] Required"}},
		"of two types":                      {`volumes: [{name: v, emptyDir: {}, hostPath: {path: /a, type: ""}}]`, []string{"volumes[0].hostPath Forbidden"}},
		"of the host without a path":        {`volumes: [{name: v, hostPath: {path: ""}}]`, []string{"volumes[0].hostPath.path Required"}},
		"of the host of no such type":       {`volumes: [{name: v, hostPath: {path: /a, type: Pipe}}]`, []string{"volumes[0].hostPath.type NotSupported"}},
		"a mode of more than permissions":   {`volumes: [{name: v, secret: {secretName: s, defaultMode: 01000}}]`, []string{"volumes[0].secret.defaultMode Invalid"}},
		"a secret without a name":           {`volumes: [{name: v, secret: {items: [{key: "", path: ../a}]}}]`, []string{"volumes[0].secret.items[0].key Required", "volumes[0].secret.items[0].path Invalid", "volumes[0].secret.secretName Required"}},
		"a file where the node has its own": {`volumes: [{name: v, configMap: {name: c, items: [{key: k, path: ..data}]}}]`, []string{"volumes[0].configMap.items[0].path Invalid"}},
		"a field and a resource in a file":  {`volumes: [{name: v, downwardAPI: {items: [{path: p, fieldRef: {apiVersion: v1, fieldPath: metadata.name}, resourceFieldRef: {resource: limits.cpu}}]}}]`, []string{"volumes[0].downwardAPI.items[0] Invalid"}},
		"a resource of no container":        {`volumes: [{name: v, downwardAPI: {items: [{path: p, resourceFieldRef: {resource: limits.cpu}}]}}]`, []string{"volumes[0].downwardAPI.items[0].resourceFieldRef.containerName Required"}},
		"two files of one path":             {`volumes: [{name: v, projected: {sources: [{secret: {name: s, items: [{key: k, path: a}]}}, {configMap: {name: c, items: [{key: k, path: a}]}}]}}]`, []string{"volumes[0].projected Invalid"}},
		"two kinds in one source":           {`volumes: [{name: v, projected: {sources: [{secret: {name: s}, configMap: {name: c}}]}}]`, []string{"volumes[0].projected.sources[0] Forbidden"}},
		"a token without an account":        {`volumes: [{name: v, projected: {sources: [{serviceAccountToken: {path: t, expirationSeconds: 3600}}]}}]`, []string{"volumes[0].projected.sources[0].serviceAccountToken Forbidden"}},
		"a token of five minutes":           {`{serviceAccountName: bot, serviceAccount: bot, volumes: [{name: v, projected: {sources: [{serviceAccountToken: {path: t, expirationSeconds: 300}}]}}]}`, []string{"volumes[0].projected.sources[0].serviceAccountToken.expirationSeconds Invalid"}},
		"a bundle of a signer is good":      {`volumes: [{name: v, projected: {sources: [{clusterTrustBundle: {name: "example.com:x:b", path: ca.crt}}]}}]`, nil},
		"a bundle with a slash":             {`volumes: [{name: v, projected: {sources: [{clusterTrustBundle: {name: "example.com/x:b", path: ca.crt}}]}}]`, []string{"volumes[0].projected.sources[0].clusterTrustBundle.name Invalid"}},
		"a certificate of no signer":        {`volumes: [{name: v, projected: {sources: [{podCertificate: {signerName: example, keyType: DSA, maxExpirationSeconds: 60}}]}}]`, []string{"volumes[0].projected.sources[0].podCertificate Required", "volumes[0].projected.sources[0].podCertificate.keyType NotSupported", "volumes[0].projected.sources[0].podCertificate.maxExpirationSeconds Invalid", "volumes[0].projected.sources[0].podCertificate.signerName Invalid"}},
		"NFS of a relative path":            {`volumes: [{name: v, nfs: {server: s, path: a}}]`, []string{"volumes[0].nfs.path Invalid"}},
		"iSCSI without a name":              {`volumes: [{name: v, iscsi: {targetPortal: p, iqn: iqn.2001-04, lun: 256, chapAuthSession: true}}]`, []string{"volumes[0].iscsi.iqn Invalid", "volumes[0].iscsi.lun Invalid", "volumes[0].iscsi.secretRef Required"}},
		"a claim of this pod":               {`volumes: [{name: v, ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}}, {name: w, persistentVolumeClaim: {claimName: web-v}}]`, []string{"volumes[1].persistentVolumeClaim.claimName Invalid"}},
		"a claim of no size, by two modes":  {`volumes: [{name: v, ephemeral: {volumeClaimTemplate: {metadata: {name: x}, spec: {accessModes: [ReadWriteOncePod, ReadWriteOnce]}}}}]`, []string{"volumes[0].ephemeral.volumeClaimTemplate.metadata.name Forbidden", "volumes[0].ephemeral.volumeClaimTemplate.spec.accessModes Forbidden", "volumes[0].ephemeral.volumeClaimTemplate.spec.resources[storage] Required"}},
		"two sources of data":               {`volumes: [{name: v, ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}, dataSource: {kind: PersistentVolumeClaim, name: a}, dataSourceRef: {kind: PersistentVolumeClaim, name: b}}}}}]`, []string{"volumes[0].ephemeral.volumeClaimTemplate.spec Invalid"}},
	})
}
