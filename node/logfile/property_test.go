package logfile_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podkeeper/podkeeper/node/logfile"
)

// step is something that happens to a log, at random.
func (e *engine) step(r *rand.Rand) {
	pause, stream := 3000, logfile.Stdout
	if r.IntN(3) == 0 {
		stream = logfile.Stderr
	}
	// The engine has the rest of a long line, and writes it at once: only a few
	// entries of the other stream come between.
	if open := e.unfinished(); len(open) > 0 {
		pause = 3
		if r.IntN(3) > 0 {
			stream = open[0]
		}
	}
	e.now = e.now.Add(time.Duration(r.IntN(pause)) * time.Millisecond)
	switch n := r.IntN(40); {
	case n == 0:
		e.rotate()
	case n == 1:
		e.raw(strings.Repeat("\x00", 1+r.IntN(70_000))) // moby/moby#40584
	case n == 2:
		e.raw(`{"log":"cut off by a cra`)
	case n == 3:
		e.raw("no entry\n")
	case n < 10:
		e.write(stream, fmt.Sprintf("part %d ", len(e.wrote))+strings.Repeat("p", r.IntN(16<<10)))
	default:
		odd := []string{"", `"quoted"`, `\`, `\n`, "\ttab", "\u2028", "ünï", "🐳", "\x01", `{"log":"x","stream":"stderr"`, "</a>"}
		e.write(stream, fmt.Sprintf("line %d %s%s\n", len(e.wrote), odd[r.IntN(len(odd))], strings.Repeat("x", r.IntN(200))))
	}
}

func (e *engine) options(r *rand.Rand) logfile.Options {
	o := logfile.Options{Tail: -1, Timestamps: r.IntN(3) == 0, Stream: []logfile.Stream{logfile.All, logfile.All, logfile.Stdout, logfile.Stderr}[r.IntN(4)]}
	if r.IntN(2) == 0 {
		o.Tail = int64(r.IntN(20) * r.IntN(10))
	}
	if r.IntN(3) == 0 && len(e.wrote) > 0 {
		o.Since = e.wrote[r.IntN(len(e.wrote))].at
	}
	if r.IntN(5) == 0 {
		o.Limit = 1 + r.Int64N(3000)
	}
	return o
}

// Whatever was written, however it was rotated: a reader gets that, once.
func TestCopyGivesWhatWasWritten(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			e := newEngine(t)
			e.compress = r.IntN(3) == 0
			for range r.IntN(300) {
				e.step(r)
			}
			e.settle()
			for range 8 {
				o := e.options(r)
				var got bytes.Buffer
				if err := logfile.Copy(t.Context(), e.path, o, &got); err != nil {
					t.Fatal(err)
				}
				if want := e.want(o); got.String() != want {
					t.Fatalf("%+v (-want +got):\n%s", o, cmp.Diff(short(want), short(got.String())))
				}
			}
		})
	}
}

// settle leaves no line unfinished but the last: a stream ends with its container.
func (e *engine) settle() {
	for _, s := range e.unfinished() {
		if n := len(e.wrote); n > 0 && e.wrote[n-1].stream != s {
			e.write(s, "end\n")
		}
	}
}

// short keeps a diff readable.
func short(text string) []string {
	lines := strings.SplitAfter(text, "\n")
	for i, l := range lines {
		if len(l) > 200 {
			lines[i] = fmt.Sprintf("%s...%d %s", l[:80], len(l), l[len(l)-20:])
		}
	}
	return lines
}

// buffer is what a follower has written so far.
type buffer struct {
	mu   sync.Mutex
	data bytes.Buffer
	more chan struct{} // closed and replaced with each write
}

func newBuffer() *buffer { return &buffer{more: make(chan struct{})} }

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.more)
	b.more = make(chan struct{})
	return b.data.Write(p)
}

func (b *buffer) get() (string, <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.data.String(), b.more
}

// A follower that begins anywhere, while the log is written and rotated as fast as
// can be, gets what there was and what comes, once, and ends with the container.
func TestFollowGivesWhatIsWritten(t *testing.T) {
	var watcher logfile.Watcher
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 2))
			e := newEngine(t)
			e.compress = r.IntN(3) == 0
			for range r.IntN(100) {
				e.step(r)
			}
			for _, s := range e.unfinished() {
				e.write(s, "end\n")
			}
			o := e.options(r)
			before := len(e.wrote)
			if e.want(o) == "" { // nothing would tell where it began
				o = logfile.Options{Tail: -1}
			}
			ended, done, got := make(chan struct{}), make(chan error, 1), newBuffer()
			go func() { done <- logfile.Follow(t.Context(), e.path, o, got, &watcher, ended) }()
			// Once it has shown what was there, it is known where it began.
			await(t, got, e.want(o))
			for range r.IntN(300) {
				e.step(r)
			}
			e.settle()
			close(ended)
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			all, _ := got.get()
			if want := e.wantFrom(o, before); all != want {
				t.Fatalf("%+v (-want +got):\n%s", o, cmp.Diff(short(want), short(all)))
			}
		})
	}
}

// await returns when the follower has written that much.
func await(t *testing.T, got *buffer, want string) {
	t.Helper()
	for {
		all, more := got.get()
		if len(all) >= len(want) {
			return
		}
		select {
		case <-more:
		case <-time.After(20 * time.Second):
			t.Fatalf("got %d bytes of %d", len(all), len(want))
		}
	}
}
