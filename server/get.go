package server

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// StatusError is an answer of the agent that says no.
type StatusError struct {
	Code int
	// Message is for people; it is never empty.
	Message string
}

func (e *StatusError) Error() string { return e.Message }

// Get asks for a path of the kubelet API and returns the body as it comes, which
// the caller closes. ErrNoAgent where nobody answers, a *StatusError where the
// answer is none.
func (c *Client) Get(ctx context.Context, path string, query url.Values) (io.ReadCloser, error) {
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	resp, err := c.do(ctx, http.MethodGet, path)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusOK {
		return resp.Body, nil
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
	if err != nil {
		return nil, fmt.Errorf("agent's answer: %w", err)
	}
	message := strings.TrimSpace(string(text))
	if message == "" {
		message = resp.Status
	}
	return nil, &StatusError{Code: resp.StatusCode, Message: message}
}
