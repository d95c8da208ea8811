package agent

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podkeeper/podkeeper/reconcile"
	"github.com/podkeeper/podkeeper/runtime"
	"github.com/podkeeper/podkeeper/server/kubeletapi"
)

// kubelet are the answers of the kubelet API.
func (p *parts) kubelet() kubeletapi.Answers {
	a := kubeletapi.Answers{
		Pods: p.pods, RunningPods: p.runningPods, SyncLoop: p.syncLoop, Summary: p.summary, Metrics: p.pages(), Logs: p.logs,
		Exec: p.execStream, Attach: p.attachStream, PortForward: p.portForward, Run: p.runInContainer,
		About:     kubeletapi.About{Version: p.cfg.Version, Started: time.Now()},
		Profiling: p.cfg.API.Profiling,
	}
	if p.cfg.API.Effective != nil {
		a.Config = p.cfg.API.Effective
	}
	if !p.cfg.API.NoLogFolder {
		a.LogFolder = "/var/log"
	}
	return a
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

// runningPods answers from what the engine tells, manifests aside.
func (p *parts) runningPods(ctx context.Context) ([]*v1.Pod, error) {
	snap, err := p.loop.Snapshot(ctx, 0)
	if err != nil {
		return nil, err
	}
	var list []*v1.Pod
	for _, v := range snap.Pods {
		running := map[types.UID]*v1.Pod{} // of two generations, too
		for _, c := range v.Containers {
			if c.State != runtime.Running {
				continue
			}
			r := running[c.UID]
			if r == nil {
				r = &v1.Pod{}
				r.Namespace, r.Name, r.UID = c.Key.Namespace, c.Key.Name, c.UID
				running[c.UID] = r
				list = append(list, r)
			}
			if !c.IsSandbox() {
				r.Spec.Containers = append(r.Spec.Containers, v1.Container{Name: c.Name, Image: c.Image})
			}
		}
	}
	return list, nil
}

// How long the loop may keep a question waiting, and how much later than its period
// the answer of a listing may come.
const (
	loopAnswers = 10 * time.Second
	listingTime = time.Minute
)

// syncLoop says why the loop does not do its work: it hangs, or has not seen for longer
// than its period what there is.
func (p *parts) syncLoop(ctx context.Context) error {
	asked, cancel := context.WithTimeout(ctx, loopAnswers)
	defer cancel()
	last, period, err := p.loop.Looked(asked)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return fmt.Errorf("the loop does not answer for %s", loopAnswers)
	}
	return overdue(time.Since(last), period)
}

// overdue says so where the last look was too long ago.
func overdue(since, period time.Duration) error {
	if since <= period+listingTime {
		return nil
	}
	return fmt.Errorf("the containers were not listed for %s (which is done every %s)", since.Truncate(time.Second), period)
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
