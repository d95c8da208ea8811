package fake

import (
	"fmt"
	"maps"

	"github.com/podkeeper/podkeeper/runtime"
)

// This file is what others do to the engine: people with its command line, the
// machine, and the engine's own restarts. Each happens at once.

// Run makes and starts a container of somebody's. Its labels may be ours, as
// those of a container made from a commit of one of ours are.
func (e *Engine) Run(name string, labels map[string]string) (id string, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.byName(name) != nil {
		return "", fmt.Errorf("the name %s is in use", name)
	}
	e.Fate.Trace("somebody runs %s", name)
	c := e.create(0, &container{View: View{Name: name, Labels: maps.Clone(labels), Container: runtime.Container{Image: "somebody"}}})
	return c.ID, e.start(0, c)
}

// Kill ends a running container with SIGKILL. It reports whether there was one.
func (e *Engine) Kill(id string) bool {
	return e.somebody("kills", id, func(c *container) bool {
		running := c.State == runtime.Running
		if running {
			e.end(c, 137)
		}
		return running
	})
}

// Restart ends a running container and starts it again at once. One that does
// not run is started. It reports whether it runs now.
func (e *Engine) Restart(id string) bool {
	return e.somebody("restarts", id, func(c *container) bool {
		if c.State == runtime.Running {
			e.end(c, 137)
		}
		return e.start(0, c) == nil
	})
}

// Destroy removes a container, running or not.
func (e *Engine) Destroy(id string) bool {
	return e.somebody("destroys", id, func(c *container) bool {
		if c.State == runtime.Running {
			e.end(c, 137)
		}
		e.remove(0, c)
		return true
	})
}

func (e *Engine) somebody(does, id string, act func(*container) bool) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	c := e.containers[id]
	if c == nil {
		return false
	}
	e.Fate.Trace("somebody %s %s", does, c.Name)
	return act(c)
}

// Down stops the engine: connections and streams break, calls fail until Up.
// Containers run on under live-restore and end without.
func (e *Engine) Down(liveRestore bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.Fate.Trace("engine down, live-restore %t", liveRestore)
	e.down = true
	e.breakAll()
	if liveRestore {
		return
	}
	for _, c := range e.sorted() {
		if c.State == runtime.Running {
			e.end(c, []int{0, 137, 143}[e.Fate.Hash("down", c.Name, c.Start)%3])
		}
	}
}

// Up starts it again.
func (e *Engine) Up() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.Fate.Trace("engine up")
	e.down = false
}

// BreakConnections breaks every stream and every call in flight.
func (e *Engine) BreakConnections() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.Fate.Trace("connections break")
	e.breakAll()
}

func (e *Engine) breakAll() {
	close(e.broken)
	e.broken = make(chan struct{})
	clear(e.subscribers)
}
