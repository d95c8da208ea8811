package fake

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/podkeeper/podkeeper/runtime"
)

// Client is one agent's connection to the engine.
type Client struct {
	// OnEffect, if not nil, is called at each effect of a call, before its reply.
	// It may call Fence: the agent then dies of what it did. It must not call
	// anything else of the engine's.
	OnEffect func(verb string)

	engine  *Engine
	rootDir string
	number  int
	fence   chan struct{}
}

var _ runtime.Runtime = (*Client)(nil)

// Client connects an agent with that root dir.
func (e *Engine) Client(rootDir string) *Client {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.clients++
	return &Client{engine: e, rootDir: rootDir, number: e.clients, fence: make(chan struct{})}
}

// Number tells its changes from those of others, see Change.
func (c *Client) Number() int { return c.number }

// Fence is the death of the agent: calls that are parked and all later ones
// fail without effect. It may be called once.
func (c *Client) Fence() { close(c.fence) }

// Fenced is closed when the agent dies, for whatever else is to fail at that instant.
func (c *Client) Fenced() <-chan struct{} { return c.fence }

// callDeadline is how long a call waits for an engine that hangs.
const callDeadline = 2 * time.Minute

// do makes one call. Its effect runs with the engine locked.
func (c *Client) do(ctx context.Context, verb, object string, least, most time.Duration, effect func() error) error {
	e := c.engine
	e.mu.Lock()
	broken := e.broken
	e.mu.Unlock()
	call := Call{Verb: verb, Object: object, Min: least, Max: most, Deadline: callDeadline, Fence: c.fence, Broken: broken}
	return e.Fate.Do(ctx, call, func() error {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.down {
			return fmt.Errorf("%w: connection refused", runtime.ErrUnavailable)
		}
		err := effect()
		if c.OnEffect != nil {
			c.OnEffect(verb)
		}
		return err
	})
}

// ours returns a container of ours by id.
func (c *Client) ours(id string) (*container, error) {
	found := c.engine.containers[id]
	if found == nil {
		return nil, fmt.Errorf("container %s: %w", id, runtime.ErrNotFound)
	}
	if _, ok := runtime.Owned(c.rootDir, found.Name, found.Labels); !ok {
		c.engine.violations = append(c.engine.violations, fmt.Sprintf("client %d (%s) asked for %s", c.number, c.rootDir, found.Name))
		return nil, fmt.Errorf("container %s: %w", id, runtime.ErrNotFound)
	}
	return found, nil
}

// name returns the object of a call in the trace: a name, which is the same in
// every run, as ids are too.
func (c *Client) name(id string) string {
	c.engine.mu.Lock()
	defer c.engine.mu.Unlock()
	if found := c.engine.containers[id]; found != nil {
		return found.Name
	}
	return id
}

// List implements runtime.Runtime.
func (c *Client) List(ctx context.Context) ([]runtime.Summary, error) {
	var list []runtime.Summary
	err := c.do(ctx, "list", c.rootDir, time.Millisecond, 10*time.Millisecond, func() error {
		for _, found := range c.engine.sorted() {
			if id, ok := runtime.Owned(c.rootDir, found.Name, found.Labels); ok {
				s := runtime.Summary{ID: found.ID, Identity: id, State: found.State}
				if found.State == runtime.Running {
					s.Ports = slices.Clone(found.ports)
				}
				list = append(list, s)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list containers: %w", err)
	}
	return list, nil
}

// Inspect implements runtime.Runtime.
func (c *Client) Inspect(ctx context.Context, id string) (runtime.Container, error) {
	var out runtime.Container
	err := c.do(ctx, "inspect", c.name(id), time.Millisecond, 5*time.Millisecond, func() error {
		found, err := c.ours(id)
		if err == nil {
			out = found.Container
			out.IPs = slices.Clone(found.IPs)
		}
		return err
	})
	if err != nil {
		return runtime.Container{}, fmt.Errorf("inspect container %s: %w", id, err)
	}
	return out, nil
}

// EnsureSandbox implements runtime.Runtime. Create and start are two calls.
func (c *Client) EnsureSandbox(ctx context.Context, spec runtime.SandboxSpec) (runtime.Container, error) {
	var id string
	err := c.do(ctx, "create", spec.ContainerName(), 10*time.Millisecond, 60*time.Millisecond, func() error {
		id = c.ensure(spec.Identity, func(n *container) {
			n.SandboxSpec = &spec
			n.Image, n.HostNetwork, n.CgroupParent = "pause", spec.HostNetwork, spec.CgroupParent
			if !spec.HostNetwork {
				n.ports = spec.Ports
			}
		})
		return nil
	})
	if err == nil {
		err = c.Start(ctx, id)
	}
	if err != nil {
		return runtime.Container{}, fmt.Errorf("ensure sandbox of %s: %w", spec.Key, err)
	}
	return c.Inspect(ctx, id)
}

// EnsureContainer implements runtime.Runtime.
func (c *Client) EnsureContainer(ctx context.Context, spec runtime.ContainerSpec) (id string, err error) {
	err = c.do(ctx, "create", spec.ContainerName(), 10*time.Millisecond, 80*time.Millisecond, func() error {
		for _, m := range append([]runtime.Mount{{Image: spec.Image}}, spec.Mounts...) {
			if m.Image != "" && !c.engine.images[m.Image].Present {
				return fmt.Errorf("image %s: %w", m.Image, runtime.ErrImageNotFound)
			}
		}
		if _, err := c.ours(spec.Sandbox.ID); err != nil {
			return fmt.Errorf("sandbox: %w", err)
		}
		id = c.ensure(spec.Identity, func(n *container) {
			n.Spec = &spec
			n.Image, n.ImageID = spec.Image, c.engine.imageID(spec.Image)
			n.Resources, n.CgroupParent = spec.Resources, spec.CgroupParent
			n.program = c.engine.Program(spec)
		})
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("ensure container %s of %s: %w", spec.Name, spec.Key, err)
	}
	return id, nil
}

// ensure returns the container of that identity, and makes it if there is none.
func (c *Client) ensure(id runtime.Identity, fill func(*container)) string {
	name := id.ContainerName()
	suffixed := name + fmt.Sprintf("_%08x", uint32(c.engine.Fate.Hash("suffix", name)))
	for _, taken := range []string{name, suffixed} {
		if found := c.engine.byName(taken); found != nil {
			if _, ours := runtime.Owned(c.rootDir, found.Name, found.Labels); ours {
				return found.ID
			}
		}
	}
	if c.engine.byName(name) != nil {
		name = suffixed
	}
	n := &container{View: View{
		Container: runtime.Container{Identity: id},
		Ours:      true, Name: name, Labels: id.Labels(c.rootDir),
	}}
	// What was made is known by what its labels say.
	n.Identity, _ = runtime.Owned(c.rootDir, name, n.Labels)
	fill(n)
	return c.engine.create(c.number, n).ID
}

// Start implements runtime.Runtime.
func (c *Client) Start(ctx context.Context, id string) error {
	err := c.do(ctx, "start", c.name(id), 100*time.Millisecond, 500*time.Millisecond, func() error {
		found, err := c.ours(id)
		if err != nil || found.State == runtime.Running {
			return err
		}
		return c.engine.start(c.number, found)
	})
	if err != nil {
		return fmt.Errorf("start container %s: %w", id, err)
	}
	return nil
}

// Stop implements runtime.Runtime. Once the signal is sent, what follows is
// the engine's doing, whether or not the caller still listens.
func (c *Client) Stop(ctx context.Context, id string, grace time.Duration) error {
	name := c.name(id)
	var done, broken chan struct{}
	err := c.do(ctx, "stop", name, time.Millisecond, 10*time.Millisecond, func() error {
		found, err := c.ours(id)
		if err != nil || found.State != runtime.Running {
			return err
		}
		done, broken = found.done, c.engine.broken
		c.engine.Observe(Change{Verb: "stop", Client: c.number, Container: found.View})
		c.engine.terminate(found, grace)
		return nil
	})
	if err == nil && done != nil {
		err = c.wait(ctx, name, done, broken)
	}
	if err != nil && !errors.Is(err, runtime.ErrNotFound) {
		return fmt.Errorf("stop container %s: %w", id, err)
	}
	return nil
}

// wait returns when a container that was told to stop has ended.
func (c *Client) wait(ctx context.Context, name string, done, broken chan struct{}) error {
	select {
	case <-done:
	case <-broken:
	case <-c.fence:
		return errFenced
	case <-ctx.Done():
	}
	switch {
	case closed(c.fence):
		return errFenced
	case closed(broken):
		// The engine breaks its connections before it ends its containers.
		return c.engine.Fate.Do(ctx, Call{Verb: "stop-wait", Object: name, Max: 5 * time.Millisecond, Fence: c.fence}, func() error { return errBroken })
	case closed(done):
		return nil
	}
	return fmt.Errorf("%w: %w", runtime.ErrUnavailable, ctx.Err())
}

// Remove implements runtime.Runtime.
func (c *Client) Remove(ctx context.Context, id string) error {
	err := c.do(ctx, "remove", c.name(id), 5*time.Millisecond, 50*time.Millisecond, func() error {
		found, err := c.ours(id)
		if err != nil {
			return err
		}
		if found.State == runtime.Running {
			return fmt.Errorf("container %s runs", found.Name)
		}
		c.engine.remove(c.number, found)
		return nil
	})
	if err != nil && !errors.Is(err, runtime.ErrNotFound) {
		return fmt.Errorf("remove container %s: %w", id, err)
	}
	return nil
}

// UpdateResources implements runtime.Runtime.
func (c *Client) UpdateResources(ctx context.Context, id string, r runtime.Resources) error {
	err := c.do(ctx, "update", c.name(id), 5*time.Millisecond, 20*time.Millisecond, func() error {
		found, err := c.ours(id)
		if err != nil {
			return err
		}
		r.CPUSet = cmp.Or(r.CPUSet, found.Resources.CPUSet)
		found.Resources = r
		c.engine.changed("update", c.number, found)
		return nil
	})
	if err != nil {
		return fmt.Errorf("update container %s: %w", id, err)
	}
	return nil
}
