package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/podkeeper/podkeeper/agent"
	"github.com/podkeeper/podkeeper/node/rootdir"
	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/server"
)

// noon is when every script happens.
var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// TestMain lets scripts run three programs: podkeeper with a clock that stands and
// an agent that only tells its configuration, the same as a terminal would see it,
// and podkeeper as it is.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"podkeeper":      func() { os.Exit(standing(false).main(os.Args[1:])) },
		"podkeeper-tty":  func() { os.Exit(standing(true).main(os.Args[1:])) },
		"podkeeper-real": main,
	})
}

func standing(terminal bool) *cli {
	return &cli{
		in:      os.Stdin,
		out:     &stream{w: os.Stdout, terminal: terminal, colour: terminal},
		err:     &stream{w: os.Stderr, terminal: terminal, colour: terminal},
		now:     func() time.Time { return noon },
		version: "v0.0.0-test",
		agent:   agentCalls{run: tellAndEnd, once: tellOnce, look: tellAndLook, deleteAll: tellAndDelete, examine: factsOfFile},
	}
}

var updateScripts = flag.Bool("update", false, "rewrite the expected output in scripts")

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata", UpdateScripts: *updateScripts, RequireExplicitExec: true, RequireUniqueNames: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("TZ", "UTC")
			env.Values[stateKey{}] = &stateServer{env: env}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"serve-state": func(ts *testscript.TestScript, _ bool, args []string) { serverOf(ts).serve(ts, args) },
			"serve-page":  func(ts *testscript.TestScript, _ bool, args []string) { serverOf(ts).servePage(ts, args) },
			"await-watch": func(ts *testscript.TestScript, _ bool, _ []string) { serverOf(ts).awaitWatch(ts) },
			"stop-state":  func(ts *testscript.TestScript, _ bool, _ []string) { ts.Check(serverOf(ts).stop()) },
		},
	})
}

// stateServer is an agent as its clients see it: a state, and a socket.
//
//	serve-state FILE [EVENTS [INVENTORY]]
//	                   serves the server.State in FILE on the socket s, the
//	                   server.Events in EVENTS, and what INVENTORY has; served
//	                   already, they are the next
//	serve-page PATH FILE [ID]
//	                   serves FILE under a path of the kubelet API, as the log of
//	                   the container ID; PATH ends in ?previous for such a query
//	await-watch        waits until a client waits for the next state
//	stop-state         stops serving
type stateServer struct {
	env    *testscript.Env
	parked chan struct{}
	stop   func() error

	mu      sync.Mutex
	pages   map[string]page
	state   server.State
	events  server.Events
	stock   stock
	changed chan struct{} // closed at the next change
}

type stateKey struct{}

func serverOf(ts *testscript.TestScript) *stateServer { return ts.Value(stateKey{}).(*stateServer) }

func (s *stateServer) serve(ts *testscript.TestScript, args []string) {
	if len(args) < 1 || len(args) > 3 {
		ts.Fatalf("usage: serve-state FILE [EVENTS [INVENTORY]]")
	}
	read := func(file string, into any) {
		decoder := json.NewDecoder(strings.NewReader(ts.ReadFile(file)))
		decoder.DisallowUnknownFields()
		ts.Check(decoder.Decode(into))
	}
	var state server.State
	read(args[0], &state)
	var events server.Events
	if len(args) > 1 {
		read(args[1], &events)
	}
	var has stock
	if len(args) > 2 {
		read(args[2], &has)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	state.Revision = s.state.Revision + 1
	events.Revision = state.Revision
	s.state, s.events, s.stock = state, events, has
	if s.stop != nil {
		close(s.changed)
		s.changed = make(chan struct{})
		for len(s.parked) > 0 {
			<-s.parked // of clients that waited for this state, or are gone
		}
		return
	}
	listener, err := server.Listen(filepath.Join(s.env.WorkDir, "s"), 0)
	ts.Check(err)
	s.changed, s.parked = make(chan struct{}), make(chan struct{}, 100)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- server.Serve(ctx, listener, s.handler(), slog.New(slog.DiscardHandler))
	}()
	once := sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	s.stop = func() error {
		err := once()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.stop, s.state.Revision = nil, 0 // another agent counts anew
		return err
	}
	s.env.Defer(func() { _ = once() })
}

// page is an answer of the kubelet API.
type page struct{ text, containerID string }

func (s *stateServer) handler() http.Handler {
	return server.Handler(server.Answers{State: s.get, Events: s.happened, Restart: s.restart, Stop: s.stopPod, Start: s.startPod, Inventory: s.inventory(), Kubelet: http.HandlerFunc(s.page)})
}

// servePage has a path of the kubelet API answered with a file.
func (s *stateServer) servePage(ts *testscript.TestScript, args []string) {
	if len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: serve-page PATH FILE [ID]")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pages == nil {
		s.pages = make(map[string]page)
	}
	s.pages[args[0]] = page{ts.ReadFile(args[1]), strings.Join(args[2:], "")}
}

func (s *stateServer) page(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	found, ok := s.pages[r.URL.Path]
	if before, has := s.pages[r.URL.Path+"?previous"]; has && r.FormValue("previous") != "" {
		found = before
	}
	s.mu.Unlock()
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Podkeeper-Container-Id", found.containerID)
	_, _ = io.WriteString(w, found.text) // an error is a client that went away
}

func (s *stateServer) awaitWatch(ts *testscript.TestScript) {
	select {
	case <-s.parked:
	case <-time.After(time.Minute):
		ts.Fatalf("no client waits for the next state")
	}
}

func (s *stateServer) get(ctx context.Context, after uint64) (server.State, error) {
	state, _, err := s.next(ctx, after)
	return state, err
}

// restart knows the pods of the state; one that is busy is not restarted.
func (s *stateServer) restart(_ context.Context, key pod.Key, _ string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.state.Pods {
		switch {
		case p.Pod.Namespace != key.Namespace || p.Pod.Name != key.Name:
		case p.Busy:
			return errors.New("not restarted: it is busy")
		default:
			return nil
		}
	}
	return server.ErrNoPod
}

// stopPod and startPod change what the state says of the pod.
func (s *stateServer) stopPod(_ context.Context, key pod.Key) error {
	return s.change(key, func(p *server.Pod) {
		p.Held, p.Blocked = noon, &server.Waiting{Reason: "Stopped", Message: "stopped by hand"}
	})
}

func (s *stateServer) startPod(_ context.Context, key pod.Key) error {
	return s.change(key, func(p *server.Pod) { p.Held, p.Blocked = time.Time{}, nil })
}

func (s *stateServer) change(key pod.Key, f func(*server.Pod)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, p := range s.state.Pods {
		if p.Pod.Namespace == key.Namespace && p.Pod.Name == key.Name {
			s.state.Pods = slices.Clone(s.state.Pods)
			f(&s.state.Pods[i])
			s.state.Revision++
			close(s.changed)
			s.changed = make(chan struct{})
			return nil
		}
	}
	return server.ErrNoPod
}

func (s *stateServer) happened(ctx context.Context, after uint64) (server.Events, error) {
	_, events, err := s.next(ctx, after)
	return events, err
}

func (s *stateServer) next(ctx context.Context, after uint64) (server.State, server.Events, error) {
	for {
		s.mu.Lock()
		state, events, changed := s.state, s.events, s.changed
		if state.Revision <= after {
			s.parked <- struct{}{}
		}
		s.mu.Unlock()
		if state.Revision > after {
			return state, events, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return state, events, ctx.Err()
		}
	}
}

// The agent of scripts does what the variable AGENT says.

func tellAndEnd(ctx context.Context, cfg agent.Config, log *slog.Logger) error {
	tell(cfg)
	if os.Getenv("AGENT") == "interrupted" {
		log.Info("the agent runs")
		if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
			return err
		}
		<-ctx.Done()
		return ctx.Err()
	}
	return agentError()
}

func tellOnce(_ context.Context, cfg agent.Config, how agent.OnceConfig, _ *slog.Logger, report func(server.Pod)) error {
	if how != (agent.OnceConfig{}) {
		fmt.Fprintf(os.Stderr, "%+v\n", how)
	}
	for _, p := range stateOfFile().Pods {
		report(p)
	}
	return agentError()
}

func tellAndLook(_ context.Context, cfg agent.Config, _ *slog.Logger) (server.State, error) {
	tell(cfg)
	return stateOfFile(), agentError()
}

func tellAndDelete(_ context.Context, cfg agent.Config, _ *slog.Logger) error {
	tell(cfg)
	return agentError()
}

func agentError() error {
	switch os.Getenv("AGENT") {
	case "locked":
		return fmt.Errorf("open root dir /r: %w, process 7", rootdir.ErrLocked)
	case "pod failed":
		return fmt.Errorf("%w:\npod default/job-n1: container app: Error, exit code 3", agent.ErrNotStarted)
	case "fails":
		return errors.New("the agent failed")
	default:
		return nil
	}
}

// factsOfFile is a machine: that of the file $FACTS.
func factsOfFile(_ context.Context, cfg agent.DockerConfig) (f agent.Facts) {
	data, err := os.ReadFile(os.Getenv("FACTS"))
	if err == nil {
		err = json.Unmarshal(data, &f)
	}
	if err != nil {
		panic(err)
	}
	f.Engine.Address = cmp.Or(cfg.Host, f.Engine.Address)
	return f
}

func stateOfFile() (s server.State) {
	data, err := os.ReadFile(os.Getenv("STATE"))
	if err == nil {
		err = json.Unmarshal(data, &s)
	}
	if err != nil {
		panic(err)
	}
	return s
}

// tell writes what is set of a configuration to standard output.
// tell prints the configuration, or with the variable CONFIGZ what /configz says of it.
func tell(cfg agent.Config) {
	effective := cfg.API.Effective
	cfg.API.Effective = nil
	if os.Getenv("CONFIGZ") == "" {
		tellStruct("", reflect.ValueOf(cfg))
		return
	}
	data, err := json.MarshalIndent(effective, "", "  ")
	if err != nil {
		panic(err)
	}
	fmt.Println(string(data))
}

func tellStruct(prefix string, v reflect.Value) {
	for i := range v.NumField() {
		name, field := prefix+v.Type().Field(i).Name, v.Field(i)
		switch {
		case field.IsZero():
		case field.Kind() == reflect.Struct:
			tellStruct(name+".", field)
		case field.Kind() == reflect.Pointer && field.Type().Elem().Kind() == reflect.Struct:
			tellStruct(name+".", field.Elem())
		case field.Kind() == reflect.Func:
			fmt.Println(name, "is set")
		default:
			fmt.Println(name, strings.ReplaceAll(fmt.Sprint(field), os.Getenv("WORK"), "$WORK"))
		}
	}
}
