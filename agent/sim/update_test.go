package sim

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/podkeeper/podkeeper/runtime"
)

var errReplyLost = errors.New("reply lost")

// mumbling sets new limits, and its reply is lost while lost is set.
type mumbling struct {
	runtime.Runtime
	lost *bool
}

func (f mumbling) UpdateResources(ctx context.Context, id string, r runtime.Resources) error {
	if err := f.Runtime.UpdateResources(ctx, id, r); err != nil || !*f.lost {
		return err
	}
	return errReplyLost
}

// Law 3: whether limits were set whose reply is lost nobody knows. Those from before
// are set again, where an edit is taken back.
func TestLostReplyOfAnUpdate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, lost := newScript(), false
		s.lies.runtime = func(_ *world, rt runtime.Runtime) runtime.Runtime { return mumbling{rt, &lost} }
		s.startAgent(-1)
		defer s.crash()
		edit := func(memory int) {
			s.pod.containers[0].memory = memory
			s.put()
			s.wait(time.Minute)
		}
		edit(64)
		edit(96)
		edit(64)
		lost = true
		edit(96)
		lost = false
		edit(64)
		for _, c := range s.engine.Containers() {
			if c.Identity.Name == "a" && ours(c) && c.Resources.Memory != 64<<20 {
				t.Errorf("%s has %d MiB, want 64", c.Name, c.Resources.Memory>>20)
			}
		}
	})
}
