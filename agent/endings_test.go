package agent

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/podkeeper/podkeeper/reconcile"
	"github.com/podkeeper/podkeeper/runtime"
)

// snapshotOf has these containers, which run.
func snapshotOf(revision uint64, ids ...string) reconcile.Snapshot {
	v := reconcile.View{}
	for _, id := range ids {
		v.Containers = append(v.Containers, runtime.Container{ID: id, State: runtime.Running})
	}
	return reconcile.Snapshot{Revision: revision, Pods: []reconcile.View{v}}
}

// A snapshot from before the container ran says nothing of its end, though it comes
// late; one from after it does, to all who follow.
func TestEndings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now, changes := snapshotOf(7, "abc"), make(chan reconcile.Snapshot)
		asked := func() {}
		e := newEndings(func(ctx context.Context, after uint64) (reconcile.Snapshot, error) {
			if after == 0 {
				asked()
				return now, nil
			}
			select {
			case s := <-changes:
				return s, nil
			case <-ctx.Done():
				return reconcile.Snapshot{}, ctx.Err()
			}
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- e.run(ctx) }()
		one, stop, err := e.of(ctx, "abc")
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
		two, stop, err := e.of(ctx, "abc")
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
		changes <- snapshotOf(6)
		changes <- snapshotOf(8, "abc", "other")
		synctest.Wait()
		select {
		case <-one:
			t.Fatal("a snapshot of before ended it")
		default:
		}
		changes <- snapshotOf(9, "other")
		<-one
		<-two
		now = snapshotOf(9, "other")
		gone, stop, err := e.of(ctx, "abc")
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
		<-gone // it had ended before anybody asked
		now = snapshotOf(10, "xyz")
		asked = func() { // and it ends while somebody asks
			asked = func() {}
			changes <- snapshotOf(11)
			synctest.Wait()
		}
		meanwhile, stop, err := e.of(ctx, "xyz")
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
		<-meanwhile
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
