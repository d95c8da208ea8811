package docker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	goruntime "runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/versions"
	"github.com/docker/docker/client"

	"github.com/podkeeper/podkeeper/runtime"
	"github.com/podkeeper/podkeeper/runtime/nsenter"
)

// Config says which engine, and how containers are made. The zero value of a
// field means its default.
type Config struct {
	// Host is the engine's address, unix:///path or tcp:// with a loopback
	// address; "" means DOCKER_HOST, else the default socket.
	Host string
	// RootDir is the agent's root dir, which marks what is ours. Required.
	RootDir string
	// PauseImage is the image of sandboxes, pulled when missing; "" means the
	// one that is built in, which needs no pull.
	PauseImage string
	// Network is the engine's network of pods; "" means bridge.
	Network string
	// LogMaxSize is the size in bytes at which a log file is rotated (0: 10 MiB),
	// LogMaxFiles how many are kept of a container (0: 5).
	LogMaxSize  int64
	LogMaxFiles int
	// CallTimeout bounds a create and a start (0: 2 minutes), and from above the
	// shorter limits of the other calls.
	CallTimeout time.Duration
	// ExecHandler is what runs commands in containers; "" is [NativeExec].
	ExecHandler ExecHandler
}

const (
	defaultCallTimeout = 2 * time.Minute
	listTimeout        = 30 * time.Second
	inspectTimeout     = 10 * time.Second
	// stopSlack is what an engine may need after the grace period.
	stopSlack = 30 * time.Second
	// oldestAPI is that of engine 20.10.
	oldestAPI = "1.41"
)

// Runtime is a Docker Engine. It is safe for concurrent use.
type Runtime struct {
	host     string
	cfg      Config
	settings settings
	log      *slog.Logger
	// pullStall is how long a pull may say nothing.
	pullStall time.Duration

	// current is nil until the engine answers, and after its event stream broke:
	// an engine that comes back may be another version.
	current    atomic.Pointer[engine]
	connecting chan struct{} // holds one token while somebody connects
	loading    chan struct{} // and while somebody loads the pause image
	execs      chan struct{} // holds one for each command that is being started
	oomWarned  atomic.Bool
	warned     sync.Map // the engine's warnings that were passed on
	ours       ownedIDs
	cleared    sync.Map // by id of a container, a *clearing: see leftBehind
	// commands runs those of ours that the engine does not; nil where it runs all.
	commands *nsenter.Program
}

var _ runtime.Runtime = (*Runtime)(nil)

// engine is a connection whose API version was negotiated.
type engine struct {
	*client.Client
	// address is where requests go that the library does not make.
	address *url.URL
	// arch is the engine's, in Go's spelling.
	arch string
	// oomFloor is the lowest oom_score_adj that it can set.
	oomFloor int
}

// New checks the configuration. The engine need not be up: until it is, each
// call says [runtime.ErrUnavailable].
func New(cfg Config, log *slog.Logger) (*Runtime, error) {
	host, err := engineHost(cfg.Host)
	if err != nil {
		return nil, err
	}
	if cfg.RootDir == "" {
		return nil, errors.New("docker: no root dir")
	}
	if cfg.Network == "" {
		cfg.Network = "bridge"
	}
	switch mode := container.NetworkMode(cfg.Network); {
	case mode.IsHost(), mode.IsContainer():
		return nil, fmt.Errorf("docker network %q: pods need a network that they can be attached to (a pod asks for the host's with hostNetwork)", cfg.Network)
	case mode.IsUserDefined():
		log.Warn("pods are attached to a user-defined network: the engine's embedded DNS answers them there, whatever their dnsPolicy says", "network", cfg.Network)
	}
	if err := CheckExecHandler(cfg.ExecHandler, host); err != nil {
		return nil, err
	}
	if cfg.LogMaxSize == 0 {
		cfg.LogMaxSize = 10 << 20
	}
	if cfg.LogMaxFiles == 0 {
		cfg.LogMaxFiles = 5
	}
	if cfg.LogMaxSize < 0 || cfg.LogMaxFiles < 0 {
		return nil, fmt.Errorf("log limits %d bytes, %d files: they cannot be negative", cfg.LogMaxSize, cfg.LogMaxFiles)
	}
	if cfg.CallTimeout == 0 {
		cfg.CallTimeout = defaultCallTimeout
	}
	var commands *nsenter.Program
	if cfg.ExecHandler == NsenterExec {
		if commands, err = nsenter.Open(); err != nil {
			return nil, fmt.Errorf("exec handler %s: %w", cfg.ExecHandler, err)
		}
		log.Warn("commands in containers have no seccomp filter and no profile of AppArmor or SELinux: the engine alone knows them", "execHandler", cfg.ExecHandler)
	}
	return &Runtime{
		host: host,
		cfg:  cfg,
		settings: settings{rootDir: cfg.RootDir, network: cfg.Network, pauseImage: cfg.PauseImage, logs: container.LogConfig{
			Type: "json-file",
			Config: map[string]string{
				"max-size": strconv.FormatInt(cfg.LogMaxSize, 10),
				"max-file": strconv.Itoa(cfg.LogMaxFiles),
			},
		}},
		log:        log,
		pullStall:  pullStall,
		connecting: make(chan struct{}, 1),
		loading:    make(chan struct{}, 1),
		execs:      make(chan struct{}, maxExecStarts),
		commands:   commands,
	}, nil
}

// Close drops the idle connections to the engine. No command runs any more.
func (r *Runtime) Close() {
	if r.commands != nil {
		r.commands.Close()
	}
	if e := r.current.Swap(nil); e != nil {
		e.Close()
	}
}

// engine returns the connection, negotiating first where there is none.
func (r *Runtime) engine(ctx context.Context) (*engine, error) {
	if e := r.current.Load(); e != nil {
		return e, nil
	}
	ctx, cancel := r.limit(ctx, inspectTimeout)
	defer cancel()
	select {
	case r.connecting <- struct{}{}:
		defer func() { <-r.connecting }()
	case <-ctx.Done():
		return nil, classify(ctx.Err())
	}
	if e := r.current.Load(); e != nil {
		return e, nil
	}
	e, err := connect(ctx, r.host)
	if err != nil {
		return nil, unavailable(err)
	}
	if e.oomFloor > sandboxOOMScoreAdj && r.oomWarned.CompareAndSwap(false, true) {
		r.log.Warn("this machine does not let the engine lower oom_score_adj: pods get a higher one than they ask for", "lowest", e.oomFloor)
	}
	if versions.LessThan(e.ClientVersion(), oldestAPI) {
		r.log.Warn("the engine is older than what this is made for", "api", e.ClientVersion(), "oldest", oldestAPI)
	}
	r.current.Store(e)
	return e, nil
}

// drop forgets a connection, so that the next call negotiates anew.
func (r *Runtime) drop(e *engine) {
	if r.current.CompareAndSwap(e, nil) {
		e.Close()
	}
}

func connect(ctx context.Context, host string) (*engine, error) {
	options := []client.Opt{
		client.WithHTTPClient(&http.Client{
			// The library's own pool keeps two connections: a third pod that
			// starts beside others would dial for each call.
			Transport:     &http.Transport{MaxIdleConnsPerHost: 16, IdleConnTimeout: 30 * time.Second},
			CheckRedirect: client.CheckRedirect,
		}),
	}
	address := &url.URL{Scheme: "http", Host: client.DummyHost}
	if addr, ok := strings.CutPrefix(host, "tcp://"); ok {
		options = append(options, client.WithTLSClientConfigFromEnv())
		address.Host = addr
		if os.Getenv(client.EnvOverrideCertPath) != "" {
			address.Scheme = "https"
		}
	}
	cli, err := client.NewClientWithOpts(append(options, client.WithHost(host), client.WithVersionFromEnv())...)
	if err != nil {
		return nil, err
	}
	ping, err := cli.Ping(ctx)
	if err != nil {
		cli.Close()
		return nil, err
	}
	cli.NegotiateAPIVersionPing(ping)
	// The engine is on this machine, so its architecture is ours. To ask would cost
	// an engine 10 ms, in which it runs its helpers for their versions.
	return &engine{Client: cli, address: address, arch: goruntime.GOARCH, oomFloor: lowestOOMScoreAdj(enginePID(host))}, nil
}

// limit bounds one call.
func (r *Runtime) limit(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, min(d, r.cfg.CallTimeout))
}

// engineHost resolves and checks the address of the engine: paths in mounts and
// logs are this machine's, so it must be here.
func engineHost(host string) (string, error) {
	if host == "" {
		host = dockerHostFromEnv()
	}
	address, err := client.ParseHostURL(host)
	if err != nil {
		return "", fmt.Errorf("docker host %q: want unix:///path or tcp://127.0.0.1:port", host)
	}
	switch address.Scheme {
	case "unix":
		if !strings.HasPrefix(address.Host, "/") {
			return "", fmt.Errorf("docker host %q: the socket's path must be absolute", host)
		}
		return host, nil
	case "tcp":
		if isLoopback(address.Hostname()) {
			return host, nil
		}
	}
	return "", fmt.Errorf("docker host %q: the engine must be on this machine (unix:///path, or tcp:// with a loopback address)", host)
}
