package stream

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/podkeeper/podkeeper/runtime"
)

// maxRunOutput is how much of a command's output fits in an answer.
const maxRunOutput = 4 << 20

// Run runs the command of the parameter cmd, whose words are apart by blanks, or of
// the parameters command, a word each, and answers with what it wrote, cut with a word about
// that. One that ends
// with another exit code than 0 is answered with status 500.
func Run(w http.ResponseWriter, r *http.Request, run func(ctx context.Context, command []string, most int) (runtime.ExecResult, error)) error {
	command := strings.Fields(r.URL.Query().Get("cmd"))
	if len(command) == 0 {
		var err error
		if command, err = commandOf(r.URL.Query()); err != nil {
			return fmt.Errorf("%w: the parameter cmd is missing", ErrBadRequest)
		}
	}
	got, err := run(r.Context(), command, maxRunOutput+1)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if got.ExitCode != 0 {
		w.WriteHeader(http.StatusInternalServerError)
	}
	whole := len(got.Output) <= maxRunOutput
	_, err = w.Write(got.Output[:min(len(got.Output), maxRunOutput)])
	if err == nil && !whole {
		_, err = fmt.Fprintf(w, "\nit wrote more than the %d bytes above\n", maxRunOutput)
	}
	if err == nil && got.ExitCode != 0 {
		_, err = fmt.Fprintf(w, "command terminated with exit code %d\n", got.ExitCode)
	}
	return err
}
