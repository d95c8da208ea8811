package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/podkeeper/podkeeper/runtime"
)

// execMark is in every command that an agent has started: the keys with which
// somebody leaves its terminal, which nobody types, and the engine tells them, as the
// bytes that they send. Of a terminal the engine holds back the first of them until
// the next key, so it is one that programs hardly use.
const (
	execMark    = "ctrl-^,ctrl-],ctrl-^,ctrl-_"
	execMarkHas = "\x1e\x1d\x1e\x1f"
)

// leftBehind ends what an earlier agent, that was killed, has left of its commands in
// a container: the engine lets a command run on when nobody listens any more. It does
// so once, before the first command of this agent in it.
func (r *Runtime) leftBehind(ctx context.Context, e *engine, id string) {
	known, _ := r.cleared.LoadOrStore(id, new(clearing))
	c := known.(*clearing)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done {
		return
	}
	err := r.endLeftBehind(ctx, e, id)
	if c.done = ctx.Err() == nil; c.done && err != nil && !errors.Is(err, runtime.ErrNotFound) {
		r.log.Warn("commands that an earlier agent has left in a container cannot be looked after", "id", id, "err", err)
	}
}

// clearing is what has been done about one container.
type clearing struct {
	mu   sync.Mutex
	done bool
}

func (r *Runtime) endLeftBehind(ctx context.Context, e *engine, id string) error {
	in, err := r.lookup(ctx, e, id)
	if err != nil || in.ContainerJSONBase == nil {
		return classify(err)
	}
	var errs []error
	for _, exec := range in.ExecIDs {
		left, err := r.isLeftBehind(ctx, e, exec)
		if left {
			_, _, err = r.killExec(ctx, e, id, exec)
		}
		if errs = append(errs, err); left && err == nil {
			r.log.Info("a command of an earlier agent ended", "id", id, "reason", "nobody waits for it any more")
		}
	}
	return errors.Join(errs...)
}

// isLeftBehind asks without the library's help, which does not tell the mark.
func (r *Runtime) isLeftBehind(ctx context.Context, e *engine, exec string) (bool, error) {
	ctx, cancel := r.limit(ctx, inspectTimeout)
	defer cancel()
	to := e.address.JoinPath("v"+e.ClientVersion(), "exec", exec, "json")
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, to.String(), nil)
	if err != nil {
		return false, err
	}
	answer, err := e.HTTPClient().Do(request)
	if err != nil {
		return false, classify(err)
	}
	defer answer.Body.Close()
	switch answer.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound: // it has ended since
		return false, nil
	default:
		return false, fmt.Errorf("the engine answers %s", answer.Status)
	}
	var is struct {
		Running    bool
		DetachKeys []byte
	}
	if err := json.NewDecoder(answer.Body).Decode(&is); err != nil {
		return false, fmt.Errorf("read what the engine tells of a command: %w", err)
	}
	return is.Running && string(is.DetachKeys) == execMarkHas, nil
}
