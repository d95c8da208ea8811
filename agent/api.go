package agent

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/reconcile"
	"github.com/podkeeper/podkeeper/runtime"
	"github.com/podkeeper/podkeeper/server/kubeletapi"
)

// maxStreams is how many requests may hold their connection at once.
const maxStreams = 1000

// kubelet are the answers of the kubelet API.
func (p *parts) kubelet() kubeletapi.Answers {
	return kubeletapi.Answers{Pods: p.pods, Summary: p.summary}
}

// pods are those that `get` shows.
func (p *parts) pods(ctx context.Context) ([]*v1.Pod, error) {
	snap, err := p.loop.Snapshot(ctx, 0)
	if err != nil {
		return nil, err
	}
	var list []*v1.Pod
	for _, v := range snap.Pods {
		if !v.Gone() {
			list = append(list, v.Object)
		}
	}
	return list, nil
}

// foundPod is a pod as it is now.
type foundPod struct {
	// Pod has its status and UID.
	Pod *v1.Pod
	// Containers are those of its generation (that UID), the sandbox too, by name and
	// rising attempt; from others than the newest attempt come the logs of before.
	Containers []runtime.Container
}

// foundContainer is a container of a pod, of any kind.
type foundContainer struct {
	foundPod
	// Name is that of the container in the pod.
	Name string
	// Attempts are its containers by rising attempt: the newest that was started, or
	// could not be, is the last one. Empty: none was made yet.
	Attempts []runtime.Container
}

// newest is the attempt that counts; false where none was made yet.
func (f foundContainer) newest() (runtime.Container, bool) {
	if len(f.Attempts) == 0 {
		return runtime.Container{}, false
	}
	return f.Attempts[len(f.Attempts)-1], true
}

// findPod finds the pod that a request names; its container is not looked at. The
// error is of class [kubeletapi.ErrNotFound].
func (p *parts) findPod(ctx context.Context, t kubeletapi.Target) (foundPod, error) {
	snap, err := p.loop.Snapshot(ctx, 0)
	if err != nil {
		return foundPod{}, err
	}
	return findPod(snap.Pods, p.cfg.NodeName, t)
}

func findPod(pods []reconcile.View, node string, t kubeletapi.Target) (foundPod, error) {
	// A pod may be called as another one is without the suffix.
	for _, name := range []string{t.Pod, t.Pod + "-" + node} {
		for _, v := range pods {
			o := v.Object
			if o.Namespace != t.Namespace || o.Name != name || v.Gone() || t.UID != "" && t.UID != string(o.UID) {
				continue
			}
			f := foundPod{Pod: o}
			for _, c := range v.Containers {
				if c.UID == o.UID {
					f.Containers = append(f.Containers, c)
				}
			}
			slices.SortFunc(f.Containers, func(a, b runtime.Container) int {
				return cmp.Or(strings.Compare(a.Name, b.Name), a.Attempt-b.Attempt)
			})
			return f, nil
		}
	}
	return foundPod{}, kubeletapi.Wrong(kubeletapi.ErrNotFound, fmt.Sprintf("pod %q not found in namespace %q", t.Pod, t.Namespace))
}

// find finds the container that a request names; "" is the pod's only one. The error
// is of class [kubeletapi.ErrNotFound], or [kubeletapi.ErrBadRequest] where "" does
// not say which.
func (p *parts) find(ctx context.Context, t kubeletapi.Target) (foundContainer, error) {
	f, err := p.findPod(ctx, t)
	if err != nil {
		return foundContainer{}, err
	}
	return f.container(t.Container)
}

func (f foundPod) container(name string) (foundContainer, error) {
	var regular, all []string
	for _, c := range f.Pod.Spec.Containers {
		regular = append(regular, c.Name)
	}
	for _, c := range f.Pod.Spec.InitContainers {
		all = append(all, c.Name)
	}
	all = append(all, regular...)
	switch {
	case name == "" && len(regular) == 1:
		name = regular[0]
	case name == "":
		return foundContainer{}, kubeletapi.Wrong(kubeletapi.ErrBadRequest, fmt.Sprintf("pod %q has several containers; name one of: %s", f.Pod.Name, strings.Join(all, ", ")))
	case !slices.Contains(all, name):
		return foundContainer{}, kubeletapi.Wrong(kubeletapi.ErrNotFound, fmt.Sprintf("container %q not found in pod %q", name, f.Pod.Name))
	}
	found := foundContainer{foundPod: f, Name: name}
	for _, c := range f.Containers {
		if c.Name == name && !(c.State == runtime.Created && !c.FailedStart()) {
			found.Attempts = append(found.Attempts, c)
		}
	}
	return found, nil
}
