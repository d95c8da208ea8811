package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/containerd/errdefs"
	"github.com/distribution/reference"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/registry"

	"github.com/podkeeper/podkeeper/runtime"
)

// pullStall is how long a pull may say nothing. A big layer of a slow registry
// takes long, but it reports on the way.
const pullStall = 5 * time.Minute

// Pull implements [runtime.Runtime]. It has no deadline but that of silence.
func (r *Runtime) Pull(ctx context.Context, ref string, auth runtime.Auth, progress func(runtime.PullProgress)) error {
	if _, err := reference.ParseNormalizedNamed(ref); err != nil {
		return fmt.Errorf("pull %s: %w: %w", ref, runtime.ErrInvalid, err)
	}
	e, err := r.engine(ctx)
	if err == nil {
		err = r.pull(ctx, e, ref, auth, progress)
	}
	if err != nil {
		return fmt.Errorf("pull %s: %w", ref, err)
	}
	return nil
}

func (r *Runtime) pull(ctx context.Context, e *engine, ref string, auth runtime.Auth, progress func(runtime.PullProgress)) error {
	login, err := loginHeader(auth)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stalled := time.AfterFunc(r.pullStall, func() {
		cancel(fmt.Errorf("%w: no progress for %v", runtime.ErrUnavailable, r.pullStall))
	})
	defer stalled.Stop()

	stream, err := e.ImagePull(ctx, ref, image.PullOptions{RegistryAuth: login})
	if err != nil {
		return pullError(ctx, err)
	}
	defer stream.Close()
	state := pullState{image: ref, layers: map[string]*layer{}}
	err = readPull(stream, func(message pullMessage) {
		stalled.Reset(r.pullStall)
		if state.apply(message) && progress != nil {
			progress(state.progress())
		}
	})
	return pullError(ctx, err)
}

// loginHeader returns what the engine is sent beside a pull; "" for nobody.
func loginHeader(auth runtime.Auth) (string, error) {
	if auth == (runtime.Auth{}) {
		return "", nil
	}
	return registry.EncodeAuthConfig(registry.AuthConfig{
		Username: auth.Username, Password: auth.Password,
		IdentityToken: auth.IdentityToken, RegistryToken: auth.RegistryToken, ServerAddress: auth.Server,
	})
}

// pullError classes what the engine or, through it, the registry said. The
// engine's code for a repository that needs a login is that of a missing one.
func pullError(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errdefs.IsNotFound(err):
		return class(runtime.ErrImageNotFound, err)
	case errdefs.IsUnauthorized(err), errdefs.IsPermissionDenied(err):
		return class(runtime.ErrImageDenied, err)
	default:
		return classify(err)
	}
}

// pullMessage is one object of the engine's progress stream.
type pullMessage struct {
	Status string `json:"status"`
	ID     string `json:"id"`
	Detail struct {
		Current int64 `json:"current"`
		Total   int64 `json:"total"`
	} `json:"progressDetail"`
	Error *pullFailure `json:"errorDetail"`
}

// pullFailure is an error that the engine found after it had answered 200.
type pullFailure struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

func (f *pullFailure) Error() string { return f.Message }

// Is lets the classes be those of a status with the same code.
func (f *pullFailure) Is(target error) bool {
	switch f.Code {
	case http.StatusNotFound:
		return target == errdefs.ErrNotFound
	case http.StatusUnauthorized:
		return target == errdefs.ErrUnauthenticated
	case http.StatusForbidden:
		return target == errdefs.ErrPermissionDenied
	default:
		return false
	}
}

// readPull reads a progress stream to its end.
func readPull(stream io.Reader, each func(pullMessage)) error {
	decoder := json.NewDecoder(stream)
	for {
		var message pullMessage
		if err := decoder.Decode(&message); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if message.Error != nil {
			return message.Error
		}
		each(message)
	}
}

// The engine has no field for what a layer is doing, only words. They are read
// for display and decide nothing.
const (
	statusPulling     = "Pulling fs layer"
	statusWaiting     = "Waiting"
	statusDownloading = "Downloading"
	statusDownloaded  = "Download complete"
	statusDone        = "Pull complete"
	statusExists      = "Already exists"
)

type layer struct {
	done           bool
	current, total int64
}

type pullState struct {
	image  string
	layers map[string]*layer
}

// apply reports whether the message was about a layer.
func (s *pullState) apply(message pullMessage) bool {
	l := s.layers[message.ID]
	if l == nil {
		l = &layer{}
	}
	switch message.Status {
	case statusPulling, statusWaiting:
	case statusDownloading:
		l.current, l.total = message.Detail.Current, max(message.Detail.Total, message.Detail.Current)
	case statusDownloaded:
		l.current = l.total
	case statusDone, statusExists:
		l.current, l.done = l.total, true
	default:
		return false
	}
	s.layers[message.ID] = l
	return true
}

func (s *pullState) progress() runtime.PullProgress {
	p := runtime.PullProgress{Image: s.image, Layers: len(s.layers)}
	for _, l := range s.layers {
		if l.done {
			p.Done++
		}
		p.Bytes += l.current
		p.Total += l.total
	}
	return p
}
