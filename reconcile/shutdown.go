package reconcile

import "context"

// Shutdown tells that the machine goes down, or with nil that it does not after all.
// It holds until it is told anew, and gives up when ctx ends.
func (l *Loop) Shutdown(ctx context.Context, d *Shutdown) {
	l.report(ctx, func(s *state) {
		s.shutdown = d
		s.markAll()
	})
}
