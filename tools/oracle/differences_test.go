package oracle_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/podkeeper/podkeeper/tools/oracle"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Each difference that is meant, and that it is there: one that upstream has done
// away with fails here, and is to be taken off the list.
func TestDifferencesThatAreMeant(t *testing.T) {
	volume := func(source v1.VolumeSource) func(*v1.Pod) {
		return func(p *v1.Pod) { p.Spec.Volumes = []v1.Volume{{Name: "v", VolumeSource: source}} }
	}
	mount := func(edit func(*v1.VolumeMount)) func(*v1.Pod) {
		return func(p *v1.Pod) {
			volume(v1.VolumeSource{})(p)
			m := v1.VolumeMount{Name: "v", MountPath: "/v"}
			edit(&m)
			p.Spec.Containers[0].VolumeMounts = []v1.VolumeMount{m}
		}
	}
	two := v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}
	both := func(edit func(*v1.VolumeSource)) func(*v1.Pod) {
		source := two
		edit(&source)
		return volume(source)
	}
	tests := map[string]struct {
		edit         func(*v1.Pod)
		ours, theirs []string
	}{
		"C024: a variable's name that no shell can read": {
			edit: func(p *v1.Pod) { p.Spec.Containers[0].Env = []v1.EnvVar{{Name: "1X"}} },
			ours: []string{"spec.containers[0].env[0].name"},
		},
		"C095: a number in quotes as the port of a probe": {
			edit: func(p *v1.Pod) {
				p.Spec.Containers[0].LivenessProbe = &v1.Probe{ProbeHandler: v1.ProbeHandler{
					TCPSocket: &v1.TCPSocketAction{Port: intstr.FromString("80")},
				}}
			},
			theirs: []string{"spec.containers[0].livenessProbe.tcpSocket.port"},
		},
		"a sub path": {
			edit:   mount(func(m *v1.VolumeMount) { m.SubPath = "../a" }),
			ours:   []string{"spec.containers[0].volumeMounts[0].subPath"},
			theirs: []string{"spec.containers[0].volumeMounts.subPath"},
		},
		"a propagation": {
			edit:   mount(func(m *v1.VolumeMount) { m.MountPropagation = new(v1.MountPropagationBidirectional) }),
			ours:   []string{"spec.containers[0].volumeMounts[0].mountPropagation"},
			theirs: []string{"spec.containers[0].volumeMounts.mountPropagation"},
		},
		"a source of variables": {
			edit:   func(p *v1.Pod) { p.Spec.Containers[0].EnvFrom = []v1.EnvFromSource{{}} },
			ours:   []string{"spec.containers[0].envFrom[0]"},
			theirs: []string{"spec.containers[0].envFrom"},
		},
		"a file of the downward API": {
			edit: volume(v1.VolumeSource{DownwardAPI: &v1.DownwardAPIVolumeSource{Items: []v1.DownwardAPIVolumeFile{{
				Path: "/abs", FieldRef: &v1.ObjectFieldSelector{FieldPath: "metadata.name"},
			}}}}),
			ours:   []string{"spec.volumes[0].downwardAPI.items[0].path"},
			theirs: []string{"spec.volumes[0].downwardAPI.path"},
		},
		"a token": {
			edit: func(p *v1.Pod) {
				p.Spec.ServiceAccountName = "bot"
				volume(v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{Sources: []v1.VolumeProjection{
					{ServiceAccountToken: &v1.ServiceAccountTokenProjection{}},
				}}})(p)
			},
			ours:   []string{"spec.volumes[0].projected.sources[0].serviceAccountToken.path"},
			theirs: []string{"spec.volumes[0].projected.path"},
		},
		"host ports of the second init container": {
			edit: func(p *v1.Pod) {
				p.Spec.InitContainers = []v1.Container{{Name: "a", Image: "a"}, {Name: "b", Image: "b", Ports: []v1.ContainerPort{
					{ContainerPort: 1, HostPort: 1}, {ContainerPort: 1, HostPort: 1},
				}}}
			},
			ours:   []string{"spec.initContainers[1].ports[1].hostPort"},
			theirs: []string{"spec.initContainers[0].ports[1].hostPort"},
		},
		"a disk of GCE": {
			edit:   volume(v1.VolumeSource{GCEPersistentDisk: &v1.GCEPersistentDiskVolumeSource{}}),
			ours:   []string{"spec.volumes[0].gcePersistentDisk.pdName"},
			theirs: []string{"spec.volumes[0].persistentDisk.pdName"},
		},
		"a second kind: cephfs": {
			edit:   both(func(v *v1.VolumeSource) { v.CephFS = &v1.CephFSVolumeSource{} }),
			ours:   []string{"spec.volumes[0].cephfs"},
			theirs: []string{"spec.volumes[0].cephFS"},
		},
		"a second kind: the downward API": {
			edit:   both(func(v *v1.VolumeSource) { v.DownwardAPI = &v1.DownwardAPIVolumeSource{} }),
			ours:   []string{"spec.volumes[0].downwardAPI"},
			theirs: []string{"spec.volumes[0].downwarAPI"},
		},
		"an initiator of iSCSI": {
			edit: volume(v1.VolumeSource{ISCSI: &v1.ISCSIVolumeSource{
				TargetPortal: "p", IQN: "iqn.2001-04.com.example:disk", InitiatorName: new("x"),
			}}),
			ours:   []string{"spec.volumes[0].iscsi.initiatorName"},
			theirs: []string{"spec.volumes[0].iscsi.initiatorname"},
		},
		"a secret of CSI": {
			edit: volume(v1.VolumeSource{CSI: &v1.CSIVolumeSource{
				Driver: "csi.example.com", NodePublishSecretRef: &v1.LocalObjectReference{Name: "A"},
			}}),
			ours:   []string{"spec.volumes[0].csi.nodePublishSecretRef.name"},
			theirs: []string{"spec.volumes[0].csi.name"},
		},
		"a claim that wants to be somebody": {
			edit: func(p *v1.Pod) {
				template := v1.PersistentVolumeClaimTemplate{ObjectMeta: metav1.ObjectMeta{UID: "1"}}
				template.Spec.AccessModes = []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}
				template.Spec.Resources.Requests = v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")}
				volume(v1.VolumeSource{Ephemeral: &v1.EphemeralVolumeSource{VolumeClaimTemplate: &template}})(p)
			},
			ours:   []string{"spec.volumes[0].ephemeral.volumeClaimTemplate.metadata.uid"},
			theirs: []string{"spec.volumes[0].ephemeral.volumeClaimTemplate.metadata.uID"},
		},
		"the host's namespaces without its users": {
			edit: func(p *v1.Pod) {
				p.Spec.HostUsers, p.Spec.HostPID, p.Spec.HostIPC = new(false), true, true
			},
			ours:   []string{"spec.hostIPC", "spec.hostPID"},
			theirs: []string{"spec.HostIPC", "spec.HostPID"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"}}
			p.Spec.Containers = []v1.Container{{Name: "web", Image: "web"}}
			test.edit(p)
			ours := oracle.Ours(p)
			theirs, err := oracle.Theirs(p)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.ours, fields(ours.Errors)); diff != "" {
				t.Errorf("our errors (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.theirs, fields(theirs.Errors)); diff != "" {
				t.Errorf("their errors (-want +got):\n%s", diff)
			}
			compare(t, p, name)
		})
	}
}

func fields(errs field.ErrorList) []string {
	var list []string
	for _, err := range errs {
		list = append(list, err.Field)
	}
	slices.Sort(list)
	return list
}
