package sim

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podkeeper/podkeeper/manifests"
	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/runtime"
	"github.com/podkeeper/podkeeper/runtime/fake"
)

// The invariants. Each is a law of ARCHITECTURE.md, or a sentence of its section
// on identity and updates, as something that can be seen from outside.
const (
	oneSandbox   = "section 3: never two live sandboxes of a key"
	oneContainer = "section 3: never two live containers of a name"
	inOrder      = "section 3: the old generation is gone before the new one starts"
	portOrder    = "section 3: a host port is given up before another takes it"
	neighbours   = "section 3: an edit restarts nothing but what was edited"
	silence      = "law 1: absence of information removes nothing"
	undesired    = "section 3: nothing runs that was never desired for its key"
	twice        = "law 4: what is there is not made again"
	foreign      = "law 6: only what is ours is touched"
	folderLast   = "section 3: a pod's folder goes after its containers"
	volumesStay  = "section 3: what a pod has in its volumes stays while it is wanted"
	convergence  = "law 3: once the faults stop, the node reaches what the sources say"
	stillness    = "law 2: a converged node plans nothing"
	restartLaw   = "law 5: starting or stopping the agent touches no container"
	delayLaw     = "law 7: a pod delays only itself"
	backOff      = "law 7: what keeps ending waits longer each time"
)

type violation struct{ law, what string }

// laws holds every change of a container against the invariants.
type laws struct {
	mu         sync.Mutex
	start      time.Time
	truth      *truth
	live       map[string]*life       // everything in the engine, by id
	makes      map[string][]time.Time // of each container, by definition and sandbox
	violations []violation
	// still, while set, forbids every change that is not a container's own doing.
	still string
	// enough is closed at the first violation of lastLaw.
	lastLaw string
	enough  chan struct{}
}

// life is a container as the laws know it.
type life struct {
	fake.View
	made time.Time
	// byUs: it was the agent that started it last.
	byUs bool
}

func newLaws(t *truth) *laws {
	return &laws{start: time.Now(), truth: t, live: map[string]*life{}, makes: map[string][]time.Time{}, enough: make(chan struct{})}
}

func (l *laws) violate(law, format string, args ...any) {
	what := fmt.Sprintf("t=+%.9fs ", time.Since(l.start).Seconds()) + fmt.Sprintf(format, args...)
	l.violations = append(l.violations, violation{law, what})
	if law == l.lastLaw {
		l.lastLaw = ""
		close(l.enough)
	}
}

// ours reports whether a container is the simulated agent's, and not that of
// another root dir, or of somebody.
func ours(v fake.View) bool {
	_, ok := runtime.Owned(rootDir, v.Name, v.Labels)
	return ok
}

// observe is the engine's observer.
func (l *laws) observe(c fake.Change) {
	l.mu.Lock()
	defer l.mu.Unlock()
	v := c.Container
	is := l.live[v.ID]
	if is == nil {
		is = &life{made: time.Now()}
		l.live[v.ID] = is
	}
	is.View = v
	agents := c.Client > 0 && c.Client != neighbour
	if agents && !ours(v) {
		l.violate(foreign, "the agent's %s of %s", c.Verb, v.Name)
		return
	}
	if agents {
		l.agentDid(c.Verb, is)
	}
	switch c.Verb {
	case "start":
		is.byUs = c.Client > 0
		if is.byUs && ours(v) {
			l.started(is)
		}
	case fake.FailedStart:
		if agents && v.SandboxSpec != nil {
			l.portsFree(is)
		}
	case "destroy":
		delete(l.live, v.ID)
	}
}

// agentDid checks one change that the agent made.
func (l *laws) agentDid(verb string, c *life) {
	// The collector takes the dead when they are old enough, by a clock that may
	// have been set back.
	collected := verb == "destroy" && c.Ended()
	if l.still != "" && !collected && !l.selfInflicted(c) {
		l.violate(l.still, "%s of %s", verb, c.Name)
	}
	switch verb {
	case "create":
		l.created(c)
	case "stop":
		l.stopped(c)
	case "destroy":
		if c.IsSandbox() {
			for _, o := range l.of(c.Key) {
				if o.Sandbox.ID == c.ID && o.State == runtime.Running {
					l.violate(inOrder, "sandbox %s is removed while %s runs in it", c.Name, o.Name)
				}
			}
		}
	}
}

// of returns what is there of a key, by name.
func (l *laws) of(key pod.Key) []*life {
	var list []*life
	for _, c := range l.live {
		if ours(c.View) && c.Key == key {
			list = append(list, c)
		}
	}
	slices.SortFunc(list, func(a, b *life) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// selfInflicted: what the agent does about a container whose program ends, or
// cannot start, is no unrest.
func (l *laws) selfInflicted(c *life) bool {
	if c.Spec != nil {
		p := fake.ParseProgram(*c.Spec)
		return p.Exits || p.FailStart != ""
	}
	return false
}

func (l *laws) created(c *life) {
	for _, o := range l.of(c.Key) {
		if o == c || o.Identity.Name != c.Identity.Name || o.UID != c.UID || o.PodHash != c.PodHash || o.ContainerHash != c.ContainerHash || o.Sandbox != c.Sandbox {
			continue
		}
		if o.State == runtime.Running && o.byUs && !l.objectsChanged(o) || o.State == runtime.Created && !o.Ended() {
			l.violate(twice, "%s is made while %s is there, %s", c.Name, o.Name, o.State)
		}
	}
	if c.Spec == nil {
		if !l.truth.ever(c.Key, func(p *pod.Pod) bool { return p.Hash == c.PodHash }) {
			l.violate(undesired, "sandbox %s with hash %s", c.Name, c.PodHash)
		}
		return
	}
	l.paced(c)
	if !l.truth.ever(c.Key, func(p *pod.Pod) bool { return l.asIn(p, c) }) {
		l.violate(undesired, "%s: image %s, command %q, env %q", c.Name, c.Spec.Image, c.Spec.Command, c.Spec.Env)
	}
}

// mostMakes is how often a container may be made within a minute: at once, at
// once again, after 10 s and after 20 s; twice more for a clock that jumped while
// the agent was down.
const mostMakes = 6

func (l *laws) paced(c *life) {
	what := fmt.Sprint(c.Key, c.Identity.Name, c.PodHash, c.ContainerHash, c.Sandbox)
	makes := append(l.makes[what], time.Now())
	l.makes[what] = makes
	if n := len(makes); n > mostMakes && makes[n-1].Sub(makes[n-1-mostMakes]) < time.Minute {
		l.violate(backOff, "%s is the %dth within a minute", c.Name, mostMakes+1)
	}
}

// asIn reports whether a container was made as that version of the pod says.
func (l *laws) asIn(p *pod.Pod, c *life) bool {
	if p.Hash != c.PodHash || p.Containers[c.Identity.Name] != c.ContainerHash {
		return false
	}
	for _, want := range slices.Concat(p.Object.Spec.InitContainers, p.Object.Spec.Containers) {
		if want.Name == c.Identity.Name {
			given := func(e v1.EnvVar, env string) bool { return l.truth.given(c.Key.Namespace, e, env) }
			return want.Image == c.Spec.Image && slices.Equal(want.Command, c.Spec.Command) && slices.EqualFunc(want.Env, c.Spec.Env, given)
		}
	}
	return false
}

// started checks a start by the agent against everything else that lives.
func (l *laws) started(c *life) {
	for _, o := range l.of(c.Key) {
		if o == c || o.State != runtime.Running || !o.byUs {
			continue
		}
		switch {
		case c.IsSandbox() && o.IsSandbox():
			l.violate(oneSandbox, "%s starts while %s runs", c.Name, o.Name)
		case o.Identity.Name == c.Identity.Name:
			l.violate(oneContainer, "%s starts while %s runs", c.Name, o.Name)
		case o.UID != c.UID || o.PodHash != c.PodHash:
			l.violate(inOrder, "%s starts while %s of another generation runs", c.Name, o.Name)
		}
	}
}

// portsFree checks that a sandbox could not start for another reason than a port
// of another, which the agent started itself.
func (l *laws) portsFree(c *life) {
	for _, port := range c.SandboxSpec.Ports {
		for _, o := range l.live {
			if o.SandboxSpec != nil && ours(o.View) && o.Key != c.Key && o.State == runtime.Running && o.byUs && hasPort(o.View, port.HostPort) {
				l.violate(portOrder, "%s takes port %d while %s runs with it", c.Name, port.HostPort, o.Name)
			}
		}
	}
}

// hasPort reports whether a sandbox was made with that host port.
func hasPort(c fake.View, port int32) bool {
	return c.SandboxSpec != nil && slices.ContainsFunc(c.SandboxSpec.Ports, func(p runtime.Port) bool { return p.HostPort == port })
}

// stopped checks that a stop by the agent has a reason.
func (l *laws) stopped(c *life) {
	others := l.of(c.Key)
	if c.IsSandbox() {
		running := slices.ContainsFunc(others, func(o *life) bool { return o != c && o.State == runtime.Running })
		changed := l.truth.unlike(c.Key, c.made, func(p *pod.Pod) bool { return p.Hash == c.PodHash })
		if running && !changed && !l.rivals(c, others) {
			l.violate(silence, "sandbox %s is stopped, and nothing asked for it", c.Name)
		}
		return
	}
	if l.served(c, others) || l.hookFails(c) || l.probeFails(c) || l.overdue(c) {
		return
	}
	same := func(p *pod.Pod) bool { return p.Hash == c.PodHash && p.Containers[c.Identity.Name] == c.ContainerHash }
	if l.truth.unlike(c.Key, c.made, same) || l.objectsChanged(c) || l.rivals(c, others) || l.orphaned(c) {
		return
	}
	law := silence
	if l.truth.versions(c.Key, c.made) > 1 {
		law = neighbours
	}
	l.violate(law, "%s is stopped, and nothing asked for it", c.Name)
}

// served: a sidecar ends when nothing is left that it was there for.
func (l *laws) served(c *life, others []*life) bool {
	sidecar := func(name string) bool {
		return l.truth.ever(c.Key, func(p *pod.Pod) bool {
			return slices.ContainsFunc(p.Object.Spec.InitContainers, func(i v1.Container) bool { return i.Name == name && i.RestartPolicy != nil })
		})
	}
	return sidecar(c.Identity.Name) && !slices.ContainsFunc(others, func(o *life) bool {
		return !o.IsSandbox() && o.State == runtime.Running && !sidecar(o.Identity.Name)
	})
}

// overdue: the pod may be active for a limited time.
func (l *laws) overdue(c *life) bool {
	return l.truth.ever(c.Key, func(p *pod.Pod) bool {
		d := p.Object.Spec.ActiveDeadlineSeconds
		return d != nil && time.Since(l.start) >= time.Duration(*d)*time.Second
	})
}

// hookFails: a container is ended for its postStart hook.
func (l *laws) hookFails(c *life) bool {
	return l.truth.ever(c.Key, func(p *pod.Pod) bool {
		return slices.ContainsFunc(p.Object.Spec.Containers, func(o v1.Container) bool {
			return o.Name == c.Identity.Name && o.Lifecycle != nil && o.Lifecycle.PostStart != nil &&
				fake.ParseExec(o.Lifecycle.PostStart.Exec.Command).Code != 0
		})
	})
}

// probeFails: a container is ended for its startup or liveness probe.
func (l *laws) probeFails(c *life) bool {
	fails := func(p *v1.Probe) bool {
		if p == nil {
			return false
		}
		command := fake.ParseExec(p.Exec.Command)
		return command.Code != 0 || !command.Exits
	}
	return l.truth.ever(c.Key, func(p *pod.Pod) bool {
		return slices.ContainsFunc(slices.Concat(p.Object.Spec.InitContainers, p.Object.Spec.Containers), func(o v1.Container) bool {
			return o.Name == c.Identity.Name && (fails(o.StartupProbe) || fails(o.LivenessProbe))
		})
	})
}

// rivals: somebody started it again, and a later attempt has had its turn or runs.
func (l *laws) rivals(c *life, others []*life) bool {
	return !c.byUs && slices.ContainsFunc(others, func(o *life) bool {
		return o.Identity.Name == c.Identity.Name && o.Attempt > c.Attempt && (o.State == runtime.Running || o.Ended())
	})
}

// orphaned: the sandbox that it was made for has ended, and if it was started again,
// it is another network that it has now.
func (l *laws) orphaned(c *life) bool {
	sandbox := l.live[c.Sandbox.ID]
	return sandbox == nil || sandbox.State != runtime.Running || sandbox.Ref() != c.Sandbox
}

// removedFolder is the root dir's observer.
func (l *laws) removedFolder(uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.live {
		if ours(c.View) && c.UID == uid {
			l.violate(folderLast, "the folder of %s goes while %s is there, %s", uid, c.Name, c.State)
		}
	}
	for key := range l.truth.said {
		versions, _ := l.truth.now(key)
		for _, p := range versions {
			same := func(q *pod.Pod) bool { return q.Hash == p.Hash }
			if manifests.MintUID(rootDir, nodeName, key, p.Hash) == uid && !l.truth.unlike(key, time.Now(), same) {
				l.violate(volumesStay, "the folder of %s goes, and %s is wanted", uid, key)
			}
		}
	}
}

// hold forbids changes from now on, as a violation of that law; "" allows them.
func (l *laws) hold(law string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.still = law
}
