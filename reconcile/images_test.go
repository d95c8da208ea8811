package reconcile_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/reconcile"
	"github.com/podkeeper/podkeeper/runtime"
	"github.com/podkeeper/podkeeper/runtime/fake"
)

// keyring has a login for each secret, and may have one of the node's.
type keyring struct{ node *atomic.Value }

func (k keyring) Find(_ context.Context, image string, secrets []*pod.Object) ([]runtime.Auth, error) {
	var logins []runtime.Auth
	for _, s := range secrets {
		logins = append(logins, runtime.Auth{Password: s.Data["password"].Reveal()})
	}
	if password, ok := k.node.Load().(string); ok {
		logins = append(logins, runtime.Auth{Password: password})
	}
	return logins, errors.New("a file is broken")
}

func pullSecret(name, password string) string {
	return "apiVersion: v1\nkind: Secret\nmetadata: {name: " + name + "}\nstringData: {password: " + password + "}\n---\n"
}

func withSecrets(text string, names ...string) string {
	return text + "  imagePullSecrets: [{name: " + strings.Join(names, "}, {name: ") + "}]\n"
}

const private = "{name: c, image: private:1}"

func waiting(t *testing.T, snap reconcile.Snapshot, name string) reconcile.Waiting {
	t.Helper()
	for _, v := range snap.Pods {
		if v.Object.Name == name+"-node" {
			return v.Plan.Waiting["c"]
		}
	}
	t.Fatalf("there is no pod %s", name)
	return reconcile.Waiting{}
}

// A pod that may not pull an image keeps no other from pulling it with its own
// secret (law 7), and has it then.
func TestPullsWithDifferentSecrets(t *testing.T) {
	inRig(t, func(r *rig) {
		r.engine.SetImage("private:1", fake.Image{Pullable: true, Login: runtime.Auth{Password: "right"}})
		nobody := manifest("a", "", private)
		r.want(nobody)
		if got := waiting(t, r.after(time.Minute), "a"); got.Reason != reconcile.ImagePullBackOff {
			t.Errorf("without a secret it waits with %s", got)
		}
		wrong := withSecrets(manifest("b", "", private), "wrong")
		r.wantWith(pullSecret("wrong", "wrong"), nobody, wrong)
		if got := waiting(t, r.after(time.Second), "b"); got.Reason != reconcile.ImagePullBackOff {
			t.Errorf("with a wrong secret it waits with %s", got)
		}
		r.wantWith(pullSecret("wrong", "wrong")+pullSecret("right", "right"), nobody, wrong, withSecrets(manifest("d", "", private), "wrong", "right"))
		if got := phases(r.after(time.Second)); got["d"] != v1.PodRunning || got["a"] != v1.PodRunning || got["b"] != v1.PodRunning {
			t.Errorf("once one of them could pull it, the pods are %v", got)
		}
	})
}

// A secret that is missing does not stop a pull, and is named where that fails.
// When it comes, or changes, the pull is tried at once.
func TestPullSecretThatComes(t *testing.T) {
	inRig(t, func(r *rig) {
		r.engine.SetImage("private:1", fake.Image{Pullable: true, Login: runtime.Auth{Password: "right"}})
		a := withSecrets(manifest("a", "", private), "mine")
		r.want(a, withSecrets(manifest("b", "", "{name: c, image: remote:1}"), "mine"))
		snap := r.after(10 * time.Minute)
		if got := waiting(t, snap, "a"); got.Reason != reconcile.ImagePullBackOff || !strings.Contains(got.Message, `imagePullSecrets: secret "mine" not found`) {
			t.Errorf("it waits: %s", got)
		}
		if got := phases(snap)["b"]; got != v1.PodRunning {
			t.Errorf("with an image that everybody may pull it is %s", got)
		}
		before := r.log.count("image cannot be had")
		r.wantWith(pullSecret("mine", "wrong"), a)
		if got := phases(r.after(time.Second))["a"]; got != v1.PodPending || r.log.count("image cannot be had") != before+1 {
			t.Errorf("with a wrong secret it is %s, after %d more pulls, want Pending and 1", got, r.log.count("image cannot be had")-before)
		}
		r.wantWith(pullSecret("mine", "right"), a)
		if got := phases(r.after(time.Second))["a"]; got != v1.PodRunning {
			t.Errorf("with the right secret it is %s", got)
		}
	})
}

// The node's logins are tried after those of the pod.
func TestPullWithLoginOfTheNode(t *testing.T) {
	inRig(t, func(r *rig) {
		r.login.Store("right")
		r.engine.SetImage("private:1", fake.Image{Pullable: true, Login: runtime.Auth{Password: "right"}})
		r.wantWith(pullSecret("wrong", "wrong"), withSecrets(manifest("a", "", private), "wrong"))
		if got := phases(r.after(time.Second))["a"]; got != v1.PodRunning {
			t.Errorf("it is %s", got)
		}
	})
}

// The image of a volume is got as its policy says, beside that of the container,
// and mounted read-only with the path that is asked for.
func TestImageVolume(t *testing.T) {
	inRig(t, func(r *rig) {
		r.engine.SetFeatures(runtime.Features{ImageMounts: true})
		r.engine.BreakConnections()
		r.engine.SetImage("data:1", fake.Image{})
		text := manifest("a", "", "{name: c, image: present:1, volumeMounts: [{name: data, mountPath: /data}]}") +
			"  volumes: [{name: data, image: {reference: data:1, pullPolicy: IfNotPresent}}]\n"
		r.want(text)
		if got := waiting(t, r.after(time.Minute), "a"); got.Reason != reconcile.ImagePullBackOff || !strings.Contains(got.Message, "data:1") {
			t.Errorf("without the image of the volume it waits with %s", got)
		}
		r.engine.SetImage("data:1", fake.Image{Pullable: true})
		if got := phases(r.after(time.Minute))["a"]; got != v1.PodRunning {
			t.Fatalf("it is %s", got)
		}
		want := []runtime.Mount{
			{Image: "data:1", ContainerPath: "/data", ReadOnly: true},
		}
		for _, c := range r.engine.Containers() {
			if c.Spec == nil {
				continue
			}
			var got []runtime.Mount
			for _, m := range c.Spec.Mounts {
				if m.Image != "" {
					got = append(got, m)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("mounts (-want +got):\n%s", diff)
			}
			r.engine.Kill(c.ID)
		}
		// It is looked for again where the engine has lost it.
		r.engine.SetImage("data:1", fake.Image{Pullable: true})
		if got := phases(r.after(time.Minute))["a"]; got != v1.PodRunning {
			t.Errorf("after the engine lost the image it is %s", got)
		}
	})
}
