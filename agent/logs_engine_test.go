package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podkeeper/podkeeper/runtime"
	"github.com/podkeeper/podkeeper/server/kubeletapi"
)

// speaking is an engine that has a log of its own.
type speaking struct {
	runtime.Runtime
	asked runtime.LogQuery
	err   error
}

func (s *speaking) Logs(_ context.Context, id string, q runtime.LogQuery, out io.Writer) error {
	s.asked = q
	if s.err != nil {
		return s.err
	}
	_, err := io.WriteString(out, "from the engine\n")
	return err
}

// A log that is no file of ours to read comes through the engine, with all that was
// asked; what the engine cannot do is said with its reason.
func TestLogsThroughTheEngine(t *testing.T) {
	since := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, path := range map[string]string{"another driver": "", "a file that is elsewhere": filepath.Join(t.TempDir(), "none-json.log")} {
		engine := &speaking{}
		p := &parts{runtime: engine}
		c := runtime.Container{ID: "abc", State: runtime.Exited, LogPath: path, Identity: runtime.Identity{Name: "app"}}
		read := func(q kubeletapi.LogQuery) (string, error) {
			var got bytes.Buffer
			err := p.copyLog(t.Context(), c, q, &got)
			return got.String(), err
		}
		if got, err := read(kubeletapi.LogQuery{Tail: 7, Since: since, Timestamps: true, Stream: "stderr"}); got != "from the engine\n" || err != nil {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		if diff := cmp.Diff(runtime.LogQuery{Tail: 7, Since: since, Timestamps: true, Stderr: true}, engine.asked); diff != "" {
			t.Errorf("%s: asked for (-want +got):\n%s", name, diff)
		}
		if got, err := read(kubeletapi.LogQuery{Tail: -1, Limit: 4}); got != "from" || err != nil {
			t.Errorf("%s: limited: %q, %v", name, got, err)
		}
		for failed, class := range map[error]error{
			runtime.ErrUnsupported: kubeletapi.ErrBadRequest, runtime.ErrNotFound: kubeletapi.ErrNotFound, runtime.ErrUnavailable: kubeletapi.ErrUnavailable,
		} {
			engine.err = fmt.Errorf("%w: why", failed)
			if _, err := read(kubeletapi.LogQuery{Tail: -1}); !errors.Is(err, class) {
				t.Errorf("%s: %v: got %v, want %v", name, failed, err, class)
			}
		}
		c.State, c.ExitCode = runtime.Created, 127 // it could not be started
		if got, err := read(kubeletapi.LogQuery{Tail: -1}); got != "" || err != nil {
			t.Errorf("%s: of one that never ran: %q, %v", name, got, err)
		}
	}
}
