package runtimetest

import (
	"context"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/runtime"
)

// Env is what one test works on. Whatever a test leaves in the engine under
// its two root dirs, and what Somebody made, is the Env's to clean up.
type Env struct {
	// Runtime is the one under test; its owner label is RootDir, which no other
	// test uses.
	Runtime runtime.Runtime
	RootDir string
	// Other is another agent's, on the same engine.
	Other runtime.Runtime

	// Image is present. Missing is a well-formed name of one that is not, and
	// that no registry in reach has.
	Image, Missing string
	// Forever runs until SIGTERM and then exits promptly.
	Forever []string
	// IgnoreTERM runs until SIGKILL. Its handler is in place Settle after Start returned.
	IgnoreTERM []string
	Settle     time.Duration
	// Exit ends at once with that code.
	Exit func(code int) []string
	// Say writes lines to stdout, to the end, and exits with 0.
	Say func(lines ...string) []string
	// Hang, as a command beside a container's own, runs until it is killed.
	Hang []string
	// Cat writes what it reads. Sizes writes the size of its terminal when it starts, if
	// it has one by then, and when it changes: height, blank, width.
	Cat, Sizes []string
	// FailStart cannot be started: there is no such program.
	FailStart []string
	// CgroupParent is one that this engine takes.
	CgroupParent string

	Somebody Somebody
}

// Somebody does what people do with the engine's own command line. Its methods
// end the test where they fail.
type Somebody interface {
	// Run makes and starts a container that runs for ever and returns its id.
	Run(t *testing.T, name string, labels map[string]string) string
	// Kill sends SIGKILL and waits until the container has ended.
	Kill(t *testing.T, id string)
	// Restart stops a container, if it runs, and starts it.
	Restart(t *testing.T, id string)
	// Remove removes a container, running or not.
	Remove(t *testing.T, id string)
	// MakeImage makes an image that nothing else is like, under these names. It goes
	// with the test, and so do its names.
	MakeImage(t *testing.T, names ...string)
	// Running reports whether the container is there and runs; there whether it is.
	Running(t *testing.T, id string) (running, there bool)
}

// Run runs the suite. newEnv is called once for each test.
func Run(t *testing.T, newEnv func(t *testing.T) Env) {
	RunCommands(t, newEnv)
	run(t, newEnv, map[string]func(*testing.T, bench){
		"a sandbox runs and says what it is":                    sandboxRuns,
		"an ensured sandbox is found again":                     sandboxEnsuredTwice,
		"a sandbox that ended is started again":                 sandboxTakenOverEnded,
		"a sandbox on the host's network has no address":        hostNetwork,
		"two sandboxes on one host port":                        hostPortInUse,
		"a container is created, started, and says what it is":  containerRuns,
		"an ensured container is found again":                   containerEnsuredTwice,
		"a name held by another is stepped around, once":        nameHeld,
		"create without an image":                               createWithoutImage,
		"create without a sandbox":                              createWithoutSandbox,
		"start is done twice":                                   startTwice,
		"start of one that is gone":                             startGone,
		"a failed start was an attempt":                         failedStart,
		"start in a sandbox that ended":                         startInEndedSandbox,
		"exit codes":                                            exitCodes,
		"stop asks first":                                       stopAsks,
		"stop kills after the grace period":                     stopKills,
		"stop of what has ended, never ran or is gone":          stopOver,
		"remove of one that runs, of one that ended, and again": removeTwice,
		"inspect of what is gone or not ours":                   inspectNotOurs,
		"what is not ours is neither listed nor touched":        foreign,
		"agents with other root dirs do not see each other":     rootDirs,
		"a sandbox and a container in a cgroup":                 cgroupParent,
		"resources change in place":                             resources,
		"a restart by somebody shows":                           restarted,
		"watch tells of every change of ours":                   watch,
		"watch ends with its context":                           watchEnds,
		"images":                                                images,
		"an image goes with all its names":                      imageRemoved,
		"an image in use stays, and keeps its names":            imageInUse,
		"attach joins in":                                       attach,
		"attach leaves a container as it is":                    attachLeaves,
		"attach leaves a terminal as it is":                     attachTerminal,
		"the end of a log":                                      logTail,
		"a log":                                                 logs,
		"a log that is followed":                                logsFollowed,
		"features":                                              features,
		"a context that is over":                                contextOver,
	})
}

// RunCommands runs the part of it that is about commands in containers.
func RunCommands(t *testing.T, newEnv func(t *testing.T) Env) {
	run(t, newEnv, map[string]func(*testing.T, bench){
		"exec says what a command wrote and came to":          execEnds,
		"exec is killed when its time is over":                execKilled,
		"exec in what does not run":                           execNowhere,
		"a command reads, writes and ends while one looks on": execStream,
		"a command whose onlooker goes away is killed":        execStreamKilled,
		"a command has a terminal":                            execTerminal,
	})
}

func run(t *testing.T, newEnv func(t *testing.T) Env, tests map[string]func(*testing.T, bench)) {
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, bench{Env: newEnv(t), ctx: t.Context()})
		})
	}
}

// bench is an Env with the handles that tests share.
type bench struct {
	Env
	ctx context.Context
}

// identity has every field set, to see each of them come back.
func identity(name string, attempt int) runtime.Identity {
	return runtime.Identity{
		Key:     pod.Key{Namespace: "conformance", Name: "web-node"},
		UID:     types.UID("0f0e0d0c-1111-5222-8333-444455556666"),
		Source:  pod.FileSource,
		Name:    name,
		Attempt: attempt,
		PodHash: pod.Hash{Version: 1, Digest: "abcdef012345"},
		Grace:   7 * time.Second,
	}
}

func (b bench) sandboxSpec() runtime.SandboxSpec {
	return runtime.SandboxSpec{Identity: identity(runtime.SandboxName, 3), Hostname: "web-node", Security: runtime.Security{Seccomp: runtime.SeccompDefault}}
}

func (b bench) sandbox(t *testing.T) runtime.Container {
	t.Helper()
	sandbox, err := b.Runtime.EnsureSandbox(b.ctx, b.sandboxSpec())
	if err != nil {
		t.Fatal(err)
	}
	return sandbox
}

func (b bench) containerSpec(sandbox runtime.Container, name string, command []string) runtime.ContainerSpec {
	spec := runtime.ContainerSpec{Identity: identity(name, 2), Image: b.Image, Command: command}
	spec.ContainerHash = pod.Hash{Version: 1, Digest: "0123456789ab"}
	spec.Sandbox = sandbox.Ref()
	return spec
}

// create makes a container with that command in a sandbox.
func (b bench) create(t *testing.T, sandbox runtime.Container, name string, command []string) string {
	t.Helper()
	id, err := b.Runtime.EnsureContainer(b.ctx, b.containerSpec(sandbox, name, command))
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// run creates and starts one.
func (b bench) run(t *testing.T, sandbox runtime.Container, name string, command []string) string {
	t.Helper()
	id := b.create(t, sandbox, name, command)
	if err := b.Runtime.Start(b.ctx, id); err != nil {
		t.Fatal(err)
	}
	return id
}

func (b bench) inspect(t *testing.T, id string) runtime.Container {
	t.Helper()
	c, err := b.Runtime.Inspect(b.ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (b bench) list(t *testing.T, r runtime.Runtime) []runtime.Summary {
	t.Helper()
	list, err := r.List(b.ctx)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// watching starts a Watch and returns once it is up. The test owns it: it ends
// with the test.
func (b bench) watching(t *testing.T) <-chan string {
	t.Helper()
	ctx, cancel := context.WithCancel(b.ctx)
	changed, up, ended := make(chan string), make(chan struct{}), make(chan error, 1)
	go func() { ended <- b.Runtime.Watch(ctx, func() { close(up) }, changed) }()
	select {
	case <-up:
	case err := <-ended:
		cancel()
		t.Fatalf("the stream ended before it was up: %v", err)
	}
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return changed
}

// await waits for a change of id, and fails if it does not come or another id
// does that the test says must not.
func await(t *testing.T, changed <-chan string, id string, never ...string) {
	t.Helper()
	deadline := time.After(10 * time.Second)
	for {
		select {
		case got := <-changed:
			for _, n := range never {
				if got == n {
					t.Errorf("told of %s, which is not ours", n)
				}
			}
			if got == id {
				return
			}
		case <-deadline:
			t.Fatalf("no event for %s within 10 s", id)
		}
	}
}

// ended waits until a container has ended by itself.
func (b bench) ended(t *testing.T, changed <-chan string, id string) runtime.Container {
	t.Helper()
	for {
		if c := b.inspect(t, id); c.Ended() {
			return c
		}
		await(t, changed, id)
	}
}

// port returns a port of the pod on the host's loopback.
func port(host int32) runtime.Port {
	return runtime.Port{ContainerPort: 80, HostPort: host, Protocol: v1.ProtocolTCP, HostIP: "127.0.0.1"}
}
