package stream

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
	"k8s.io/streaming/pkg/httpstream/wsstream"

	"github.com/podkeeper/podkeeper/runtime"
)

// Config bounds a stream. The zero value of a field means its default.
type Config struct {
	// Idle is how long a connection may carry nothing (0: 4 hours).
	Idle time.Duration
	// Creation is how long a client may take to open the streams that it announced
	// (0: 30 seconds).
	Creation time.Duration
}

func (c Config) complete() Config {
	if c.Idle == 0 {
		c.Idle = 4 * time.Hour
	}
	if c.Creation == 0 {
		c.Creation = remotecommand.DefaultStreamCreationTimeout
	}
	return c
}

// The classes of what is wrong with a request, as long as nothing was sent.
var (
	// ErrBadRequest: it cannot be understood, or asks for no connection that is known.
	ErrBadRequest = errors.New("bad request")
	// ErrForbidden: it comes from a page of another site.
	ErrForbidden = errors.New("forbidden")
)

// Command runs a command in a container: see runtime.Runtime.ExecStream.
type Command func(ctx context.Context, command []string, s runtime.Streams) (exitCode int, err error)

// Exec runs the command that the query names for the client, and tells its exit code.
// On an error nothing was sent.
func Exec(w http.ResponseWriter, r *http.Request, cfg Config, run Command) error {
	command, err := commandOf(r.URL.Query())
	if err != nil {
		return err
	}
	return remote(w, r, cfg, func(ctx context.Context, s runtime.Streams) (int, error) { return run(ctx, command, s) })
}

// Attach joins the client in with a container's own process. On an error nothing was
// sent.
func Attach(w http.ResponseWriter, r *http.Request, cfg Config, join func(ctx context.Context, s runtime.Streams) error) error {
	return remote(w, r, cfg, func(ctx context.Context, s runtime.Streams) (int, error) { return 0, join(ctx, s) })
}

// commandOf reads the words of a command, each a parameter.
func commandOf(query url.Values) ([]string, error) {
	command := query["command"]
	if len(command) == 0 || command[0] == "" {
		return nil, fmt.Errorf("%w: the parameter command is missing", ErrBadRequest)
	}
	return command, nil
}

// optionsOf reads which streams a client wants. A terminal has no stderr of its own.
func optionsOf(query url.Values) (remotecommand.Options, error) {
	is := func(name string) bool { return query.Get(name) == "1" || query.Get(name) == "true" }
	o := remotecommand.Options{
		Stdin:  is(remotecommand.ExecStdinParam),
		Stdout: is(remotecommand.ExecStdoutParam),
		TTY:    is(remotecommand.ExecTTYParam),
	}
	o.Stderr = is(remotecommand.ExecStderrParam) && !o.TTY
	if !o.Stdin && !o.Stdout && !o.Stderr {
		return o, fmt.Errorf("%w: want at least one of the parameters input, output, error to be 1", ErrBadRequest)
	}
	return o, nil
}

// checkUpgrade says early, and without repeating what is secret in a request, that
// it asks for no connection that could be given.
func checkUpgrade(r *http.Request) error {
	switch web := wsstream.IsWebSocketRequest(r); {
	case web && !sameSite(r):
		return fmt.Errorf("%w: a page of another site asks", ErrForbidden)
	case web:
		return nil
	case httpstream.IsUpgradeRequest(r) && strings.EqualFold(r.Header.Get(httpstream.HeaderUpgrade), spdy.HeaderSpdy31):
		return nil
	default:
		return fmt.Errorf("%w: want an upgrade to %s or websocket", ErrBadRequest, spdy.HeaderSpdy31)
	}
}

// sameSite keeps pages out that a browser shows which has a certificate for us.
// Programs name no origin.
func sameSite(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return true
	}
	from, err := url.Parse(origin)
	return err == nil && strings.EqualFold(from.Host, r.Host)
}
