package sim

import (
	"fmt"
	"slices"
	"strings"
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
	initFirst    = "C055: init containers run one after the other, before all others, once in a sandbox"
	sidecarLast  = "section 4: sidecars end after the others, the last one first"
	needed       = "C076: what needs an object that is not there waits"
	contentLaw   = "section 1: a volume shows what its object says, and nothing restarts that does not ask for it"
	readyLaw     = "C099: what is ready stays so over a restart of the agent"
	cgroupLaw    = "section 4: a pod's containers are where its sandbox is, in a cgroup that is there"
	convergence  = "law 3: once the faults stop, the node reaches what the sources say"
	stillness    = "law 2: a converged node plans nothing"
	cpuLaw       = "a CPU that is a container's own is no other's that runs"
	restartLaw   = "law 5: starting or stopping the agent touches no container"
	delayLaw     = "law 7: a pod delays only itself"
	exemptStay   = "C117: who is exempt is never evicted"
	oneAtATime   = "C113: pods are evicted one at a time"
	imagesStay   = "law 9: no image is collected that is desired, or not the agent's"
	handLaw      = "law 5: what is stopped by hand stays so until it is started by hand"
	shutLaw      = "a shutdown ends all pods, by priority, and starts none"
	roomLaw      = "no more pods run than there is room for"
	sayLaw       = "C033: what waits for room says so"
	backOff      = "law 7: what keeps ending waits longer each time"
)

type violation struct{ law, what string }

// laws holds every change of a container against the invariants.
type laws struct {
	start time.Time
	truth *truth
	live  map[string]*life // everything in the engine, by id
	began time.Time        // the agent's incarnation
	// rough is until when calls may have failed, with the steps that they were for.
	rough time.Time
	// Of sandboxes: the init containers that did their work in them, and those in which
	// others were started.
	initialised map[runtime.SandboxRef]map[string]bool
	opened      map[runtime.SandboxRef]bool
	swept       map[runtime.SandboxRef]time.Time // when a container last asked for a restart of all
	makes       map[string]makes                 // of each container, by generation and sandbox
	evicted     map[types.UID]time.Time          // until a sandbox is made again
	outbid      map[types.UID]bool               // for a critical one, until a sandbox is made again
	botched     map[types.UID]bool               // an init container failed, until a sandbox is made again
	room        amounts                          // what there is for pods, 0 for no limit
	hands       map[pod.Key]*hand
	down        downfall // the machine goes down
	violations  []violation
	// still, while set, forbids every change that is not a container's own doing.
	still string
	// enough is closed at the first violation of lastLaw, where that is not "".
	lastLaw string
	enough  chan struct{}
}

// makes is when a container was made from one definition, with one set of values of
// the objects that it names, without another between.
type makes struct {
	of string
	at []time.Time
}

// life is a container as the laws know it.
type life struct {
	fake.View
	made time.Time
	// byUs: it was the agent that started it last.
	byUs bool
	// told: the agent asked it to end.
	told bool
	// ended is when it did last, or could not be started.
	ended time.Time
}

func newLaws(t *truth) *laws {
	return &laws{start: time.Now(), truth: t, live: map[string]*life{}, initialised: map[runtime.SandboxRef]map[string]bool{}, opened: map[runtime.SandboxRef]bool{}, swept: map[runtime.SandboxRef]time.Time{}, makes: map[string]makes{}, evicted: map[types.UID]time.Time{}, outbid: map[types.UID]bool{}, botched: map[types.UID]bool{}, hands: map[pod.Key]*hand{}, enough: make(chan struct{})}
}

func (l *laws) violate(law, format string, args ...any) {
	what := fmt.Sprintf("t=+%.9fs ", time.Since(l.start).Seconds()) + fmt.Sprintf(format, args...)
	l.violations = append(l.violations, violation{law, what})
	if law == l.lastLaw {
		l.stop()
	}
}

// stop ends a run that was to show one violation.
func (l *laws) stop() {
	l.lastLaw = ""
	close(l.enough)
}

// outOfHand is how many containers a planted bug may pile up before its run ends.
const outOfHand = 200

// ours reports whether a container is the simulated agent's, and not that of
// another root dir, or of somebody.
func ours(v fake.View) bool {
	_, ok := runtime.Owned(rootDir, v.Name, v.Labels)
	return ok
}

// observe is the engine's observer.
func (l *laws) observe(c fake.Change) {
	l.truth.mu.Lock()
	defer l.truth.mu.Unlock()
	v := c.Container
	is := l.live[v.ID]
	if is == nil {
		is = &life{made: time.Now()}
		l.live[v.ID] = is
		if l.lastLaw != "" && len(l.live) > outOfHand {
			l.stop()
		}
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
		is.byUs, is.told = c.Client > 0, false
		if is.byUs && ours(v) {
			l.started(is)
			l.inItsTurn(is)
		}
	case fake.FailedStart:
		is.ended = time.Now()
		if agents && v.SandboxSpec != nil {
			l.portsFree(is)
		}
	case "die":
		is.ended = time.Now()
		switch {
		case !ours(v) || v.IsSandbox():
		case l.asksForAll(is):
			l.swept[v.Sandbox] = time.Now()
			delete(l.initialised, v.Sandbox)
			delete(l.opened, v.Sandbox)
		case v.ExitCode == 0:
			l.worked(is)
		case l.role(is) == initial && !is.told:
			l.botched[v.UID] = true
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
	restarts := l.still == contentLaw && l.asks(c)
	finishes := verb == "stop" && l.version(c) != nil && over(l.version(c), l.of(c.Key))
	if l.still != "" && !collected && !restarts && !finishes && !l.selfInflicted(c) && !l.admitted(c) {
		l.violate(l.still, "%s of %s", verb, c.Name)
	}
	switch verb {
	case "create":
		l.created(c)
	case "stop":
		l.stopped(c)
		c.told = true
	case "destroy":
		if c.IsSandbox() {
			for _, o := range l.of(c.Key) {
				if o.Sandbox.ID == c.ID && o.State == runtime.Running && o.byUs {
					l.violate(inOrder, "sandbox %s is removed while %s runs in it", c.Name, o.Name)
				}
			}
		}
	}
}

// admitted: of those that wait for room, another may be let in by an agent that begins,
// to which they come in another order.
func (l *laws) admitted(c *life) bool {
	return l.still == restartLaw && l.room != (amounts{}) && !slices.ContainsFunc(l.of(c.Key), func(o *life) bool { return o.made.Before(l.began) })
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
// cannot start, or whose probes or hooks fail, is no unrest. That an init container
// does its work is as it should be.
func (l *laws) selfInflicted(c *life) bool {
	if c.Spec == nil {
		return false
	}
	p := fake.ParseProgram(*c.Spec)
	return p.Exits && (p.Code != 0 || l.role(c) != initial) || p.FailStart != "" || l.probeFails(c) || l.hookFails(c)
}

func (l *laws) created(c *life) {
	for _, o := range l.of(c.Key) {
		if o == c || o.Identity.Name != c.Identity.Name || o.UID != c.UID || o.PodHash != c.PodHash || o.ContainerHash != c.ContainerHash || o.Sandbox != c.Sandbox {
			continue
		}
		if o.State == runtime.Running && o.byUs && !l.objectsChanged(o) && !l.handed(o) || o.State == runtime.Created && !o.Ended() {
			l.violate(twice, "%s is made while %s is there, %s", c.Name, o.Name, o.State)
		}
	}
	if c.Spec == nil {
		delete(l.evicted, c.UID)
		delete(l.outbid, c.UID)
		delete(l.botched, c.UID)
		if !l.truth.ever(c.Key, func(p *pod.Pod) bool { return p.Hash == c.PodHash }) {
			l.violate(undesired, "sandbox %s with hash %s", c.Name, c.PodHash)
		}
		return
	}
	l.paced(c)
	if v := l.version(c); v != nil && l.truth.lacks(v, c.Identity.Name, l.began) {
		l.violate(needed, "%s is made", c.Name)
	}
	if !l.truth.ever(c.Key, func(p *pod.Pod) bool { return l.asIn(p, c) }) {
		l.violate(undesired, "%s: image %s, command %q, env %q", c.Name, c.Spec.Image, c.Spec.Command, c.Spec.Env)
	}
}

// mostMakes is how often a container may be made within a minute: at once, at
// once again, after 10 s and after 20 s; twice more for a clock that jumped while
// the agent was down.
const mostMakes = 6

func (l *laws) paced(c *life) {
	what := fmt.Sprint(c.Key, c.Identity.Name, c.PodHash, c.Sandbox)
	last, of := l.makes[what], fmt.Sprint(c.ContainerHash, c.Spec.Env)
	if last.of != of {
		last = makes{of: of} // an edit, also one back, begins anew
	}
	last.at = append(last.at, time.Now())
	l.makes[what] = last
	if n := len(last.at); n > mostMakes && last.at[n-1].Sub(last.at[n-1-mostMakes]) < time.Minute {
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
	l.heldStarts(c)
	l.startsInTime(c)
	if c.IsSandbox() {
		l.fits(c)
	}
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
	if _, out := l.evicted[c.UID]; out || l.outbid[c.UID] || l.handed(c) {
		return
	}
	if c.IsSandbox() {
		running := slices.ContainsFunc(others, func(o *life) bool { return o != c && o.State == runtime.Running })
		changed := l.truth.unlike(c.Key, c.made, func(p *pod.Pod) bool { return p.Hash == c.PodHash })
		if running && !changed && !l.rivals(c, others) && !l.preempted(c) && !l.falls(c.Key) {
			l.violate(silence, "sandbox %s is stopped, and nothing asked for it", c.Name)
		}
		return
	}
	if c.made.Before(l.swept[c.Sandbox]) {
		return
	}
	l.lastOut(c, others)
	if l.served(c, others) || l.hookFails(c) || l.probeFails(c) || l.overdue(c) {
		return
	}
	same := func(p *pod.Pod) bool { return p.Hash == c.PodHash && p.Containers[c.Identity.Name] == c.ContainerHash }
	if l.truth.unlike(c.Key, c.made, same) || l.objectsChanged(c) || l.rivals(c, others) || l.orphaned(c) {
		return
	}
	if l.preempted(c) {
		return
	}
	if l.falls(c.Key) || l.fell(c.Key) {
		return
	}
	law := silence
	if l.down.goes {
		law = shutLaw
	}
	if l.truth.versions(c.Key, c.made) > 1 {
		law = neighbours
	}
	l.violate(law, "%s is stopped, and nothing asked for it", c.Name)
}

// overdue: the pod may be active for a limited time.
func (l *laws) overdue(c *life) bool {
	return l.truth.ever(c.Key, func(p *pod.Pod) bool {
		d := p.Object.Spec.ActiveDeadlineSeconds
		return d != nil && time.Since(l.start) >= time.Duration(*d)*time.Second
	})
}

// hookFails: a container is ended for its postStart hook, which also fails where
// calls do, or where the program ends before it.
func (l *laws) hookFails(c *life) bool {
	rough := time.Now().Before(l.rough)
	ends := c.Spec != nil && fake.ParseProgram(*c.Spec).Exits
	return l.spec(c, func(s *v1.Container) bool {
		return hookFails(s) || (rough || ends) && s.Lifecycle != nil && s.Lifecycle.PostStart != nil
	})
}

// probeFails: a container is ended for its startup or liveness probe, which also
// fails where calls do, or take long.
func (l *laws) probeFails(c *life) bool {
	rough := time.Now().Before(l.rough)
	return l.spec(c, func(s *v1.Container) bool {
		return probesFail(s) || rough && (s.StartupProbe != nil || s.LivenessProbe != nil)
	})
}

// spec reports whether any version of a container matches.
func (l *laws) spec(c *life, match func(*v1.Container) bool) bool {
	return l.truth.ever(c.Key, func(p *pod.Pod) bool {
		spec := containerOf(p.Object, c.Identity.Name)
		return spec != nil && match(spec)
	})
}

func hookFails(c *v1.Container) bool {
	return c.Lifecycle != nil && c.Lifecycle.PostStart != nil && fails(c.Lifecycle.PostStart.Exec)
}

func probesFail(c *v1.Container) bool {
	return c.StartupProbe != nil && fails(c.StartupProbe.Exec) || c.LivenessProbe != nil && fails(c.LivenessProbe.Exec)
}

func fails(e *v1.ExecAction) bool {
	p := fake.ParseExec(e.Command)
	return p.Code != 0 || !p.Exits
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
	l.truth.mu.Lock()
	defer l.truth.mu.Unlock()
	for _, c := range l.live {
		if ours(c.View) && c.UID == uid {
			l.violate(folderLast, "the folder of %s goes while %s is there, %s", uid, c.Name, c.State)
		}
	}
	for key := range l.truth.said {
		if h := l.hands[key]; h != nil && !h.restarted.IsZero() && time.Since(h.restarted) < settleTime {
			continue
		}
		versions, _ := l.truth.now(key)
		for _, p := range versions {
			same := func(q *pod.Pod) bool { return q.Hash == p.Hash }
			if manifests.MintUID(rootDir, nodeName, key, p.Hash) == uid && !l.truth.unlike(key, time.Now(), same) {
				l.violate(volumesStay, "the folder of %s goes, and %s is wanted", uid, key)
			}
		}
	}
}

// removedCgroup sees a pod's cgroup go, with all that would still run in it.
func (l *laws) removedCgroup(uid types.UID) {
	l.truth.mu.Lock()
	defer l.truth.mu.Unlock()
	for _, c := range l.live {
		if ours(c.View) && c.UID == uid {
			l.violate(folderLast, "the cgroup of %s goes while %s is there, %s", uid, c.Name, c.State)
		}
	}
}

// hold forbids changes from now on, as a violation of that law; "" allows them.
func (l *laws) hold(law string) {
	l.truth.mu.Lock()
	defer l.truth.mu.Unlock()
	l.still = law
}

// isRough says that calls may fail, or have failed, for that long.
func (l *laws) isRough(d time.Duration) {
	l.truth.mu.Lock()
	defer l.truth.mu.Unlock()
	l.rough = time.Now().Add(d)
}
