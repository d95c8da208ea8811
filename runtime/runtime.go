package runtime

import (
	"context"
	"errors"
	"io"
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
	// ErrUnsupported: this engine, or the machine that it runs on, cannot do what
	// is asked; nothing was made.
	ErrUnsupported = errors.New("not supported by the engine")
	// ErrNoNetwork: the engine does not have the network of pods.
	ErrNoNetwork = errors.New("network is not ready")
	// ErrInUse: a container or another image needs the image; it is as it was.
	ErrInUse = errors.New("in use")
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
	// creation the container may be left, created, and shows up in List. ErrNoNetwork
	// where it would be attached to a network that is not there.
	EnsureSandbox(context.Context, SandboxSpec) (Container, error)
	// EnsureContainer creates a container, not started, and returns its id. One
	// of the same name that is ours is taken over. ErrImageNotFound where the
	// image or one that is mounted is missing, ErrNotFound where the sandbox is.
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

	// Exec runs a command in a running container, as its user and in its working
	// directory, without a shell and without input, and returns when it ended. most
	// is how many bytes of its output are kept. One that cannot be started has an
	// exit code above 125, and says why. When ctx ends first, the command and what
	// it started are killed, and the error is the context's. ErrNotFound where the
	// container is gone or does not run.
	Exec(ctx context.Context, id string, command []string, most int) (ExecResult, error)
	// ExecStream is Exec for somebody who looks on, and may have the last word: the
	// command ends by itself, or with ctx. exitCode counts where err is nil.
	ExecStream(ctx context.Context, id string, command []string, s Streams) (exitCode int, err error)
	// Attach joins in with a container's own process, from now on, and returns when that
	// ended, or ctx, which leaves the process as it is. Where the container was made
	// without input, Stdin goes nowhere. ErrNotFound where it is gone or does not run.
	Attach(ctx context.Context, id string, s Streams) error
	// LogTail returns the end of what a container wrote: at most so many lines, and
	// of these at most so many bytes, the last ones. ErrNotFound where it is gone.
	LogTail(ctx context.Context, id string, lines, bytes int) ([]byte, error)
	// Logs writes what a container wrote, as it comes; with Follow until it has ended,
	// or ctx. ErrNotFound where it is gone, ErrUnsupported where its log driver writes
	// only. An error of out ends it. With Follow, a Write of nothing says that the log
	// was found.
	Logs(ctx context.Context, id string, q LogQuery, out io.Writer) error

	// Image returns what the engine has under a reference. ErrImageNotFound where
	// it has nothing.
	Image(ctx context.Context, ref string) (ImageInfo, error)
	// Pull fetches an image; the zero Auth is nobody's. progress may be nil; it is
	// called from one goroutine. ErrImageNotFound and ErrImageDenied are what the
	// registry says: for what needs a login, some say one and some the other.
	Pull(ctx context.Context, ref string, auth Auth, progress func(PullProgress)) error
	// Images returns every image of the engine, whoever's, in no order.
	Images(context.Context) ([]StoredImage, error)
	// RemoveImage removes the image of that ID with all its names. One that is gone
	// is success. ErrInUse where StoredImage.InUse is true; it keeps its names then.
	RemoveImage(ctx context.Context, id string) error

	// Features returns what this engine can do. It may be another one after Watch
	// returned.
	Features(context.Context) (Features, error)
}

// ExecResult is what a command in a container came to.
type ExecResult struct {
	ExitCode int
	// Output is the beginning of what it wrote, stdout and stderr as they came.
	Output []byte
}

// LogQuery is what is asked of a log.
type LogQuery struct {
	Follow bool
	// Tail is how many lines of the end; negative is all.
	Tail int64
	// Since leaves out what was written before; zero is nothing.
	Since time.Time
	// Timestamps puts the time before each line, in RFC 3339 with nine digits, and a
	// space.
	Timestamps bool
	// Stdout and Stderr are what is wanted. A terminal has stdout only.
	Stdout, Stderr bool
}

// ImageInfo is what an image says of itself.
type ImageInfo struct {
	// ID is the image's own digest.
	ID string
	// User is its USER: "", "name", "uid", or one of these with ":group".
	User string
	// StopSignal is its STOPSIGNAL, "" where it has none.
	StopSignal string
	// Digests are the references by digest under which it was pulled.
	Digests []string
}

// StoredImage is one image that the engine has.
type StoredImage struct {
	// ID is the image's own digest.
	ID string
	// Names are its references by tag, as the engine spells them, and Digests those
	// by digest. One without either is known by its ID only.
	Names, Digests []string
	// Size in bytes, of its layers together: those that it shares with others too.
	Size int64
	// Built is when it was made, which says nothing of when it came here; zero where
	// the image does not say.
	Built time.Time
	// InUse: a container of the engine needs it, running or not and whoever's, or an
	// image that was made from it.
	InUse bool
}

// Features are what not every engine, or not every machine, can do.
type Features struct {
	// Version is the engine's own, for people.
	Version string
	// RecursiveReadOnly, ImageMounts and OwnUsers are what Mount.Recursive,
	// Mount.Image and UserNamespace ask for.
	RecursiveReadOnly, ImageMounts, OwnUsers bool
	AppArmor, SELinux, Seccomp               bool
	// Handlers are what ContainerSpec.Handler may name, sorted.
	Handlers []string
	// CgroupDriver is who makes the engine's cgroups, which decides how a
	// CgroupParent is spelled; "" where it says nothing of them.
	CgroupDriver CgroupDriver
	// CgroupVersion is 1 or 2; 0 where the engine does not say.
	CgroupVersion int
	// Root is the folder of the engine's data on the host; "" where it does not say.
	Root string
}

// CgroupDriver is who makes cgroups.
type CgroupDriver string

// The cgroup drivers.
const (
	// Cgroupfs: the engine itself, as folders. Parents are paths: "/kubepods/pod1".
	Cgroupfs CgroupDriver = "cgroupfs"
	// Systemd: systemd, as units. Parents are names of slices: "kubepods-pod1.slice".
	Systemd CgroupDriver = "systemd"
)

// PullProgress is how far a pull is.
type PullProgress struct {
	Image string
	// Layers done and known so far.
	Done, Layers int
	// Bytes fetched and to fetch, of the layers whose size is known.
	Bytes, Total int64
}
