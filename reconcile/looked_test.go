package reconcile_test

import (
	"context"
	"testing"
	"time"
)

// While the engine answers, everything was listed within a period; while it does not,
// the last look gets older, and nobody says otherwise.
func TestLooked(t *testing.T) {
	inRig(t, func(r *rig) {
		age := func() time.Duration {
			t.Helper()
			last, period, err := r.loop.Looked(r.t.Context())
			if err != nil || period != 5*time.Minute {
				t.Fatalf("period %s, %v", period, err)
			}
			return time.Since(last)
		}
		r.want()
		for range 10 {
			r.after(3 * time.Minute)
			if a := age(); a > 5*time.Minute {
				t.Errorf("the last look was %s ago", a)
			}
		}
		r.engine.Down(true)
		before := age()
		r.after(time.Hour)
		if a := age(); a != before+time.Hour {
			t.Errorf("without an engine, the last look was %s ago, want %s", a, before+time.Hour)
		}
		r.engine.Up()
		r.after(10 * time.Second)
		if a := age(); a > 10*time.Second {
			t.Errorf("the engine is back, and the last look was %s ago", a)
		}
		ctx, cancel := context.WithCancel(r.t.Context())
		cancel()
		if _, _, err := r.loop.Looked(ctx); err == nil {
			t.Error("answered after the question was taken back")
		}
	})
}
