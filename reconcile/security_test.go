package reconcile_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/podkeeper/podkeeper/reconcile"
	"github.com/podkeeper/podkeeper/runtime"
)

// C100, C103: the container's settings win field by field, and the image decides
// where both are silent.
func TestSecurity(t *testing.T) {
	for name, test := range map[string]struct {
		pod, container, image string
		want                  runtime.Security
		why                   string
	}{
		"nothing":      {"", "", "", runtime.Security{}, ""},
		"image's user": {"", "", "1000:1000", runtime.Security{}, ""},
		"all of the pod's": {
			"runAsUser: 1, runAsGroup: 2, supplementalGroups: [3, 4], fsGroup: 5, seccompProfile: {type: RuntimeDefault}, seLinuxOptions: {type: a, level: s0}, appArmorProfile: {type: Localhost, localhostProfile: p}",
			"", "",
			runtime.Security{User: "1:2", Groups: []int64{3, 4, 5}, Seccomp: runtime.SeccompDefault, SELinux: v1.SELinuxOptions{Type: "a", Level: "s0"}, AppArmor: "p"}, "",
		},
		"the container's instead": {
			"runAsUser: 1, runAsGroup: 2, runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}, seLinuxOptions: {type: a, level: s0}, appArmorProfile: {type: Localhost, localhostProfile: p}",
			"runAsUser: 0, runAsNonRoot: false, seccompProfile: {type: Unconfined}, seLinuxOptions: {type: b}, appArmorProfile: {type: Unconfined}", "",
			runtime.Security{User: "0:2", SELinux: v1.SELinuxOptions{Type: "b"}, AppArmor: "unconfined"}, "",
		},
		"all of the container's": {
			"", "privileged: true, readOnlyRootFilesystem: true, capabilities: {add: [NET_ADMIN, CAP_SYS_TIME], drop: [ALL]}, procMount: Unmasked", "",
			runtime.Security{Privileged: true, ReadOnlyRoot: true, AddCapabilities: []string{"NET_ADMIN", "SYS_TIME"}, DropCapabilities: []string{"ALL"}, UnmaskedProc: true}, "",
		},
		"escalation forbidden":     {"", "allowPrivilegeEscalation: false", "", runtime.Security{NoNewPrivileges: true}, ""},
		"escalation allowed":       {"", "allowPrivilegeEscalation: true, procMount: Default, privileged: false", "", runtime.Security{}, ""},
		"a local profile":          {"", "seccompProfile: {type: Localhost, localhostProfile: a/b.json}", "", runtime.Security{Seccomp: "localhost/a/b.json"}, ""},
		"AppArmor as the engine's": {"", "appArmorProfile: {type: RuntimeDefault}", "", runtime.Security{}, ""},

		"group alone, image without a user": {"runAsGroup: 5", "", "", runtime.Security{User: "0:5"}, ""},
		"group alone, named user":           {"runAsGroup: 5", "", "web:www", runtime.Security{User: "web:5"}, ""},
		"user alone drops the image's":      {"runAsUser: 5", "", "1000:1000", runtime.Security{User: "5"}, ""},

		"non-root, numeric":           {"runAsNonRoot: true", "", "1000", runtime.Security{User: "1000"}, ""},
		"non-root, numeric and group": {"runAsNonRoot: true", "", "1000:5", runtime.Security{User: "1000:5"}, ""},
		"non-root, group by name":     {"runAsNonRoot: true", "", "1000:www", runtime.Security{User: "1000"}, ""},
		"non-root, own group":         {"runAsNonRoot: true, runAsGroup: 7", "", "1000:www", runtime.Security{User: "1000:7"}, ""},
		"non-root, no user":           {"runAsNonRoot: true", "", "", runtime.Security{}, "container has runAsNonRoot and image will run as root"},
		"non-root, zero":              {"runAsNonRoot: true", "", "00:5", runtime.Security{}, "container has runAsNonRoot and image will run as root"},
		"non-root, named":             {"runAsNonRoot: true", "", "web", runtime.Security{}, "container has runAsNonRoot and image has non-numeric user (web), cannot verify user is non-root"},
		"non-root, given":             {"runAsNonRoot: true, runAsUser: 3", "", "web", runtime.Security{User: "3"}, ""},
		"non-root, given as zero":     {"runAsNonRoot: true", "runAsUser: 0", "1000", runtime.Security{}, "container's runAsUser breaks non-root policy"},
	} {
		var p v1.Pod
		if err := yaml.UnmarshalStrict([]byte("spec: {securityContext: {"+test.pod+"}, containers: [{securityContext: {"+test.container+"}}]}"), &p); err != nil {
			t.Fatal(err)
		}
		got, w := reconcile.Security(&p, &p.Spec.Containers[0], runtime.ImageInfo{User: test.image})
		if diff := cmp.Diff(test.want, got); diff != "" || w.Message != test.why {
			t.Errorf("%s: it waits for %q, want %q (-want +got):\n%s", name, w, test.why, diff)
		}
	}
}

// The annotations that were there before the field hold where no field does.
func TestAppArmorAnnotation(t *testing.T) {
	for annotation, want := range map[string]string{"unconfined": "unconfined", "runtime/default": "", "localhost/x/y": "x/y", "nonsense": ""} {
		var p v1.Pod
		if err := yaml.Unmarshal([]byte("metadata: {annotations: {container.apparmor.security.beta.kubernetes.io/c: "+annotation+"}}\nspec: {containers: [{name: c}, {name: d}]}"), &p); err != nil {
			t.Fatal(err)
		}
		for i, want := range []string{want, ""} {
			if got, _ := reconcile.Security(&p, &p.Spec.Containers[i], runtime.ImageInfo{}); got.AppArmor != want {
				t.Errorf("%s: container %d has %q, want %q", annotation, i, got.AppArmor, want)
			}
		}
	}
}
