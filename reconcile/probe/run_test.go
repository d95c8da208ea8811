package probe_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/podkeeper/podkeeper/reconcile/probe"
)

// bed is a Run in virtual time whose checks are answered by a function.
type bed struct {
	t       *testing.T
	start   time.Time
	updates chan probe.Update
	reports chan []probe.Report
	answer  func(context.Context, probe.Check) probe.Result

	mu   sync.Mutex
	made []made // checks, in their order
	said []said
}

type made struct {
	at time.Duration // since the start
	id string
	to string // the host asked, which stands for the kind
}

type said struct {
	at time.Duration
	probe.Report
}

// inBubble runs f beside a Run, which ends after it. A kind of probe is told by
// its host: see kind.
func inBubble(t *testing.T, answer func(context.Context, probe.Check) probe.Result, f func(*bed)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bed{t: t, start: time.Now(), updates: make(chan probe.Update), reports: make(chan []probe.Report), answer: answer}
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() { probe.Run(ctx, probe.Config{Check: b.check}, b.updates, b.reports) })
		all.Go(func() {
			for {
				select {
				case list := <-b.reports:
					b.mu.Lock()
					for _, r := range list {
						b.said = append(b.said, said{time.Since(b.start), r})
					}
					b.mu.Unlock()
				case <-ctx.Done():
					return
				}
			}
		})
		f(b)
		cancel()
		all.Wait()
	})
}

func (b *bed) check(ctx context.Context, c probe.Check) probe.Result {
	b.mu.Lock()
	b.made = append(b.made, made{time.Since(b.start), c.ContainerID, kind(c)})
	b.mu.Unlock()
	return b.answer(ctx, c)
}

func kind(c probe.Check) string {
	if c.Handler.Exec != nil {
		return c.Handler.Exec.Command[0]
	}
	return c.Handler.TCPSocket.Host
}

// want hands the targets of a group over.
func (b *bed) want(group string, targets ...probe.Target) {
	b.updates <- probe.Update{Group: group, Targets: targets}
	synctest.Wait()
}

func (b *bed) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// times returns when a container's probe was checked, and forgets it.
func (b *bed) times(id, kind string) (times []time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.made = slices.DeleteFunc(b.made, func(m made) bool {
		if m.id != id || m.to != kind {
			return false
		}
		times = append(times, m.at)
		return true
	})
	return times
}

// changes returns the changes of outcome of a container, and forgets all reports.
func (b *bed) changes(id string) (list []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range b.said {
		if r.ContainerID == id && r.Changed {
			list = append(list, fmt.Sprintf("%s %s %s", r.at, r.Kind, r.Result.Outcome))
		}
	}
	b.said = nil
	return list
}

// tcp returns a probe whose kind the fake can tell.
func tcp(kind string, edits ...func(*v1.Probe)) *v1.Probe {
	p := &v1.Probe{
		ProbeHandler:   v1.ProbeHandler{TCPSocket: &v1.TCPSocketAction{Host: kind, Port: intstr.FromInt32(1)}},
		TimeoutSeconds: 1, PeriodSeconds: 10, SuccessThreshold: 1, FailureThreshold: 3,
	}
	for _, edit := range edits {
		edit(p)
	}
	return p
}

func exec(kind string, edits ...func(*v1.Probe)) *v1.Probe {
	p := tcp(kind, edits...)
	p.ProbeHandler = v1.ProbeHandler{Exec: &v1.ExecAction{Command: []string{kind}}}
	return p
}

func success(context.Context, probe.Check) probe.Result {
	return probe.Result{Outcome: probe.Success}
}

func failure(context.Context, probe.Check) probe.Result {
	return probe.Result{Outcome: probe.Failure, Reason: "bad"}
}

// firstTick returns when a probe of period 10 s ticks first after the start.
func firstTick(id string, kind probe.Kind) time.Duration {
	return time.Duration(probe.Phase(id, kind) * float64(10*time.Second))
}

func diff(t *testing.T, what string, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

func TestReadinessIsFoundSoonAfterTheStartAndThenEachPeriod(t *testing.T) {
	up := time.Time{}
	inBubble(t, func(ctx context.Context, c probe.Check) probe.Result {
		if time.Now().Before(up) {
			return failure(ctx, c)
		}
		return success(ctx, c)
	}, func(b *bed) {
		up = b.start.Add(600 * time.Millisecond)
		b.want("pod", probe.Target{ContainerID: "a", Began: b.start, Readiness: tcp("readiness")})
		b.pass(31 * time.Second)
		tick := firstTick("a", probe.Readiness)
		diff(t, "checks", b.times("a", "readiness"), []time.Duration{
			0, 250 * time.Millisecond, 750 * time.Millisecond, tick, tick + 10*time.Second, tick + 20*time.Second,
		})
		diff(t, "changes", b.changes("a"), []string{"750ms readiness success"})
	})
}

func TestTriesEndWhereTheirDistanceReachesThePeriod(t *testing.T) {
	inBubble(t, failure, func(b *bed) {
		b.want("pod", probe.Target{ContainerID: "a", Began: b.start, Readiness: tcp("readiness")})
		b.pass(60 * time.Second)
		var tries []time.Duration
		for _, at := range b.times("a", "readiness") {
			if (at-firstTick("a", probe.Readiness))%(10*time.Second) != 0 {
				tries = append(tries, at)
			}
		}
		ms := time.Millisecond
		diff(t, "tries", tries, []time.Duration{0, 250 * ms, 750 * ms, 1750 * ms, 3750 * ms, 7750 * ms, 15750 * ms})
		diff(t, "changes: readiness begins as failure", b.changes("a"), []string(nil))
	})
}

func TestLivenessFailsAfterItsThresholdAndIsHeldUntilAnotherContainer(t *testing.T) {
	inBubble(t, failure, func(b *bed) {
		b.want("pod", probe.Target{ContainerID: "a", Began: b.start, Liveness: tcp("liveness")})
		b.pass(100 * time.Second)
		tick := firstTick("a", probe.Liveness)
		diff(t, "checks", b.times("a", "liveness"), []time.Duration{tick, tick + 10*time.Second, tick + 20*time.Second})
		diff(t, "changes", b.changes("a"), []string{(tick + 20*time.Second).String() + " liveness failure"})
		b.want("pod", probe.Target{ContainerID: "b", Began: time.Now(), Liveness: tcp("liveness")})
		b.pass(29 * time.Second)
		if got := len(b.times("b", "liveness")); got < 2 || got > 3 {
			t.Errorf("the next container was checked %d times in 29 s", got)
		}
	})
}

func TestOneSuccessBeginsTheCountOfFailuresAnew(t *testing.T) {
	n := 0
	inBubble(t, func(ctx context.Context, c probe.Check) probe.Result {
		if n++; n%3 == 0 {
			return success(ctx, c)
		}
		return failure(ctx, c)
	}, func(b *bed) {
		b.want("pod", probe.Target{ContainerID: "a", Began: b.start, Liveness: tcp("liveness")})
		b.pass(300 * time.Second)
		diff(t, "changes", b.changes("a"), []string(nil))
		if got := len(b.times("a", "liveness")); got != 30 {
			t.Errorf("%d checks in 300 s", got)
		}
	})
}

func TestReadinessNeedsSuccessesInARow(t *testing.T) {
	answers := make(chan probe.Outcome, 10)
	say := func(text string) {
		for _, outcome := range strings.Fields(text) {
			answers <- probe.Outcome(outcome)
		}
	}
	say("success failure success success failure failure failure")
	inBubble(t, func(ctx context.Context, c probe.Check) probe.Result {
		return probe.Result{Outcome: <-answers}
	}, func(b *bed) {
		twice := func(p *v1.Probe) { p.SuccessThreshold, p.PeriodSeconds = 2, 1 }
		b.want("pod", probe.Target{ContainerID: "a", Began: b.start.Add(-10 * time.Second), Known: probe.Known{Ready: true}, Readiness: tcp("readiness", twice)})
		b.pass(2 * time.Second) // success, failure: nothing changes
		diff(t, "changes", b.changes("a"), []string(nil))
		b.pass(5 * time.Second)
		got := b.changes("a")
		if len(got) != 1 || !strings.HasSuffix(got[0], "readiness failure") {
			t.Errorf("changes: %v", got)
		}
		say("success failure success success")
		b.pass(4 * time.Second)
		got = b.changes("a")
		if len(got) != 1 || !strings.HasSuffix(got[0], "readiness success") {
			t.Errorf("changes: %v", got)
		}
		b.want("pod")
	})
}

func TestStartupHoldsTheOthersBackUntilItSucceeds(t *testing.T) {
	up := 12 * time.Second
	var begun time.Time
	inBubble(t, func(ctx context.Context, c probe.Check) probe.Result {
		if time.Since(begun) < up {
			return failure(ctx, c)
		}
		return success(ctx, c)
	}, func(b *bed) {
		begun = b.start
		b.want("pod", probe.Target{ContainerID: "a", Began: b.start, Startup: tcp("startup"), Liveness: tcp("liveness"), Readiness: tcp("readiness")})
		b.pass(12*time.Second - time.Nanosecond)
		diff(t, "liveness before", b.times("a", "liveness"), []time.Duration(nil))
		diff(t, "readiness before", b.times("a", "readiness"), []time.Duration(nil))
		b.times("a", "startup")
		b.pass(time.Minute)
		at := firstTick("a", probe.Startup)
		for at < up {
			at += 10 * time.Second
		}
		diff(t, "startup is checked until it succeeds", b.times("a", "startup"), []time.Duration{at})
		for _, kind := range []string{"liveness", "readiness"} {
			if got := b.times("a", kind); got[0] != at {
				t.Errorf("%s begins at %s, startup succeeded at %s", kind, got[0], at)
			}
		}
		diff(t, "changes", b.changes("a"), []string{at.String() + " startup success", at.String() + " readiness success"})
	})
}

func TestTriesOfAStartupProbeDoNotCountAgainstIt(t *testing.T) {
	inBubble(t, failure, func(b *bed) {
		b.want("pod", probe.Target{ContainerID: "a", Began: b.start, Startup: tcp("startup"), Liveness: tcp("liveness")})
		b.pass(10 * time.Minute)
		tick := firstTick("a", probe.Startup)
		diff(t, "changes", b.changes("a"), []string{(tick + 20*time.Second).String() + " startup failure"})
		diff(t, "liveness stays held", b.times("a", "liveness"), []time.Duration(nil))
		if last := b.times("a", "startup"); last[len(last)-1] != tick+20*time.Second {
			t.Errorf("startup is still checked after it failed: %v", last)
		}
	})
}

func TestNothingIsCheckedWithinTheInitialDelay(t *testing.T) {
	delayed := func(p *v1.Probe) { p.InitialDelaySeconds = 30 }
	inBubble(t, success, func(b *bed) {
		b.want("pod", probe.Target{
			ContainerID: "a", Began: b.start.Add(-10 * time.Second), Liveness: tcp("liveness", delayed), Readiness: tcp("readiness", delayed),
		})
		b.pass(20*time.Second - time.Nanosecond)
		diff(t, "liveness", b.times("a", "liveness"), []time.Duration(nil))
		diff(t, "readiness", b.times("a", "readiness"), []time.Duration(nil))
		b.pass(time.Nanosecond)
		diff(t, "readiness", b.times("a", "readiness"), []time.Duration{20 * time.Second})
		b.pass(10 * time.Second)
		diff(t, "liveness", b.times("a", "liveness"), []time.Duration{20*time.Second + firstTick("a", probe.Liveness)})
	})
}

func TestAnotherRunGoesOnAtTheSameBeat(t *testing.T) {
	inBubble(t, success, func(b *bed) {
		target := probe.Target{ContainerID: "a", Began: b.start, Liveness: tcp("liveness"), Readiness: tcp("readiness")}
		b.want("pod", target)
		b.pass(33 * time.Second)
		before, readiness := b.times("a", "liveness"), b.times("a", "readiness")
		b.want("pod") // as a new process: nothing is known
		target.Known = probe.Known{Started: true, Ready: true}
		b.want("pod", target)
		b.pass(20 * time.Second)
		diff(t, "liveness", b.times("a", "liveness")[0], before[len(before)-1]+10*time.Second)
		diff(t, "readiness", b.times("a", "readiness")[0], readiness[len(readiness)-1]+10*time.Second)
	})
}

func TestWhatIsKnownIsNotAskedAgain(t *testing.T) {
	inBubble(t, failure, func(b *bed) {
		b.want("pod", probe.Target{
			ContainerID: "a", Began: b.start.Add(-time.Hour), Known: probe.Known{Started: true, Ready: true},
			Startup: tcp("startup"), Readiness: tcp("readiness"),
		})
		b.pass(20 * time.Second)
		diff(t, "readiness stays until it failed three times", b.changes("a"), []string(nil))
		b.pass(10 * time.Second)
		if got := b.changes("a"); len(got) != 1 || !strings.HasSuffix(got[0], "readiness failure") {
			t.Errorf("changes: %v", got)
		}
		diff(t, "startup", b.times("a", "startup"), []time.Duration(nil))
	})
}

func TestContainersThatBeginTogetherAreProbedApart(t *testing.T) {
	inBubble(t, success, func(b *bed) {
		var targets []probe.Target
		for i := range 1000 {
			targets = append(targets, probe.Target{ContainerID: fmt.Sprintf("%064x", i*7919), Began: b.start, Liveness: tcp("liveness")})
		}
		b.want("pod", targets...)
		b.pass(time.Minute)
		perSecond := make(map[time.Duration]int)
		for _, m := range b.made {
			perSecond[m.at.Truncate(time.Second)]++
		}
		for second, n := range perSecond {
			if n < 60 || n > 140 {
				t.Errorf("%d checks in the second %s, want about 100", n, second)
			}
		}
	})
}

func TestProbesThatWaitCostNoGoroutine(t *testing.T) {
	inBubble(t, success, func(b *bed) {
		before := runtime.NumGoroutine()
		for i := range 3000 {
			b.want(fmt.Sprint(i), probe.Target{ContainerID: fmt.Sprint(i), Began: b.start, Liveness: tcp("liveness")})
		}
		b.pass(time.Minute)
		if more := runtime.NumGoroutine() - before; more > 10 {
			t.Errorf("3000 probes cost %d goroutines", more)
		}
		if n := len(b.made); n < 17000 || n > 18000 {
			t.Errorf("%d checks in a minute, want about 18000", n)
		}
	})
}

// Law 7.
func TestChecksThatHangDoNotDelayOthers(t *testing.T) {
	probes := map[string]struct {
		of   func(string, ...func(*v1.Probe)) *v1.Probe
		hung int
	}{
		"over the network": {tcp, 500},
		"in containers":    {exec, 40},
	}
	for name, tt := range probes {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(ctx context.Context, c probe.Check) probe.Result {
				if kind(c) == "hangs" {
					select {
					case <-ctx.Done():
					case <-time.After(c.Timeout):
					}
					return failure(ctx, c)
				}
				return success(ctx, c)
			}, func(b *bed) {
				patient := func(p *v1.Probe) { p.TimeoutSeconds, p.FailureThreshold = 300, 100 }
				for i := range tt.hung {
					b.want(fmt.Sprint(i), probe.Target{ContainerID: fmt.Sprint(i), Began: b.start, Liveness: tt.of("hangs", patient)})
				}
				b.want("well", probe.Target{ContainerID: "well", Began: b.start, Liveness: tt.of("well")})
				b.pass(10 * time.Minute)
				times := b.times("well", "well")
				if len(times) < 59 {
					t.Errorf("%d checks in 10 min, want one each 10 s", len(times))
				}
				for i, at := range times {
					if late := at - firstTick("well", probe.Liveness) - time.Duration(i)*10*time.Second; late > 5*time.Second {
						t.Errorf("check %d is late by %s", i, late)
					}
				}
				if hung := len(b.times("0", "hangs")); hung != 2 && hung != 3 {
					t.Errorf("a probe that hangs for 5 min was checked %d times in 10 min", hung)
				}
			})
		})
	}
}

func TestNoMoreThanSoManyRunAtATime(t *testing.T) {
	running, most := 0, 0
	var mu sync.Mutex
	inBubble(t, func(ctx context.Context, c probe.Check) probe.Result {
		mu.Lock()
		running++
		most = max(most, running)
		mu.Unlock()
		time.Sleep(50 * time.Millisecond)
		mu.Lock()
		running--
		mu.Unlock()
		return success(ctx, c)
	}, func(b *bed) {
		for i := range 100 {
			b.want(fmt.Sprint(i), probe.Target{ContainerID: fmt.Sprint(i), Began: b.start, Readiness: exec("readiness")})
		}
		b.pass(10 * time.Second)
		if most != 8 {
			t.Errorf("%d commands ran at a time, want 8", most)
		}
		for i := range 100 {
			if len(b.times(fmt.Sprint(i), "readiness")) == 0 {
				t.Errorf("container %d was not probed", i)
			}
		}
	})
}

func TestATickThatComesWhileACheckIsUnderWayIsDueAfterIt(t *testing.T) {
	inBubble(t, func(ctx context.Context, c probe.Check) probe.Result {
		time.Sleep(25 * time.Second)
		return success(ctx, c)
	}, func(b *bed) {
		b.want("pod", probe.Target{ContainerID: "a", Began: b.start, Liveness: tcp("liveness")})
		b.pass(80 * time.Second)
		tick := firstTick("a", probe.Liveness)
		// The second one is that of tick+20s.
		diff(t, "checks", b.times("a", "liveness"), []time.Duration{tick, tick + 25*time.Second, tick + 50*time.Second, tick + 75*time.Second})
	})
}

func TestAResultThatSaysNothingCountsForNothing(t *testing.T) {
	n := 0
	inBubble(t, func(ctx context.Context, c probe.Check) probe.Result {
		if n++; n%2 == 0 {
			return probe.Result{Reason: "the engine is away"}
		}
		return failure(ctx, c)
	}, func(b *bed) {
		b.want("pod", probe.Target{ContainerID: "a", Began: b.start, Liveness: tcp("liveness")})
		b.pass(49 * time.Second)
		tick := firstTick("a", probe.Liveness)
		var texts []string
		for _, r := range b.said {
			texts = append(texts, r.Message())
		}
		errored := "Liveness probe errored: the engine is away"
		diff(t, "reports", texts, []string{"Liveness probe failed: bad", errored, "Liveness probe failed: bad", errored, "Liveness probe failed: bad"})
		diff(t, "changes", b.changes("a"), []string{(tick + 40*time.Second).String() + " liveness failure"})
	})
}

func TestAnEditedProbeTakesEffectAndKeepsItsOutcome(t *testing.T) {
	var well atomic.Bool
	well.Store(true)
	inBubble(t, func(ctx context.Context, c probe.Check) probe.Result {
		if well.Load() {
			return success(ctx, c)
		}
		return failure(ctx, c)
	}, func(b *bed) {
		target := probe.Target{ContainerID: "a", Began: b.start, Readiness: tcp("readiness")}
		b.want("pod", target)
		b.pass(time.Minute)
		b.changes("a")
		well.Store(false)
		b.pass(20 * time.Second) // two failures of three
		b.times("a", "readiness")
		target.Readiness = tcp("readiness", func(p *v1.Probe) { p.PeriodSeconds = 1 })
		b.want("pod", target)
		b.pass(2 * time.Second)
		diff(t, "changes", b.changes("a"), []string(nil))
		b.pass(time.Second)
		if got := b.changes("a"); len(got) != 1 || !strings.HasSuffix(got[0], "readiness failure") {
			t.Errorf("changes: %v", got)
		}
		if n := len(b.times("a", "readiness")); n != 3 {
			t.Errorf("%d checks in 3 s of period 1 s", n)
		}
	})
}

func TestACheckOfWhatNobodyWantsIsEnded(t *testing.T) {
	var ended atomic.Bool
	inBubble(t, func(ctx context.Context, c probe.Check) probe.Result {
		<-ctx.Done()
		ended.Store(true)
		return failure(ctx, c)
	}, func(b *bed) {
		b.want("pod", probe.Target{ContainerID: "a", Began: b.start, Readiness: tcp("readiness")})
		if ended.Load() {
			t.Error("the check ended before its target went")
		}
		b.want("pod")
		if !ended.Load() {
			t.Error("the check goes on")
		}
		b.pass(time.Hour)
		diff(t, "checks", len(b.made), 1)
		diff(t, "reports", b.said, []said(nil))
	})
}

func TestReportsWaitInTheirOrderWhileNobodyTakesThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		updates, reports := make(chan probe.Update), make(chan []probe.Report)
		var run sync.WaitGroup
		n := 0
		run.Go(func() {
			probe.Run(ctx, probe.Config{Check: func(context.Context, probe.Check) probe.Result {
				n++
				return probe.Result{Outcome: probe.Failure, Reason: fmt.Sprint(n)}
			}}, updates, reports)
		})
		updates <- probe.Update{Group: "pod", Targets: []probe.Target{{ContainerID: "a", Began: time.Now(), Liveness: tcp("liveness")}}}
		time.Sleep(time.Minute)
		updates <- probe.Update{Group: "other"} // it is ready for those all the same
		var got []string
		for _, r := range <-reports {
			got = append(got, r.Result.Reason)
		}
		diff(t, "reports", got, []string{"1", "2", "3"})
		cancel()
		run.Wait()
	})
}
