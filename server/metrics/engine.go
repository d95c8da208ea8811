package metrics

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/podkeeper/podkeeper/runtime"
)

// Engine is a runtime whose calls are counted, by what the kubelet calls them. What it
// has no count for goes through.
type Engine struct {
	runtime.Runtime
	c *Counters
}

// Count returns an engine that counts its calls.
func (c *Counters) Count(rt runtime.Runtime) Engine { return Engine{rt, c} }

// listing is when the engine's containers were listed last.
type listing struct {
	mu   sync.Mutex
	last time.Time
}

// pulling has the pulls that are under way, by image.
type pulling struct {
	mu     sync.Mutex
	images map[string]runtime.PullProgress
}

// did counts a call when it returns. Errors of the classes in fine are answers.
func (e Engine) did(operation string, began time.Time, returned *error, fine ...error) {
	c, err := e.c, *returned
	c.operations.WithLabelValues(operation).Inc()
	c.operationTook.WithLabelValues(operation).Observe(time.Since(began).Seconds())
	for _, f := range fine {
		if errors.Is(err, f) {
			err = nil
		}
	}
	if err != nil {
		c.operationErrors.WithLabelValues(operation).Inc()
	}
}

// List is that of runtime.Runtime.
func (e Engine) List(ctx context.Context) ([]runtime.Summary, error) {
	began := time.Now()
	list, err := e.Runtime.List(ctx)
	e.did("list_containers", began, &err)
	e.c.relist.Observe(time.Since(began).Seconds())
	l := &e.c.listing
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.last.IsZero() {
		e.c.relistInterval.Observe(began.Sub(l.last).Seconds())
	}
	l.last = began
	if err == nil {
		e.c.relisted.SetToCurrentTime()
	}
	return list, err
}

// Inspect is that of runtime.Runtime.
func (e Engine) Inspect(ctx context.Context, id string) (_ runtime.Container, err error) {
	defer e.did("container_status", time.Now(), &err, runtime.ErrNotFound)
	return e.Runtime.Inspect(ctx, id)
}

// EnsureSandbox is that of runtime.Runtime.
func (e Engine) EnsureSandbox(ctx context.Context, s runtime.SandboxSpec) (_ runtime.Container, err error) {
	defer e.did("run_podsandbox", time.Now(), &err)
	return e.Runtime.EnsureSandbox(ctx, s)
}

// EnsureContainer is that of runtime.Runtime.
func (e Engine) EnsureContainer(ctx context.Context, s runtime.ContainerSpec) (_ string, err error) {
	defer e.did("create_container", time.Now(), &err)
	return e.Runtime.EnsureContainer(ctx, s)
}

// Start is that of runtime.Runtime.
func (e Engine) Start(ctx context.Context, id string) (err error) {
	defer e.did("start_container", time.Now(), &err)
	return e.Runtime.Start(ctx, id)
}

// Stop is that of runtime.Runtime.
func (e Engine) Stop(ctx context.Context, id string, grace time.Duration) (err error) {
	defer e.did("stop_container", time.Now(), &err)
	return e.Runtime.Stop(ctx, id, grace)
}

// Remove is that of runtime.Runtime.
func (e Engine) Remove(ctx context.Context, id string) (err error) {
	defer e.did("remove_container", time.Now(), &err)
	return e.Runtime.Remove(ctx, id)
}

// UpdateResources is that of runtime.Runtime.
func (e Engine) UpdateResources(ctx context.Context, id string, r runtime.Resources) (err error) {
	defer e.did("update_container", time.Now(), &err)
	return e.Runtime.UpdateResources(ctx, id, r)
}

// Exec is that of runtime.Runtime.
func (e Engine) Exec(ctx context.Context, id string, command []string, most int) (_ runtime.ExecResult, err error) {
	defer e.did("exec_sync", time.Now(), &err, context.DeadlineExceeded, context.Canceled)
	return e.Runtime.Exec(ctx, id, command, most)
}

// Image is that of runtime.Runtime.
func (e Engine) Image(ctx context.Context, ref string) (_ runtime.ImageInfo, err error) {
	defer e.did("image_status", time.Now(), &err, runtime.ErrImageNotFound)
	return e.Runtime.Image(ctx, ref)
}

// Images is that of runtime.Runtime.
func (e Engine) Images(ctx context.Context) (_ []runtime.StoredImage, err error) {
	defer e.did("list_images", time.Now(), &err)
	return e.Runtime.Images(ctx)
}

// RemoveImage is that of runtime.Runtime.
func (e Engine) RemoveImage(ctx context.Context, id string) (err error) {
	defer e.did("remove_image", time.Now(), &err, runtime.ErrInUse)
	return e.Runtime.RemoveImage(ctx, id)
}

// Features is that of runtime.Runtime.
func (e Engine) Features(ctx context.Context) (_ runtime.Features, err error) {
	defer e.did("status", time.Now(), &err)
	return e.Runtime.Features(ctx)
}

// Pull is that of runtime.Runtime. How far it is can be read as long as it goes on.
func (e Engine) Pull(ctx context.Context, ref string, auth runtime.Auth, progress func(runtime.PullProgress)) error {
	began, p := time.Now(), &e.c.pulling
	err := e.Runtime.Pull(ctx, ref, auth, func(now runtime.PullProgress) {
		p.mu.Lock()
		if p.images == nil {
			p.images = make(map[string]runtime.PullProgress)
		}
		p.images[ref] = now
		p.mu.Unlock()
		if progress != nil {
			progress(now)
		}
	})
	p.mu.Lock()
	delete(p.images, ref)
	p.mu.Unlock()
	e.did("pull_image", began, &err)
	e.c.pulls.WithLabelValues(result(err)).Inc()
	return err
}

// ExecStream is that of runtime.Runtime.
func (e Engine) ExecStream(ctx context.Context, id string, command []string, s runtime.Streams) (_ int, err error) {
	defer e.did("exec", time.Now(), &err, context.DeadlineExceeded, context.Canceled)
	return e.Runtime.ExecStream(ctx, id, command, s)
}

// Attach is that of runtime.Runtime.
func (e Engine) Attach(ctx context.Context, id string, s runtime.Streams) (err error) {
	defer e.did("attach", time.Now(), &err, context.DeadlineExceeded, context.Canceled)
	return e.Runtime.Attach(ctx, id, s)
}

// LogTail is that of runtime.Runtime.
func (e Engine) LogTail(ctx context.Context, id string, lines, bytes int) (_ []byte, err error) {
	defer e.did("log_tail", time.Now(), &err, runtime.ErrNotFound)
	return e.Runtime.LogTail(ctx, id, lines, bytes)
}

// Logs is that of runtime.Runtime.
func (e Engine) Logs(ctx context.Context, id string, q runtime.LogQuery, out io.Writer) (err error) {
	defer e.did("logs", time.Now(), &err, runtime.ErrNotFound, context.DeadlineExceeded, context.Canceled)
	return e.Runtime.Logs(ctx, id, q, out)
}
