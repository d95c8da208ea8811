package fake

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/podkeeper/podkeeper/runtime"
)

// Config is what an engine is made of. All but Fate may be left out.
type Config struct {
	Fate *Fate
	// Program says what a container runs; ParseProgram if nil.
	Program func(runtime.ContainerSpec) Program
	// Exec says what a command in a container is; ParseExec if nil. It must not call
	// back.
	Exec func(container View, command []string) Program
	// Features are what the engine says that it can do; of cgroups and its data, if
	// nothing is set, what a Docker Engine says on cgroup v1.
	Features runtime.Features
	// Wall is the machine's wall clock; time.Now if nil.
	Wall func() time.Time
	// Observe sees every change of a container at the instant it happens. It must
	// not call back.
	Observe func(Change)
	// Removed sees every image that a client removes, at the instant; nil is nobody. It
	// must not call back.
	Removed func(runtime.StoredImage)
}

// Engine is the machine's container engine and all that it holds.
type Engine struct {
	Config
	mu         sync.Mutex
	containers map[string]*container // by id
	names      map[string]*container // the same by name
	images     map[string]Image      // by reference
	clients    int
	made       map[string]int // how often a name was created
	addresses  int            // handed out so far
	down       bool
	// broken is closed when all connections break, and replaced.
	broken      chan struct{}
	subscribers map[*subscriber]bool
	violations  []string
}

// FailedStart is the verb of a start that failed: an engine has no event for it.
const FailedStart = "start-failed"

// Change is one change of a container.
type Change struct {
	// Verb is create, start, start-failed, stop (asked to), die, destroy or update.
	Verb string
	// Client is the number of the client whose call it was, from 1; 0 is the
	// engine's own doing, or somebody's.
	Client    int
	Container View
}

// View is a container as one sees it who sees everything.
type View struct {
	// Container is what Inspect says. Its Identity is zero where the container
	// bears no labels of an agent's; Ours is false where it is not that agent's.
	runtime.Container
	Ours bool
	// Name is the engine's name for it.
	Name   string
	Labels map[string]string
	// Sandbox and Spec are what it was made from; both nil for somebody's container.
	SandboxSpec *runtime.SandboxSpec
	Spec        *runtime.ContainerSpec
	// Network is the network namespace that a running one is in, as the reference
	// of its sandbox; zero for the host's and for somebody's container.
	Network runtime.SandboxRef
}

type container struct {
	View
	program Program
	ports   []runtime.Port
	// done is closed when it ends; renewed at each start.
	done chan struct{}
	run  int // how often it was started
}

// New returns an engine without containers and images.
func New(c Config) *Engine {
	if c.Program == nil {
		c.Program = ParseProgram
	}
	if c.Exec == nil {
		c.Exec = func(_ View, command []string) Program { return ParseExec(command) }
	}
	if c.Wall == nil {
		c.Wall = time.Now
	}
	if c.Removed == nil {
		c.Removed = func(runtime.StoredImage) {}
	}
	if c.Observe == nil {
		c.Observe = func(Change) {}
	}
	return &Engine{
		Config:      c,
		containers:  map[string]*container{},
		names:       map[string]*container{},
		images:      map[string]Image{},
		made:        map[string]int{},
		broken:      make(chan struct{}),
		subscribers: map[*subscriber]bool{},
	}
}

// Containers returns everything, ours or not, in the order of their names.
func (e *Engine) Containers() []View {
	e.mu.Lock()
	defer e.mu.Unlock()
	views := make([]View, 0, len(e.containers))
	for _, c := range e.sorted() {
		views = append(views, c.View)
	}
	return views
}

// Violations lists the attempts of clients to touch what is not theirs.
func (e *Engine) Violations() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.violations)
}

// sorted returns all containers by name, so that nothing hangs on map order.
func (e *Engine) sorted() []*container {
	all := make([]*container, 0, len(e.containers))
	for _, c := range e.containers {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b *container) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return all
}

func (e *Engine) byName(name string) *container {
	return e.names[name]
}

// changed reports a change to the observer and to the event streams.
func (e *Engine) changed(verb string, client int, c *container) {
	e.Observe(Change{Verb: verb, Client: client, Container: c.View})
	if verb != FailedStart {
		e.publish(verb, c)
	}
}

// create adds a container whose name is free.
func (e *Engine) create(client int, c *container) *container {
	e.made[c.Name]++
	c.ID = fmt.Sprintf("%016x%016x", e.Fate.Hash("id", c.Name, fmt.Sprint(e.made[c.Name])), e.Fate.Hash("id", "low", c.Name, fmt.Sprint(e.made[c.Name])))
	c.State = runtime.Created
	c.Created = e.Wall()
	c.LogPath = "/var/lib/docker/containers/" + c.ID + "/" + c.ID + "-json.log"
	c.done = make(chan struct{})
	close(c.done)
	e.containers[c.ID], e.names[c.Name] = c, c
	e.changed("create", client, c)
	return c
}

// start starts a container that does not run. One that cannot start keeps its
// state and shows why.
func (e *Engine) start(client int, c *container) error {
	if code, text := e.obstacle(c); text != "" {
		if c.State == runtime.Created {
			c.ExitCode, c.Error = code, text
		}
		e.changed(FailedStart, client, c)
		return fmt.Errorf("start %s: %s", c.Name, text)
	}
	c.run++
	c.State, c.ExitCode, c.Error, c.OOMKilled = runtime.Running, 0, "", false
	c.Started, c.Finished = e.Wall(), time.Time{}
	// Nanoseconds alone could come again when the wall clock is set back.
	c.Start = fmt.Sprintf("%s/%d", c.Started.UTC().Format(time.RFC3339Nano), c.run)
	c.done = make(chan struct{})
	switch {
	case c.SandboxSpec != nil && !c.SandboxSpec.HostNetwork:
		e.addresses++
		c.IPs = []string{fmt.Sprintf("172.17.%d.%d", e.addresses/250, 2+e.addresses%250)}
		c.Network = c.Ref()
	case c.Spec != nil:
		c.Network = e.containers[c.Sandbox.ID].Network
	}
	e.changed("start", client, c)
	if c.program.Exits {
		run := c.run
		e.Fate.After("exit", c.Name, c.program.After, time.Millisecond, func() { e.expire(c, run) })
	}
	return nil
}

// obstacle returns why a container cannot start, and the exit code it then shows.
func (e *Engine) obstacle(c *container) (int, string) {
	if c.program.FailStart != "" {
		return cmp.Or(c.program.StartCode, 127), c.program.FailStart
	}
	if c.Spec != nil {
		if sandbox := e.containers[c.Sandbox.ID]; sandbox == nil || sandbox.State != runtime.Running {
			return 128, "cannot join network of a non running container: " + c.Sandbox.ID
		}
	}
	if len(c.ports) == 0 {
		return 0, ""
	}
	for _, other := range e.containers {
		if other == c || other.State != runtime.Running {
			continue
		}
		for _, p := range c.ports {
			if slices.ContainsFunc(other.ports, func(q runtime.Port) bool { return overlap(p, q) }) {
				return 128, fmt.Sprintf("driver failed programming external connectivity: port %d is already allocated", p.HostPort)
			}
		}
	}
	return 0, ""
}

func overlap(p, q runtime.Port) bool {
	any := func(ip string) bool { return ip == "" || ip == "0.0.0.0" || ip == "::" }
	return p.HostPort != 0 && p.HostPort == q.HostPort && p.Protocol == q.Protocol &&
		(any(p.HostIP) || any(q.HostIP) || p.HostIP == q.HostIP)
}

// expire is a process that ends by itself.
func (e *Engine) expire(c *container, run int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if c.State == runtime.Running && c.run == run {
		e.Fate.Trace("%s exits: %d", c.Name, c.program.Code)
		c.OOMKilled = c.program.OOM
		e.end(c, c.program.Code)
	}
}

// end is the death of a running process.
func (e *Engine) end(c *container, code int) {
	c.State, c.ExitCode = runtime.Exited, code
	c.Finished = e.Wall()
	c.IPs, c.Network = nil, runtime.SandboxRef{}
	close(c.done)
	e.changed("die", 0, c)
}

// terminate sends the stop signal, and SIGKILL after the grace period.
func (e *Engine) terminate(c *container, grace time.Duration) {
	run := c.run
	if c.program.IgnoreTERM {
		e.Fate.After("kill", c.Name, grace, 0, func() { e.kill(c, run, 137) })
		return
	}
	// Some handle SIGTERM and end well, some are ended by it.
	code := []int{0, 143}[e.Fate.Hash("term", c.Name)%2]
	if e.Fate.immediate {
		e.end(c, code)
		return
	}
	e.Fate.After("term", c.Name, 0, min(grace+time.Millisecond, 2*time.Second), func() { e.kill(c, run, code) })
}

func (e *Engine) kill(c *container, run, code int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if c.State == runtime.Running && c.run == run {
		e.Fate.Trace("%s ends: %d", c.Name, code)
		e.end(c, code)
	}
}

// remove forgets a container that does not run.
func (e *Engine) remove(client int, c *container) {
	delete(e.containers, c.ID)
	delete(e.names, c.Name)
	e.changed("destroy", client, c)
}
