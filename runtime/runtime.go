package runtime

import (
	"context"
	"errors"
	"time"
)

// The classes of error that callers tell apart. Adapters map their engine's
// codes to them and wrap the engine's own text, which is for people only.
var (
	// ErrNotFound: the container (or the sandbox to join) is not there.
	ErrNotFound = errors.New("not found")
	// ErrImageNotFound: the engine does not have the image.
	ErrImageNotFound = errors.New("image not found")
	// ErrImageDenied: the registry refused to hand out the image.
	ErrImageDenied = errors.New("image denied")
	// ErrInvalid: the engine refuses the request as it stands; the same request
	// will be refused again.
	ErrInvalid = errors.New("invalid request")
	// ErrUnavailable: the engine does not answer, or not in time.
	ErrUnavailable = errors.New("engine unavailable")
)

// Runtime is every verb that an engine offers. Consumers declare the few they
// need. All methods may be called from several goroutines, respect the context,
// and have a deadline of their own where the engine could hang.
type Runtime interface {
	// List names everything of ours, sandboxes and containers, in any state.
	List(context.Context) ([]Summary, error)
	// Inspect returns one container of ours. ErrNotFound where it is gone or
	// not ours.
	Inspect(ctx context.Context, id string) (Container, error)
	// Watch sends the id of each container of ours that changed, until the
	// stream ends; it returns why. ready is called once the stream is up, so
	// that a List after it misses nothing. Ids may repeat; a lost one costs
	// latency only.
	Watch(ctx context.Context, ready func(), changed chan<- string) error

	// EnsureSandbox creates and starts the sandbox. One of the same name that is
	// ours is taken over (a lost reply), started if need be. On an error after
	// creation the container may be left, created, and shows up in List.
	EnsureSandbox(context.Context, SandboxSpec) (Container, error)
	// EnsureContainer creates a container, not started, and returns its id. One
	// of the same name that is ours is taken over. ErrImageNotFound where the
	// image is missing, ErrNotFound where the sandbox is.
	EnsureContainer(context.Context, ContainerSpec) (id string, err error)
	// Start starts a created container; one that runs is success. ErrNotFound
	// where it is gone. After another error Inspect tells the exit code.
	Start(ctx context.Context, id string) error
	// Stop sends the container's stop signal, and SIGKILL after the grace
	// period, and returns when it has ended. One that is gone is success.
	Stop(ctx context.Context, id string, grace time.Duration) error
	// Remove removes a container that does not run, with its anonymous volumes.
	// One that is gone is success.
	Remove(ctx context.Context, id string) error
	// UpdateResources changes the limits of a running container in place.
	UpdateResources(ctx context.Context, id string, r Resources) error

	// ImageExists reports whether the engine has the image.
	ImageExists(ctx context.Context, ref string) (bool, error)
	// Pull fetches an image. progress may be nil; it is called from one
	// goroutine.
	Pull(ctx context.Context, ref string, progress func(PullProgress)) error
}

// PullProgress is how far a pull is.
type PullProgress struct {
	Image string
	// Layers done and known so far.
	Done, Layers int
	// Bytes fetched and to fetch, of the layers whose size is known.
	Bytes, Total int64
}
