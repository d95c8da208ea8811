package agent

import (
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/podkeeper/podkeeper/node/volume"
	"github.com/podkeeper/podkeeper/runtime"
)

// An engine is taken as ready only when it is known what the node is short of; one that
// nobody can tell holds pods up for some seconds, not for ever.
func TestNoPodBeforeTheFirstLook(t *testing.T) {
	for name, tt := range map[string]struct {
		looks bool
		after time.Duration
	}{
		"the look takes a second": {true, time.Second},
		"it never ends":           {false, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &parts{known: make(chan struct{}), cgroups: &podCgroups{cfg: CgroupConfig{Off: true}}}
				p.usage = newUsage(&volume.Host{RootDir: t.TempDir()}, slog.New(slog.DiscardHandler))
				p.told = sync.OnceFunc(func() { close(p.known) })
				if tt.looks {
					time.AfterFunc(time.Second, p.told)
				}
				start := time.Now()
				if err := p.accept(t.Context(), runtime.Features{}); err != nil {
					t.Fatal(err)
				}
				if got := time.Since(start); got != tt.after {
					t.Errorf("after %v, want %v", got, tt.after)
				}
			})
		})
	}
}
