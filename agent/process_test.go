package agent_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	goruntime "runtime"
	"syscall"
	"testing"
	"time"

	"github.com/podkeeper/podkeeper/agent"
	"github.com/podkeeper/podkeeper/node/podlog"
)

// asAgent names the variable that makes this program an agent instead of a test.
const asAgent = "PODKEEPER_TEST_AGENT"

func TestMain(m *testing.M) {
	if agent.Entered() {
		return
	}
	if text := os.Getenv(asAgent); text != "" {
		os.Exit(beAgent(text))
	}
	os.Exit(m.Run())
}

// processConfig is what an agent in a process of its own is told.
type processConfig struct {
	RootDir, Socket, NodeName string
	Manifests                 []string
	FileCheck                 time.Duration
	Logs                      podlog.Config
	DockerHost                string
	ExecHandler               agent.ExecHandler
	Node                      agent.NodeConfig
}

func beAgent(text string) int {
	var c processConfig
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		log.Error("configuration", "err", err)
		return 2
	}
	cfg := agent.Config{RootDir: c.RootDir, Socket: c.Socket, NodeName: c.NodeName, Manifests: c.Manifests, FileCheck: c.FileCheck, Logs: c.Logs, Node: c.Node}
	cfg.Docker.Host, cfg.Docker.ExecHandler = c.DockerHost, c.ExecHandler
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	if err := agent.Run(ctx, cfg, log); err != nil {
		log.Error("agent", "err", err)
		return 1
	}
	return 0
}

// process is an agent that can be killed.
type process struct {
	t   *testing.T
	cmd *exec.Cmd
}

func (w *world) processConfig() processConfig {
	return processConfig{
		RootDir: w.cfg.RootDir, Socket: w.cfg.Socket, NodeName: w.cfg.NodeName, Manifests: w.cfg.Manifests,
		FileCheck: w.cfg.FileCheck, Logs: w.cfg.Logs, DockerHost: w.cfg.Docker.Host,
		ExecHandler: w.cfg.Docker.ExecHandler, Node: w.cfg.Node,
	}
}

// process returns a command that ends up as an agent, and at the latest with ctx: what
// it is run by gets the program as its last argument.
func (w *world) process(ctx context.Context, by ...string) *exec.Cmd {
	w.t.Helper()
	text, err := json.Marshal(w.processConfig())
	if err != nil {
		w.t.Fatal(err)
	}
	by = append(by, os.Args[0])
	cmd := exec.CommandContext(ctx, by[0], by[1:]...)
	cmd.Env = append(os.Environ(), asAgent+"="+string(text))
	return cmd
}

// startProcess starts an agent in a process of its own.
func (w *world) startProcess(by ...string) *process {
	w.t.Helper()
	p := &process{t: w.t, cmd: w.process(context.Background(), by...)}
	p.cmd.Stderr = io.MultiWriter(w.t.Output(), w.said)
	// It must not outlive a test that is killed.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := startBound(w.t, p.cmd); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(p.kill)
	return p
}

// startBound starts a program that gets a signal when this process dies. The kernel
// sends it when the thread ends that started it: that one is held while the test runs.
func startBound(t *testing.T, cmd *exec.Cmd) error {
	ctx := t.Context()
	started := make(chan error)
	go func() {
		goruntime.LockOSThread()
		defer goruntime.UnlockOSThread()
		started <- cmd.Start()
		<-ctx.Done()
	}()
	return <-started
}

// kill gives it no chance to do anything. A second time is nothing.
func (p *process) kill() {
	if p.cmd.ProcessState != nil {
		return
	}
	_ = p.cmd.Process.Kill()
	err := p.cmd.Wait()
	if status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !status.Signaled() {
		p.t.Errorf("the agent ended by itself: %v", err)
	}
}
