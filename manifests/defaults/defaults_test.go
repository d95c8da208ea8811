package defaults_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/podkeeper/podkeeper/manifests/defaults"
	v1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

func parse(t *testing.T, text string) *v1.Pod {
	t.Helper()
	var p v1.Pod
	if err := yaml.UnmarshalStrict([]byte(text), &p); err != nil {
		t.Fatal(err)
	}
	return &p
}

// check compares the defaulted pod with what is wanted, both as YAML, so that a
// field which is wanted absent is seen.
func check(t *testing.T, in, want string) {
	t.Helper()
	p := parse(t, in)
	defaults.Pod(p)
	got, err := yaml.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := yaml.Marshal(parse(t, want))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(whole), string(got)); diff != "" {
		t.Errorf("defaulted pod (-want +got):\n%s", diff)
	}
	defaults.Pod(p)
	again, err := yaml.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(got), string(again)); diff != "" {
		t.Errorf("a second time changes the pod (-once +twice):\n%s", diff)
	}
}

// scalars is what every pod gets, to be followed by the rest of the spec.
const scalars = `
spec:
  restartPolicy: Always
  dnsPolicy: ClusterFirst
  schedulerName: default-scheduler
  enableServiceLinks: true
  securityContext: {}
  terminationGracePeriodSeconds: 30
`

func TestPod(t *testing.T) {
	tests := map[string]struct{ in, want string }{
		"a pod and its container": {
			in: `spec: {containers: [{name: a, image: "a:1"}]}`,
			want: scalars + `
  containers:
  - {name: a, image: "a:1", imagePullPolicy: IfNotPresent, terminationMessagePath: /dev/termination-log, terminationMessagePolicy: File}`,
		},
		"what is set stays": {
			in: `spec: {restartPolicy: Never, dnsPolicy: Default, schedulerName: s, enableServiceLinks: false,
  securityContext: {runAsUser: 1}, terminationGracePeriodSeconds: 0,
  containers: [{name: a, image: "a:1", imagePullPolicy: Never, terminationMessagePath: /t, terminationMessagePolicy: FallbackToLogsOnError}]}`,
			want: `spec: {restartPolicy: Never, dnsPolicy: Default, schedulerName: s, enableServiceLinks: false,
  securityContext: {runAsUser: 1}, terminationGracePeriodSeconds: 0,
  containers: [{name: a, image: "a:1", imagePullPolicy: Never, terminationMessagePath: /t, terminationMessagePolicy: FallbackToLogsOnError}]}`,
		},
		"a grace period below nothing is one second": {
			in: `spec: {terminationGracePeriodSeconds: -5, containers: []}`,
			want: `
spec: {restartPolicy: Always, dnsPolicy: ClusterFirst, schedulerName: default-scheduler, enableServiceLinks: true,
  securityContext: {}, terminationGracePeriodSeconds: 1, containers: []}`,
		},
		"the old name of the service account": {
			in: `spec: {serviceAccount: bot, containers: []}`,
			want: scalars + `
  serviceAccount: bot
  serviceAccountName: bot
  containers: []`,
		},
		"the new name of the service account wins": {
			in: `spec: {serviceAccount: bot, serviceAccountName: robot, containers: []}`,
			want: scalars + `
  serviceAccount: robot
  serviceAccountName: robot
  containers: []`,
		},
		"ports, variables, probes and hooks": {
			in: `
spec:
  containers:
  - name: a
    image: a:1
    imagePullPolicy: Always
    terminationMessagePath: /t
    terminationMessagePolicy: File
    ports: [{containerPort: 80}, {containerPort: 53, protocol: UDP}]
    env:
    - {name: A, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
    - {name: B, valueFrom: {fileKeyRef: {key: K, volumeName: v, path: p}}}
    livenessProbe: {httpGet: {port: 80}}
    readinessProbe: {grpc: {port: 81}, periodSeconds: 3}
    startupProbe: {exec: {command: ["true"]}, timeoutSeconds: 2, successThreshold: 4, failureThreshold: 5}
    lifecycle: {postStart: {httpGet: {port: 80, scheme: HTTPS}}, preStop: {httpGet: {port: 80, path: /bye}}}`,
			want: scalars + `
  containers:
  - name: a
    image: a:1
    imagePullPolicy: Always
    terminationMessagePath: /t
    terminationMessagePolicy: File
    ports: [{containerPort: 80, protocol: TCP}, {containerPort: 53, protocol: UDP}]
    env:
    - {name: A, valueFrom: {fieldRef: {fieldPath: metadata.name, apiVersion: v1}}}
    - {name: B, valueFrom: {fileKeyRef: {key: K, volumeName: v, path: p, optional: false}}}
    livenessProbe: {httpGet: {port: 80, path: /, scheme: HTTP}, timeoutSeconds: 1, periodSeconds: 10, successThreshold: 1, failureThreshold: 3}
    readinessProbe: {grpc: {port: 81, service: ""}, timeoutSeconds: 1, periodSeconds: 3, successThreshold: 1, failureThreshold: 3}
    startupProbe: {exec: {command: ["true"]}, timeoutSeconds: 2, periodSeconds: 10, successThreshold: 4, failureThreshold: 5}
    lifecycle: {postStart: {httpGet: {port: 80, path: /, scheme: HTTPS}}, preStop: {httpGet: {port: 80, path: /bye, scheme: HTTP}}}`,
		},
		"ports in the host's network are the host's, init containers' too": {
			in: `
spec:
  hostNetwork: true
  containers:
  - {name: a, image: "a:1", imagePullPolicy: Always, terminationMessagePath: /t, terminationMessagePolicy: File, ports: [{containerPort: 80}, {containerPort: 81, hostPort: 82}]}
  initContainers:
  - {name: b, image: "a:1", imagePullPolicy: Always, terminationMessagePath: /t, terminationMessagePolicy: File, ports: [{containerPort: 80}]}`,
			want: scalars + `
  hostNetwork: true
  containers:
  - {name: a, image: "a:1", imagePullPolicy: Always, terminationMessagePath: /t, terminationMessagePolicy: File, ports: [{containerPort: 80, hostPort: 80, protocol: TCP}, {containerPort: 81, hostPort: 82, protocol: TCP}]}
  initContainers:
  - {name: b, image: "a:1", imagePullPolicy: Always, terminationMessagePath: /t, terminationMessagePolicy: File, ports: [{containerPort: 80, hostPort: 80, protocol: TCP}]}`,
		},
		"volumes": {
			in: `
spec:
  containers: []
  volumes:
  - {name: none}
  - {name: host, hostPath: {path: /h}}
  - {name: secret, secret: {secretName: s}}
  - {name: config, configMap: {name: c, defaultMode: 0}}
  - {name: downward, downwardAPI: {items: [{path: p, fieldRef: {fieldPath: metadata.name}}]}}
  - {name: projected, projected: {sources: [{serviceAccountToken: {path: t}}, {downwardAPI: {items: [{path: p, fieldRef: {fieldPath: metadata.uid}}]}}]}}
  - {name: iscsi, iscsi: {targetPortal: p, iqn: iqn, lun: 0}}
  - {name: rbd, rbd: {monitors: [m], image: i}}
  - {name: disk, azureDisk: {diskName: d, diskURI: u}}
  - {name: scale, scaleIO: {gateway: g, system: s, secretRef: {name: x}}}
  - {name: image, image: {reference: a}}
  - {name: claim, ephemeral: {volumeClaimTemplate: {spec: {resources: {requests: {storage: 1500u}}}}}}`,
			want: scalars + `
  containers: []
  volumes:
  - {name: none, emptyDir: {}}
  - {name: host, hostPath: {path: /h, type: ""}}
  - {name: secret, secret: {secretName: s, defaultMode: 0644}}
  - {name: config, configMap: {name: c, defaultMode: 0}}
  - {name: downward, downwardAPI: {defaultMode: 0644, items: [{path: p, fieldRef: {fieldPath: metadata.name, apiVersion: v1}}]}}
  - {name: projected, projected: {defaultMode: 0644, sources: [{serviceAccountToken: {path: t, expirationSeconds: 3600}}, {downwardAPI: {items: [{path: p, fieldRef: {fieldPath: metadata.uid, apiVersion: v1}}]}}]}}
  - {name: iscsi, iscsi: {targetPortal: p, iqn: iqn, lun: 0, iscsiInterface: default}}
  - {name: rbd, rbd: {monitors: [m], image: i, pool: rbd, user: admin, keyring: /etc/ceph/keyring}}
  - {name: disk, azureDisk: {diskName: d, diskURI: u, cachingMode: ReadWrite, fsType: ext4, readOnly: false, kind: Shared}}
  - {name: scale, scaleIO: {gateway: g, system: s, secretRef: {name: x}, storageMode: ThinProvisioned, fsType: xfs}}
  - {name: image, image: {reference: a, pullPolicy: Always}}
  - {name: claim, ephemeral: {volumeClaimTemplate: {spec: {volumeMode: Filesystem, resources: {requests: {storage: 2m}}}}}}`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { check(t, test.in, test.want) })
	}
}

// C135: the policy follows from the tag, and from there being none.
func TestPullPolicies(t *testing.T) {
	tests := map[string]v1.PullPolicy{
		"registry.local/app":        v1.PullAlways,
		"registry.local/app:latest": v1.PullAlways,
		"registry.local/app:1":      v1.PullIfNotPresent,
		"registry.local:5000/app":   v1.PullAlways,
		"registry.local:5000/app:1": v1.PullIfNotPresent,
		"registry.local/app@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa":        v1.PullIfNotPresent,
		"registry.local/app:latest@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa": v1.PullAlways,
		"Not an image": v1.PullIfNotPresent,
	}
	for image, want := range tests {
		t.Run(image, func(t *testing.T) {
			p := &v1.Pod{Spec: v1.PodSpec{
				InitContainers: []v1.Container{{Image: image}},
				Containers:     []v1.Container{{Image: image}, {Image: image, ImagePullPolicy: v1.PullNever}},
			}}
			defaults.Pod(p)
			got := []v1.PullPolicy{
				p.Spec.InitContainers[0].ImagePullPolicy, p.Spec.Containers[0].ImagePullPolicy, p.Spec.Containers[1].ImagePullPolicy,
			}
			if diff := cmp.Diff([]v1.PullPolicy{want, want, v1.PullNever}, got); diff != "" {
				t.Errorf("pull policies (-want +got):\n%s", diff)
			}
		})
	}
}
