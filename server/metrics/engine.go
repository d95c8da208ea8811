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

// did counts a call. Errors of the classes in fine are answers.
func (e Engine) did(operation string, began time.Time, err error, fine ...error) {
	c := e.c
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
	e.did("list_containers", began, err)
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
func (e Engine) Inspect(ctx context.Context, id string) (runtime.Container, error) {
	began := time.Now()
	c, err := e.Runtime.Inspect(ctx, id)
	e.did("container_status", began, err, runtime.ErrNotFound)
	return c, err
}

// EnsureSandbox is that of runtime.Runtime.
func (e Engine) EnsureSandbox(ctx context.Context, s runtime.SandboxSpec) (runtime.Container, error) {
	began := time.Now()
	c, err := e.Runtime.EnsureSandbox(ctx, s)
	e.did("run_podsandbox", began, err)
	return c, err
}

// EnsureContainer is that of runtime.Runtime.
func (e Engine) EnsureContainer(ctx context.Context, s runtime.ContainerSpec) (string, error) {
	began := time.Now()
	id, err := e.Runtime.EnsureContainer(ctx, s)
	e.did("create_container", began, err)
	return id, err
}

// Start is that of runtime.Runtime.
func (e Engine) Start(ctx context.Context, id string) error {
	began := time.Now()
	err := e.Runtime.Start(ctx, id)
	e.did("start_container", began, err)
	return err
}

// Stop is that of runtime.Runtime.
func (e Engine) Stop(ctx context.Context, id string, grace time.Duration) error {
	began := time.Now()
	err := e.Runtime.Stop(ctx, id, grace)
	e.did("stop_container", began, err)
	return err
}

// Remove is that of runtime.Runtime.
func (e Engine) Remove(ctx context.Context, id string) error {
	began := time.Now()
	err := e.Runtime.Remove(ctx, id)
	e.did("remove_container", began, err)
	return err
}

// UpdateResources is that of runtime.Runtime.
func (e Engine) UpdateResources(ctx context.Context, id string, r runtime.Resources) error {
	began := time.Now()
	err := e.Runtime.UpdateResources(ctx, id, r)
	e.did("update_container", began, err)
	return err
}

// Exec is that of runtime.Runtime.
func (e Engine) Exec(ctx context.Context, id string, command []string, most int) (runtime.ExecResult, error) {
	began := time.Now()
	r, err := e.Runtime.Exec(ctx, id, command, most)
	e.did("exec_sync", began, err, context.DeadlineExceeded, context.Canceled)
	return r, err
}

// Image is that of runtime.Runtime.
func (e Engine) Image(ctx context.Context, ref string) (runtime.ImageInfo, error) {
	began := time.Now()
	i, err := e.Runtime.Image(ctx, ref)
	e.did("image_status", began, err, runtime.ErrImageNotFound)
	return i, err
}

// Images is that of runtime.Runtime.
func (e Engine) Images(ctx context.Context) ([]runtime.StoredImage, error) {
	began := time.Now()
	list, err := e.Runtime.Images(ctx)
	e.did("list_images", began, err)
	return list, err
}

// RemoveImage is that of runtime.Runtime.
func (e Engine) RemoveImage(ctx context.Context, id string) error {
	began := time.Now()
	err := e.Runtime.RemoveImage(ctx, id)
	e.did("remove_image", began, err, runtime.ErrInUse)
	return err
}

// Features is that of runtime.Runtime.
func (e Engine) Features(ctx context.Context) (runtime.Features, error) {
	began := time.Now()
	f, err := e.Runtime.Features(ctx)
	e.did("status", began, err)
	return f, err
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
	e.did("pull_image", began, err)
	e.c.pulls.WithLabelValues(result(err)).Inc()
	return err
}

// ExecStream is that of runtime.Runtime.
func (e Engine) ExecStream(ctx context.Context, id string, command []string, s runtime.Streams) (int, error) {
	began := time.Now()
	code, err := e.Runtime.ExecStream(ctx, id, command, s)
	e.did("exec", began, err, context.DeadlineExceeded, context.Canceled)
	return code, err
}

// Attach is that of runtime.Runtime.
func (e Engine) Attach(ctx context.Context, id string, s runtime.Streams) error {
	began := time.Now()
	err := e.Runtime.Attach(ctx, id, s)
	e.did("attach", began, err, context.DeadlineExceeded, context.Canceled)
	return err
}

// LogTail is that of runtime.Runtime.
func (e Engine) LogTail(ctx context.Context, id string, lines, bytes int) ([]byte, error) {
	began := time.Now()
	text, err := e.Runtime.LogTail(ctx, id, lines, bytes)
	e.did("log_tail", began, err, runtime.ErrNotFound)
	return text, err
}

// Logs is that of runtime.Runtime.
func (e Engine) Logs(ctx context.Context, id string, q runtime.LogQuery, out io.Writer) error {
	began := time.Now()
	err := e.Runtime.Logs(ctx, id, q, out)
	e.did("logs", began, err, runtime.ErrNotFound, context.DeadlineExceeded, context.Canceled)
	return err
}
