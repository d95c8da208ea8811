package runtimetest

import (
	"errors"
	"net"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podkeeper/podkeeper/runtime"
)

func sandboxRuns(t *testing.T, b bench) {
	spec := b.sandboxSpec()
	got := b.sandbox(t)
	if diff := cmp.Diff(spec.Identity, got.Identity); diff != "" {
		t.Errorf("identity (-want +got):\n%s", diff)
	}
	if got.State != runtime.Running || got.Start == "" || got.Started.IsZero() || got.Created.IsZero() || !got.Finished.IsZero() {
		t.Errorf("got %+v, want it running, with its times", got)
	}
	if len(got.IPs) == 0 || got.HostNetwork {
		t.Errorf("got addresses %v, host network %t; want an address of its own", got.IPs, got.HostNetwork)
	}
	if diff := cmp.Diff(got, b.inspect(t, got.ID)); diff != "" {
		t.Errorf("ensure and inspect differ (-ensure +inspect):\n%s", diff)
	}
	want := []runtime.Summary{{ID: got.ID, Identity: spec.Identity, State: runtime.Running}}
	if diff := cmp.Diff(want, b.list(t, b.Runtime)); diff != "" {
		t.Errorf("list (-want +got):\n%s", diff)
	}
}

// Law 4: a lost reply costs nothing.
func sandboxEnsuredTwice(t *testing.T, b bench) {
	first, second := b.sandbox(t), b.sandbox(t)
	if first.ID != second.ID || first.Ref() != second.Ref() {
		t.Errorf("first %v, then %v; want the same, not restarted", first.Ref(), second.Ref())
	}
	if list := b.list(t, b.Runtime); len(list) != 1 {
		t.Errorf("got %d, want one: %v", len(list), list)
	}
}

func sandboxTakenOverEnded(t *testing.T, b bench) {
	first := b.sandbox(t)
	b.Somebody.Kill(t, first.ID)
	if got := b.inspect(t, first.ID); got.State != runtime.Exited || len(got.IPs) != 0 {
		t.Fatalf("killed: got %+v, want it exited, without an address", got)
	}
	second := b.sandbox(t)
	if second.ID != first.ID || second.State != runtime.Running || second.Start == first.Start {
		t.Errorf("first %+v, then %+v; want the same one, started anew", first, second)
	}
}

func hostNetwork(t *testing.T, b bench) {
	spec := b.sandboxSpec()
	spec.HostNetwork = true
	got, err := b.Runtime.EnsureSandbox(b.ctx, spec)
	if err != nil {
		t.Fatal(err)
	}
	if !got.HostNetwork || len(got.IPs) != 0 {
		t.Errorf("got host network %t, addresses %v", got.HostNetwork, got.IPs)
	}
	id := b.run(t, got, "app", b.Forever)
	if c := b.inspect(t, id); c.State != runtime.Running {
		t.Errorf("got %+v, want a container running in it", c)
	}
}

func hostPortInUse(t *testing.T, b bench) {
	free := freePort(t)
	first := b.sandboxSpec()
	first.Ports = []runtime.Port{port(free)}
	holder, err := b.Runtime.EnsureSandbox(b.ctx, first)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first.Ports, find(t, b.list(t, b.Runtime), first.Identity).Ports); diff != "" {
		t.Errorf("listed ports (-want +got):\n%s", diff)
	}
	second := first
	second.Key.Name = "second-node"
	if _, err := b.Runtime.EnsureSandbox(b.ctx, second); err == nil {
		t.Fatal("a second sandbox started on the same host port")
	}
	left := find(t, b.list(t, b.Runtime), second.Identity)
	if c := b.inspect(t, left.ID); c.State != runtime.Created || !c.FailedStart() || !c.Ended() || c.Error == "" {
		t.Errorf("got %+v, want it created, with the engine's reason: that was an attempt", c)
	}
	// The obstacle goes, and the same verb finds what was left.
	if err := errors.Join(b.Runtime.Stop(b.ctx, holder.ID, 0), b.Runtime.Remove(b.ctx, holder.ID)); err != nil {
		t.Fatal(err)
	}
	got, err := b.Runtime.EnsureSandbox(b.ctx, second)
	if err != nil {
		t.Fatal(err)
	}
	if got.ID != left.ID || got.State != runtime.Running || got.FailedStart() {
		t.Errorf("got %+v, want %s running", got, left.ID)
	}
}

func restarted(t *testing.T, b bench) {
	before := b.sandbox(t)
	id := b.run(t, before, "app", b.Forever)
	b.Somebody.Restart(t, before.ID)
	after := b.inspect(t, before.ID)
	if after.ID != before.ID || after.Start == before.Start || after.State != runtime.Running {
		t.Errorf("sandbox: before %v, after %v; want the same id and another start", before.Ref(), after.Ref())
	}
	// The container keeps the reference it was made with, which now differs.
	if c := b.inspect(t, id); c.State != runtime.Running || c.Sandbox != before.Ref() {
		t.Errorf("container: got %s in %v, want it running in %v", c.State, c.Sandbox, before.Ref())
	}
	c := b.inspect(t, id)
	b.Somebody.Restart(t, id)
	if again := b.inspect(t, id); again.Start == c.Start {
		t.Errorf("a restarted container still says it started at %s", again.Start)
	}
}

// freePort finds a port that was free a moment ago. Nobody else on the machine
// is likely to take it: the kernel hands out others first.
func freePort(t *testing.T) int32 {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return int32(l.Addr().(*net.TCPAddr).Port)
}

func find(t *testing.T, list []runtime.Summary, id runtime.Identity) runtime.Summary {
	t.Helper()
	for _, s := range list {
		if s.Key == id.Key && s.Name == id.Name {
			return s
		}
	}
	t.Fatalf("%s of %s is not in the list %v", id.Name, id.Key, list)
	return runtime.Summary{}
}
