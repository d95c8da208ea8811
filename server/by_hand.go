package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/podkeeper/podkeeper/pod"
)

// handleByHand adds what is done to pods by hand. 204 is that it was taken on, 404
// that there is no such pod or container, 409 that it cannot be done, and why.
func handleByHand(mux *http.ServeMux, a Answers) {
	on := func(verb string, do func(*http.Request, pod.Key) error) {
		mux.HandleFunc("POST /v1/pods/{namespace}/{name}/"+verb, func(w http.ResponseWriter, r *http.Request) {
			err := do(r, pod.Key{Namespace: r.PathValue("namespace"), Name: r.PathValue("name")})
			switch {
			case errors.Is(err, ErrNoPod):
				http.Error(w, err.Error(), http.StatusNotFound)
			case err != nil:
				http.Error(w, err.Error(), http.StatusConflict)
			default:
				w.WriteHeader(http.StatusNoContent)
			}
		})
	}
	on("restart", func(r *http.Request, key pod.Key) error {
		return a.Restart(r.Context(), key, r.URL.Query().Get("container"))
	})
	on("stop", func(r *http.Request, key pod.Key) error { return a.Stop(r.Context(), key) })
	on("start", func(r *http.Request, key pod.Key) error { return a.Start(r.Context(), key) })
}

// Restart has the agent end a pod and start it anew, or with a name one container of
// it. ErrNoPod where there is none, ErrNoAgent where nobody answers.
func (c *Client) Restart(ctx context.Context, key pod.Key, container string) error {
	query := ""
	if container != "" {
		query = "?container=" + url.QueryEscape(container)
	}
	return c.byHand(ctx, key, "restart"+query)
}

// Stop has the agent end a pod and hold it. It returns when that is written down, with
// errors as those of Restart.
func (c *Client) Stop(ctx context.Context, key pod.Key) error { return c.byHand(ctx, key, "stop") }

// Start has the agent let a pod go on that is held, as Stop does.
func (c *Client) Start(ctx context.Context, key pod.Key) error { return c.byHand(ctx, key, "start") }

func (c *Client) byHand(ctx context.Context, key pod.Key, verb string) error {
	resp, err := c.do(ctx, http.MethodPost, "/v1/pods/"+url.PathEscape(key.Namespace)+"/"+url.PathEscape(key.Name)+"/"+verb)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNoContent {
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
	why := strings.TrimSpace(string(text))
	switch {
	case err != nil:
		return fmt.Errorf("agent's answer: %w", err)
	case resp.StatusCode == http.StatusNotFound:
		return fmt.Errorf("%w: %s", ErrNoPod, strings.TrimPrefix(why, ErrNoPod.Error()+": "))
	default:
		return errors.New(why)
	}
}
