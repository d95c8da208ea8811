package fake

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/podkeeper/podkeeper/runtime"
)

// Rates are the probabilities, 0 to 1, of what may happen to one call or event.
type Rates struct {
	Slow      float64 // takes seconds more
	Hung      float64 // never answers; the caller's or its own deadline ends it
	Fail      float64 // fails without effect
	LostReply float64 // has its effect, and fails
	LostEvent float64
	DupEvent  float64
}

// Fate decides when each call has its effect and what goes wrong with it, and
// keeps the trace. One Fate may serve several fakes: their effects then have
// instants that are unique among all of them.
type Fate struct {
	seed      uint64
	immediate bool
	start     time.Time

	mu     sync.Mutex
	rates  Rates
	counts map[string]int
	// turns has the keys of everything that wants its effect at an instant, in
	// ns since start. The least has it; the others move on by 1 ns.
	turns map[time.Duration][]string
	trace []line
}

type line struct {
	at   time.Duration
	text string
	// loose lines belong to no effect: several goroutines may write one at the
	// same instant, so they are sorted by text.
	loose bool
}

// NewFate returns the fate of that seed. It begins without faults, and has to
// be used in virtual time, beginning with this call.
func NewFate(seed uint64) *Fate {
	return &Fate{seed: seed, start: time.Now(), counts: map[string]int{}, turns: map[time.Duration][]string{}}
}

// Immediate returns a fate without latency and faults, for use in real time.
func Immediate() *Fate {
	f := NewFate(0)
	f.immediate = true
	return f
}

// SetRates changes what may happen to calls that begin from now on.
func (f *Fate) SetRates(r Rates) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rates = r
}

// Call describes one call to [Fate.Do].
type Call struct {
	// Verb and Object name it for the hash and the trace. Object must be the same
	// in every run of a seed, so it is a name, never a random id.
	Verb, Object string
	// Min and Max bound its latency.
	Min, Max time.Duration
	// Deadline is the callee's own, for a call that hangs.
	Deadline time.Duration
	// Fence, once closed, ends the call at once and without effect: the caller died.
	Fence <-chan struct{}
	// Broken, once closed, ends it without effect and soon: the connection broke.
	Broken <-chan struct{}
	// Rates are used in place of the fate's, where not nil.
	Rates *Rates
	// Quiet leaves it out of the trace unless something goes wrong with it.
	Quiet bool
}

var (
	errFenced = fmt.Errorf("%w: the caller is dead", runtime.ErrUnavailable)
	errBroken = fmt.Errorf("%w: connection reset", runtime.ErrUnavailable)
	// errInternal has no class: the engine answered, with an error of its own.
	errInternal = errors.New("the engine says: internal error")
)

// Do parks until the call's instant, then runs effect and returns its error,
// unless a fault has it otherwise. The effect must not block.
func (f *Fate) Do(ctx context.Context, c Call, effect func() error) error {
	if closed(c.Fence) {
		return errFenced
	}
	key, d, rates := f.draw(c.Verb, c.Object)
	if c.Rates != nil {
		rates = *c.Rates
	}
	wait := d.between(c.Min, c.Max)
	fault := d.fault(rates)
	switch fault {
	case slow:
		wait += d.between(time.Second, 30*time.Second)
	case hung:
		f.loose(c, "hangs")
		wait += c.Deadline
	}
	if err := f.park(ctx, c, key, wait); err != nil {
		return err
	}
	return f.happen(c, fault, d, effect)
}

// happen is the instant of a call.
func (f *Fate) happen(c Call, fault fault, d *draw, effect func() error) error {
	switch fault {
	case hung:
		f.Trace("%s %s: timeout", c.Verb, c.Object)
		return fmt.Errorf("%w: no answer after %s", runtime.ErrUnavailable, c.Deadline)
	case fail:
		err := errInternal
		if d.next()%2 == 0 {
			err = errBroken
		}
		f.Trace("%s %s: %v (fault)", c.Verb, c.Object, err)
		return err
	}
	err := effect()
	switch {
	case closed(c.Fence): // the effect was the last thing that the caller lived to ask for
		f.Trace("%s %s: %s (caller dead)", c.Verb, c.Object, outcome(err))
		return errFenced
	case fault == lostReply:
		f.Trace("%s %s: %s (reply lost)", c.Verb, c.Object, outcome(err))
		return errBroken
	}
	if !c.Quiet {
		f.Trace("%s %s: %s", c.Verb, c.Object, outcome(err))
	}
	return err
}

func outcome(err error) string {
	if err == nil {
		return "ok"
	}
	return err.Error()
}

// Deliver runs fn, which must not block, a little later: or never, or twice.
// One that was sent before may overtake it.
func (f *Fate) Deliver(object string, fn func()) {
	if f.immediate {
		fn()
		return
	}
	key, d, rates := f.draw("event", object)
	delay, u := d.between(100*time.Microsecond, 20*time.Millisecond), d.unit()
	if u < rates.LostEvent {
		return
	}
	f.at(key, delay, fn)
	if u < rates.LostEvent+rates.DupEvent {
		f.at(key+" again", 7*delay, fn)
	}
}

// After runs fn, which must not block, at an instant of its own about d from
// now: between d and d plus spread.
func (f *Fate) After(verb, object string, d, spread time.Duration, fn func()) {
	key, dr, _ := f.draw(verb, object)
	f.at(key, d+dr.between(0, spread), fn)
}

// Hash returns a number that depends on nothing but the seed and the parts.
func (f *Fate) Hash(parts ...string) uint64 { return hash(f.seed, parts...) }

func (f *Fate) at(key string, d time.Duration, fn func()) {
	if f.immediate {
		time.AfterFunc(d, fn)
		return
	}
	at := time.Since(f.start) + max(d, 1)
	f.want(at, key)
	f.wake(at, key, fn)
}

func (f *Fate) wake(at time.Duration, key string, fn func()) {
	time.AfterFunc(at-time.Since(f.start), func() {
		if !f.turn(at, key) {
			f.wake(at+1, key, fn)
			return
		}
		fn()
	})
}

// park waits for an instant that is the caller's alone.
func (f *Fate) park(ctx context.Context, c Call, key string, d time.Duration) error {
	if f.immediate {
		switch {
		case closed(c.Fence):
			return errFenced
		case ctx.Err() != nil:
			return fmt.Errorf("%w: %w", runtime.ErrUnavailable, ctx.Err())
		}
		return nil
	}
	at := time.Since(f.start) + max(d, 1)
	f.want(at, key)
	for ; ; at++ {
		timer := time.NewTimer(at - time.Since(f.start))
		select {
		case <-timer.C:
		case <-c.Fence:
		case <-c.Broken:
		case <-ctx.Done():
		}
		timer.Stop()
		switch {
		case closed(c.Fence):
			return errFenced
		case closed(c.Broken):
			// Everybody on the connection learns of it, each at an instant of its own.
			c.Broken = nil
			d := draw(hash(f.seed, key, "broken"))
			if err := f.park(ctx, c, key+" broken", d.between(0, 5*time.Millisecond)); err != nil {
				return err
			}
			f.Trace("%s %s: %v", c.Verb, c.Object, errBroken)
			return errBroken
		case ctx.Err() != nil:
			return fmt.Errorf("%w: %w", runtime.ErrUnavailable, ctx.Err())
		}
		if f.turn(at, key) {
			return nil
		}
	}
}

func (f *Fate) want(at time.Duration, key string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.turns[at] = append(f.turns[at], key)
}

// turn reports whether that instant belongs to key, and asks for the next one
// if it does not. Whoever wants an instant said so before it came.
func (f *Fate) turn(at time.Duration, key string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if slices.Min(f.turns[at]) == key {
		return true
	}
	f.turns[at+1] = append(f.turns[at+1], key)
	return false
}

// draw begins the private stream of the n-th call of that verb on that object.
func (f *Fate) draw(verb, object string) (string, *draw, Rates) {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := verb + " " + object
	n := f.counts[key]
	f.counts[key]++
	key = fmt.Sprintf("%s #%d", key, n)
	d := draw(hash(f.seed, key))
	return key, &d, f.rates
}

// Trace adds a line about the effect that happens now. Effects alone write
// lines this way, and there is one effect per instant.
func (f *Fate) Trace(format string, args ...any) { f.write(false, fmt.Sprintf(format, args...)) }

func (f *Fate) loose(c Call, text string) { f.write(true, c.Verb+" "+c.Object+" "+text) }

func (f *Fate) write(loose bool, text string) {
	at := time.Since(f.start)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.trace = append(f.trace, line{at: at, text: text, loose: loose})
}

// Lines returns the trace so far, a line per effect, in order, as
// "t=+12.345678901s verb object: outcome".
func (f *Fate) Lines() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	lines := slices.Clone(f.trace)
	slices.SortStableFunc(lines, func(a, b line) int {
		if a.at != b.at || !a.loose && !b.loose {
			return cmp.Compare(a.at, b.at)
		}
		if a.loose && b.loose {
			return strings.Compare(a.text, b.text)
		}
		if b.loose {
			return -1
		}
		return 1
	})
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = fmt.Sprintf("t=+%d.%09ds %s", l.at/time.Second, l.at%time.Second, l.text)
	}
	return out
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
