package agent

import (
	"context"
	"errors"
	"fmt"

	"github.com/podkeeper/podkeeper/runtime"
)

// commands runs those of probes, as probe.Execer has it.
type commands struct{ engine runtime.Runtime }

func (c commands) Exec(ctx context.Context, id string, command []string, most int) (int, []byte, error) {
	result, err := c.engine.Exec(ctx, id, command, most)
	if errors.Is(err, runtime.ErrUnavailable) {
		// The command is not to blame for the time that passed.
		err = fmt.Errorf("%w: %v", runtime.ErrUnavailable, err)
	}
	return result.ExitCode, result.Output, err
}
