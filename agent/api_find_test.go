package agent

import (
	"errors"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podkeeper/podkeeper/reconcile"
	"github.com/podkeeper/podkeeper/runtime"
	"github.com/podkeeper/podkeeper/server/kubeletapi"
)

func TestFind(t *testing.T) {
	view := func(namespace, name string, uid types.UID, containers ...string) reconcile.View {
		o := &v1.Pod{}
		o.Namespace, o.Name, o.UID = namespace, name, uid
		v := reconcile.View{Object: o}
		for _, c := range containers {
			o.Spec.Containers = append(o.Spec.Containers, v1.Container{Name: c})
			for _, made := range []struct {
				attempt int
				uid     types.UID
				state   runtime.State
			}{{1, uid, runtime.Running}, {0, uid, runtime.Exited}, {2, uid, runtime.Created}, {7, "before", runtime.Exited}} {
				v.Containers = append(v.Containers, runtime.Container{
					Identity: runtime.Identity{Name: c, UID: made.uid, Attempt: made.attempt}, State: made.state,
				})
			}
		}
		return v
	}
	pods := []reconcile.View{
		view("default", "web-n", "u1", "web"),
		view("default", "web-n-n", "u2", "a", "b"),
		view("other", "web-n", "u3", "web"),
	}
	for name, c := range map[string]struct {
		target kubeletapi.Target
		uid    types.UID // "" is an error
		class  error
	}{
		"whole name":                    {kubeletapi.Target{Namespace: "default", Pod: "web-n", Container: "web"}, "u1", nil},
		"without the suffix":            {kubeletapi.Target{Namespace: "default", Pod: "web"}, "u1", nil},
		"another namespace":             {kubeletapi.Target{Namespace: "other", Pod: "web"}, "u3", nil},
		"the UID that it has":           {kubeletapi.Target{Namespace: "default", Pod: "web", UID: "u1"}, "u1", nil},
		"a UID of before":               {kubeletapi.Target{Namespace: "default", Pod: "web", UID: "before"}, "", kubeletapi.ErrNotFound},
		"no such pod":                   {kubeletapi.Target{Namespace: "default", Pod: "we"}, "", kubeletapi.ErrNotFound},
		"no such container":             {kubeletapi.Target{Namespace: "default", Pod: "web", Container: "x"}, "", kubeletapi.ErrNotFound},
		"the sandbox, which is ours":    {kubeletapi.Target{Namespace: "default", Pod: "web", Container: runtime.SandboxName}, "", kubeletapi.ErrNotFound},
		"none named, where several are": {kubeletapi.Target{Namespace: "default", Pod: "web-n-n"}, "", kubeletapi.ErrBadRequest},
		"one named of several":          {kubeletapi.Target{Namespace: "default", Pod: "web-n-n", Container: "b"}, "u2", nil},
		"a path instead of a namespace": {kubeletapi.Target{Namespace: "../default", Pod: "web"}, "", kubeletapi.ErrNotFound},
		"nothing":                       {kubeletapi.Target{}, "", kubeletapi.ErrNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := findPod(pods, "n", c.target)
			found := foundContainer{}
			if err == nil {
				found, err = f.container(c.target.Container)
			}
			if !errors.Is(err, c.class) {
				t.Fatalf("error %v, want %v", err, c.class)
			}
			if c.uid == "" {
				return
			}
			attempts := []int{}
			for _, a := range found.Attempts {
				attempts = append(attempts, a.Attempt)
			}
			if found.Pod.UID != c.uid || !slices.Equal(attempts, []int{0, 1}) {
				t.Errorf("pod %s, attempts %v, want %s, [0 1]", found.Pod.UID, attempts, c.uid)
			}
		})
	}
}
