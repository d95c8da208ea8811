package agent

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/podkeeper/podkeeper/gc"
	"github.com/podkeeper/podkeeper/manifests"
	"github.com/podkeeper/podkeeper/node/cgroup"
	"github.com/podkeeper/podkeeper/node/kernel"
	"github.com/podkeeper/podkeeper/node/logfile"
	"github.com/podkeeper/podkeeper/node/podlog"
	"github.com/podkeeper/podkeeper/node/rootdir"
	"github.com/podkeeper/podkeeper/node/volume"
	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/reconcile"
	"github.com/podkeeper/podkeeper/reconcile/probe"
	"github.com/podkeeper/podkeeper/runtime"
	"github.com/podkeeper/podkeeper/runtime/docker"
	"github.com/podkeeper/podkeeper/server/events"
	"github.com/podkeeper/podkeeper/server/metrics"
	"github.com/podkeeper/podkeeper/sources"
)

// DockerConfig is what can be set of the engine: see docker.Config.
type DockerConfig = docker.Config

// ClusterDNS is a cluster's resolver: see reconcile.ClusterDNS.
type ClusterDNS = reconcile.ClusterDNS

// Policy is what pods may have of the machine; with its zero value, everything
// but unsafe sysctls.
type (
	Policy  = reconcile.Policy
	Sources = reconcile.Sources
)

// Admission is which pods the node lets in.
type Admission = reconcile.Admission

// AnySource stands for every kind of source.
const AnySource = reconcile.AnySource

// Config is everything that can be set. Zero values are usable but for RootDir.
type Config struct {
	// RootDir is locked by one agent and marks its containers.
	RootDir string
	// Socket is the command line's way in; "" is none.
	Socket string
	// NodeName is the suffix of pod names; "" is the machine's host name.
	NodeName string
	// NodeIPs are the host's addresses for pods and status, the preferred one first
	// and one of each family; none are the first global ones.
	NodeIPs []string
	// ResolvConf is the file of the resolvers of pods; "" is the machine's own.
	ResolvConf string
	// ClusterDNS is the resolver of pods that ask for the cluster's; zero is none.
	ClusterDNS ClusterDNS

	// Manifests are folders or files; Extensions as sources.FileConfig has them.
	Manifests  []string
	Extensions []string
	FileCheck  time.Duration
	// URLs serve manifests; Header goes with each request and is never shown.
	URLs            []string
	Header          http.Header
	URLCA           string
	URLCert, URLKey string
	HTTPCheck       time.Duration
	// Strict refuses what Kubernetes would drop: unknown fields, duplicate keys.
	Strict bool
	// NoSourceCache keeps no last good manifests in the root dir, and removes what
	// lies there: a start has nothing of a URL or file that cannot be read then.
	NoSourceCache bool

	// Policy says what pods may have of the machine; its Sysctls are those besides
	// the safe ones.
	Policy Policy

	// Node is what is done about the machine itself.
	Node NodeConfig
	// Shutdown is whom a shutdown of the machine waits for, by rising priority; none is
	// for nobody.
	Shutdown []ShutdownGroup
	// Admission says which pods the node lets in beside that.
	Admission Admission

	// Docker is the engine; its RootDir is set from the one above.
	Docker DockerConfig
	// Logs are the folders of log links; zero values are those of a node.
	Logs podlog.Config

	// Cgroups is how pods' cgroups are kept.
	Cgroups CgroupConfig

	// GC says which dead containers and which images stay.
	GC gc.Config

	// Eviction says when pods are ended for the sake of the node.
	Eviction gc.EvictionConfig

	// PodPIDs is how many processes and threads a pod may have, or each container of
	// one that has no cgroup; 0 is no limit.
	PodPIDs int64

	// Events says how many are kept, and how long.
	Events EventConfig

	// API is how others than the command line come in.
	API APIConfig

	// Parallel is how many pods start at a time; 0 is the loop's default.
	Parallel int
	// Version is the program's, for clients.
	Version string
	// Progress is told how pulls go; nil is nobody.
	Progress func(runtime.PullProgress)
}

// Run keeps the pods of all sources until ctx ends. It returns an error where it
// cannot start; once started, it goes on through every failure of the engine and
// of the sources. The pods are left running.
func Run(ctx context.Context, cfg Config, log *slog.Logger) error {
	return withParts(cfg, log, func(p *parts) error {
		if err := p.prepareNode(ctx); err != nil {
			return err
		}
		p.sayStart(firstLine("/proc/sys/kernel/random/boot_id"))
		group, ctx := errgroup.WithContext(ctx)
		if err := p.serve(ctx, group); err != nil {
			return err
		}
		sets := make(chan pod.Set)
		group.Go(func() error { return sources.Run(ctx, p.sources, sets) })
		group.Go(func() error { return p.loop.Run(ctx, sets) })
		group.Go(func() error { return p.tellSystemd(ctx) })
		group.Go(func() error { return p.watchShutdown(ctx) })
		group.Go(func() error { return p.dead.Run(ctx) })
		group.Go(func() error { return p.images.Run(ctx) })
		group.Go(func() error { return p.cgroups.keep(ctx, log) })
		group.Go(func() error { return sortOutside(ctx, cfg.Node.Groups, log) })
		group.Go(func() error { return p.usage.walker.Run(ctx) })
		group.Go(func() error { return p.watchOOM(ctx) })
		group.Go(func() error { return p.endings.run(ctx) })
		group.Go(func() error { return p.evict(ctx) })
		return group.Wait()
	})
}

// parts is what an agent is made of.
type parts struct {
	cfg     Config
	log     *slog.Logger
	runtime runtime.Runtime
	sources []sources.Source
	volumes *volume.Host
	loop    *reconcile.Loop
	events  *events.Log
	cgroups *podCgroups
	usage   *usage
	look    *look
	// assessed is when the node was last looked at for what it is short of, in seconds;
	// 0 is never.
	assessed atomic.Int64
	// known is closed, by told, once the loop knows how the node is.
	known    chan struct{}
	told     func()
	counters counts
	// endings and logWatcher are for those who follow logs.
	endings    *endings
	logWatcher logfile.Watcher
	dead       *gc.ContainerCollector
	images     *gc.ImageCollector
	dir        *rootdir.Dir // nil where it is only read
	// machine is all that there is, and wrong what is wrong with the shares of it: no
	// agent runs with that.
	machine reconcile.Node
	node    reconcile.Node // what of it is for pods
	wrong   error
}

// withParts builds everything on a locked root dir and calls f.
func withParts(cfg Config, log *slog.Logger, f func(*parts) error) error {
	cfg, err := cfg.complete()
	if err != nil {
		return err
	}
	dir, err := rootdir.Open(cfg.RootDir)
	if err != nil {
		return err
	}
	defer dir.Close()
	if cfg.NoSourceCache {
		if err := sources.RemoveCache(dir); err != nil {
			return err
		}
	}
	watcher := new(sources.OSWatcher)
	machine := hardware(cfg)
	loop, wrong := cfg.loop(machine)
	p, err := build(cfg, loop, dir, watcher, log)
	if err != nil {
		return err
	}
	p.dir, p.machine, p.wrong = dir, machine, wrong
	return f(p)
}

// store is the root dir as loop and sources use it.
type store interface {
	reconcile.Store
	sources.Store
}

func build(cfg Config, loop reconcile.Config, dir store, watcher sources.Watcher, log *slog.Logger) (*parts, error) {
	engine, err := docker.New(cfg.Docker, log)
	if err != nil {
		return nil, err
	}
	counters := counts{metrics.NewCounters(cfg.Version)}
	counted := counters.Count(engine)
	p := &parts{cfg: cfg, log: log, counters: counters, runtime: counted, volumes: &volume.Host{RootDir: cfg.RootDir}, events: events.New(cfg.Events)}
	p.usage, p.look = newUsage(p.volumes, log), newLook(log)
	p.known = make(chan struct{})
	p.told = sync.OnceFunc(func() { close(p.known) })
	cache := sources.Store(dir)
	if cfg.NoSourceCache {
		cache = nil
	}
	if p.sources, err = buildSources(cfg, cache, watcher, log); err != nil {
		return nil, err
	}
	p.node = loop.Node
	messages, _ := dir.(reconcile.Messages) // one that is only read keeps none
	if err := p.collectors(dir); err != nil {
		return nil, err
	}
	checker := probe.NewChecker(commands{counted})
	p.cgroups = &podCgroups{
		Tree: cgroup.NewTree(cgroup.Host{}, cfg.Cgroups.root(cfg.RootDir)),
		cfg:  cfg.Cgroups, rootDir: cfg.RootDir, list: engine.List, entries: dir.Entries,
	}
	deps := reconcile.Deps{
		Runtime: counted, Store: dir, Volumes: p.volumes, Logs: logLinks{cfg.Logs}, NodeFile: os.ReadFile, Log: log,
		Messages: messages, Credentials: credentials(cfg.RootDir),
		Check: checker.Check, Get: checker.Get, Progress: cfg.Progress,
		Events: p.record, Ran: p.images.Ran, Counts: counters, Cgroups: p.cgroups,
	}
	if !loop.LookOnly {
		deps.Accept = p.accept
	}
	p.loop = reconcile.New(loop, deps)
	p.endings = newEndings(p.loop.Snapshot)
	return p, nil
}

// loop returns how the loop works on a machine, and what is wrong with the shares of
// that.
func (cfg Config) loop(machine reconcile.Node) (reconcile.Config, error) {
	node := machine
	var wrong error
	node.Allocatable, node.Pinning, wrong = cfg.shares(machine)
	return reconcile.Config{
		Node:     node,
		Policy:   cfg.policy(),
		Parallel: cfg.Parallel,
		KeepLogs: cfg.GC.KeepLogs,
	}, wrong
}

// policy adds what every pod may have on this machine.
func (cfg Config) policy() Policy {
	y := cfg.Policy
	y.Sysctls = slices.Concat(reconcile.SafeSysctls(kernel.Version()), y.Sysctls)
	return y
}

// complete fills in what the configuration leaves to the machine.
func (cfg Config) complete() (Config, error) {
	root, err := filepath.Abs(cfg.RootDir)
	if err != nil || cfg.RootDir == "" {
		return cfg, fmt.Errorf("root dir %q: want a path", cfg.RootDir)
	}
	cfg.RootDir, cfg.Docker.RootDir, cfg.Logs.Owner = root, root, root
	if cfg.NodeName == "" {
		name, err := os.Hostname()
		if err != nil {
			return cfg, fmt.Errorf("host name (set --hostname-override): %w", err)
		}
		cfg.NodeName = name
	}
	cfg.NodeName = strings.ToLower(strings.TrimSpace(cfg.NodeName))
	cfg.Events.Node = cfg.NodeName
	cfg.API = cfg.API.complete()
	if len(cfg.NodeIPs) == 0 {
		cfg.NodeIPs = machineAddresses()
	}
	return cfg, nil
}

func buildSources(cfg Config, cache sources.Store, watcher sources.Watcher, log *slog.Logger) ([]sources.Source, error) {
	parse := func(data []byte, origin pod.Origin) manifests.Result {
		return manifests.Parse(data, origin, manifests.Options{Strict: cfg.Strict, NodeName: cfg.NodeName, ClusterDNS: len(cfg.ClusterDNS.Servers) > 0})
	}
	var list []sources.Source
	for _, path := range cfg.Manifests {
		path, err := filepath.Abs(path)
		if err != nil {
			return nil, fmt.Errorf("manifests %s: %w", path, err)
		}
		s, err := sources.NewFile(sources.FileConfig{
			Path: path, Extensions: cfg.Extensions, Period: cfg.FileCheck,
			Parse: parse, FS: sources.OSFiles{}, Watcher: watcher, Store: cache, Log: log,
		})
		if err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	names, err := sources.NamesOfURLs(cfg.URLs)
	if err != nil {
		return nil, err
	}
	for i, url := range cfg.URLs {
		s, err := sources.NewHTTP(sources.HTTPConfig{
			URL: url, Name: names[i], Header: cfg.Header, Period: cfg.HTTPCheck,
			CAFile: cfg.URLCA, CertFile: cfg.URLCert, KeyFile: cfg.URLKey,
			Parse: parse, Store: cache, Log: log,
		})
		if err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return list, nil
}
