package dashboard_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/server"
	"github.com/podkeeper/podkeeper/server/dashboard"
)

// told is what the test looks at of a message.
type told struct {
	Away  string
	State *struct {
		Whole   bool
		Node    struct{ Actions []string }
		Sources []struct{ State string }
		Pods    []struct {
			Name, Status, Tone, Why string
			Held                    bool
			Containers              []struct{ State, Tone, Message string }
		}
		Gone []string
	}
	Events *struct {
		Whole bool
		Items []struct{ ID, Text string }
	}
	Usage   *struct{ Node struct{ CPU uint64 } }
	NoUsage string
	Machine *struct {
		CPUs       float64
		Conditions []struct {
			Type string
			OK   bool
		}
	}
}

// listener reads what a client is told, without a network, so that time may stand.
type listener struct {
	header http.Header
	lines  chan told
	said   strings.Builder
}

func (l *listener) Header() http.Header { return l.header }
func (l *listener) WriteHeader(int)     {}
func (l *listener) Flush()              {}
func (l *listener) Write(p []byte) (int, error) {
	l.said.Write(p)
	var m told
	if err := json.Unmarshal(p, &m); err != nil {
		return 0, err
	}
	l.lines <- m
	return len(p), nil
}

// next returns the next message that tells something of what is wanted.
func (l *listener) next(wanted func(told) bool) told {
	for {
		if m := <-l.lines; wanted(m) {
			return m
		}
	}
}

// hear has a client listen, in a bubble.
func hear(t *testing.T, a dashboard.Answers) *listener {
	t.Helper()
	h, token := dashboard.New(netip.MustParseAddrPort(here), a)
	v := &visit{h: h, token: token}
	v.login(t)
	ctx, cancel := context.WithCancel(t.Context())
	r := httptest.NewRequestWithContext(ctx, "GET", "/live", nil)
	r.Host = here
	r.AddCookie(&http.Cookie{Name: "podkeeper_4321", Value: v.cookie})
	r.Header.Set("X-Podkeeper-Key", v.key)
	l := &listener{header: http.Header{}, lines: make(chan told, 100)}
	ended := make(chan struct{})
	go func() {
		h.ServeHTTP(l, r)
		close(ended)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended // and with it all that was begun for the client: the bubble sees to it
	})
	return l
}

func aboutState(m told) bool { return m.State != nil || m.Away != "" }

func TestLiveTellsWhatChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newModel(running("web"), crashing("worker"))
		l := hear(t, s.answers(true))
		m := l.next(aboutState)
		if m.State == nil || !m.State.Whole || len(m.State.Pods) != 2 || !slices.Equal(m.State.Node.Actions, []string{"restart", "stop", "start"}) {
			t.Fatalf("first: %+v", m.State)
		}
		if p := m.State.Pods[1]; p.Name != "worker" || p.Tone != "bad" || p.Why != "app: back-off 40s restarting" {
			t.Errorf("worker: %+v", p)
		}
		s.set(func() { s.state.Pods = []server.Pod{running("web"), running("worker")} })
		m = l.next(aboutState)
		if m.State.Whole || len(m.State.Pods) != 1 || m.State.Pods[0].Status != "Running" || m.State.Sources != nil {
			t.Errorf("one is other: %+v", m.State)
		}
		s.set(func() { s.state.Pods = s.state.Pods[:1] })
		m = l.next(aboutState)
		if len(m.State.Pods) != 0 || !slices.Equal(m.State.Gone, []string{"uid-worker/default/worker"}) {
			t.Errorf("one is gone: %+v", m.State)
		}
		s.set(func() { s.state.Sources = badSources() })
		m = l.next(aboutState)
		if len(m.State.Sources) != 2 || m.State.Sources[0].State != "has errors" || len(m.State.Pods) != 0 {
			t.Errorf("sources: %+v", m.State)
		}
	})
}

// A pod that is held is as it was asked to be.
func TestHeldPodIsNoTrouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := crashing("web")
		held.Held = time.Now()
		held.Blocked = &server.Waiting{Reason: "Stopped", Message: "stopped by hand"}
		p := hear(t, newModel(held).answers(true)).next(aboutState).State.Pods[0]
		if c := p.Containers[0]; !p.Held || p.Why != "stopped by hand" || c.Tone != "faint" || c.Message != "" {
			t.Errorf("%+v", p)
		}
	})
}

// What comes in a row is told together.
func TestLiveGathersChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newModel(running("web"))
		l := hear(t, s.answers(false))
		l.next(aboutState)
		began := time.Now()
		for i := range 100 {
			time.Sleep(10 * time.Millisecond)
			s.set(func() { s.state.RootDir = strings.Repeat("x", i) })
		}
		time.Sleep(time.Second)
		synctest.Wait()
		messages := 0
		for len(l.lines) > 0 {
			if m := <-l.lines; m.State != nil {
				messages++
			}
		}
		if took := time.Since(began); messages < 2 || messages > 6 {
			t.Errorf("%d messages in %v", messages, took)
		}
	})
}

func TestLiveSaysThatTheAgentIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newModel(running("web"))
		l := hear(t, s.answers(false))
		l.next(aboutState)
		s.set(func() { s.away = true })
		if m := l.next(aboutState); m.Away != server.ErrNoAgent.Error() {
			t.Errorf("%+v", m)
		}
		time.Sleep(10 * time.Second)
		// Another agent counts anew, and what it knows is all there is.
		s.set(func() { s.away, s.state.Revision, s.state.Pods = false, 0, []server.Pod{running("db")} })
		var state, events told
		for state.State == nil || events.Events == nil {
			m := l.next(func(m told) bool { return m.State != nil || m.Events != nil })
			if m.State != nil {
				state = m
			} else {
				events = m
			}
		}
		if !state.State.Whole || len(state.State.Pods) != 1 || state.State.Pods[0].Name != "db" || !events.Events.Whole {
			t.Errorf("back: %+v, %+v", state.State, events.Events)
		}
	})
}

func TestLiveTellsEventsUsageAndConditions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newModel(running("web"))
		s.happen(running("web"), "BackOff", "first")
		a := s.answers(false)
		a.Node = func(context.Context) (*v1.Node, error) {
			return &v1.Node{Status: v1.NodeStatus{Conditions: []v1.NodeCondition{
				{Type: v1.NodeReady, Status: v1.ConditionTrue}, {Type: v1.NodeMemoryPressure, Status: v1.ConditionTrue},
				{Type: v1.NodeDiskPressure, Status: v1.ConditionFalse}, {Type: v1.NodePIDPressure, Status: v1.ConditionUnknown},
			}}}, nil
		}
		l := hear(t, a)
		m := l.next(func(m told) bool { return m.Machine != nil })
		var well []string
		for _, c := range m.Machine.Conditions {
			if c.OK {
				well = append(well, c.Type)
			}
		}
		if !slices.Equal(well, []string{"Ready", "DiskPressure"}) {
			t.Errorf("well: %q", well)
		}
		usage := func(m told) bool { return m.Usage != nil }
		first := l.next(usage)
		began := time.Now()
		second := l.next(usage)
		if took := time.Since(began); took != 5*time.Second || second.Usage.Node.CPU != first.Usage.Node.CPU+100e6 {
			t.Errorf("after %v: %+v, %+v", took, first.Usage, second.Usage)
		}
	})
}

// No page shows what a manifest keeps for the container alone.
func TestNoSecretIsTold(t *testing.T) {
	s := newStage(t, true, running("web"), crashing("worker"))
	resp := s.session(t).get(t.Context(), "/live")
	defer resp.Body.Close()
	for lines := bufio.NewReader(resp.Body); ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(line, "secret-") || strings.Contains(line, "-secret") {
			t.Errorf("told: %s", line)
		}
		if strings.Contains(line, `"pods":[`) {
			if !strings.Contains(line, "PASSWORD") || !strings.Contains(line, "TOKEN from Secret credentials") {
				t.Errorf("names of variables are missing: %s", line)
			}
			break
		}
	}
}
