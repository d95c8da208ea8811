package server

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/server/kubeletapi"
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
	resp, err := c.get(ctx, path, query)
	if err != nil {
		return nil, err
	}
	return resp.Body, nil
}

// Log is one attempt of a container that writes or wrote.
type Log struct {
	// ContainerID is whose it is, as a status spells it.
	ContainerID string
	// Text ends when all is read, and while the container runs and is followed, when it
	// has ended. The caller closes it.
	Text io.ReadCloser
}

// Log asks for the log of a container; the query is that of the kubelet's
// /containerLogs. The errors are those of Get.
func (c *Client) Log(ctx context.Context, key pod.Key, container string, query url.Values) (Log, error) {
	resp, err := c.get(ctx, "/containerLogs/"+url.PathEscape(key.Namespace)+"/"+url.PathEscape(key.Name)+"/"+url.PathEscape(container), query)
	if err != nil {
		return Log{}, err
	}
	return Log{ContainerID: resp.Header.Get(kubeletapi.ContainerIDHeader), Text: resp.Body}, nil
}

func (c *Client) get(ctx context.Context, path string, query url.Values) (*http.Response, error) {
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	resp, err := c.do(ctx, http.MethodGet, path)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	return nil, refusal(resp)
}

// Upgrade asks for a path of the kubelet API whose answer is a connection. Its errors
// are those of Get.
func (c *Client) Upgrade(ctx context.Context, path string, query url.Values, header http.Header) (io.ReadWriteCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://agent"+path+"?"+query.Encode(), nil)
	if err != nil {
		return nil, err
	}
	req.Header = header
	resp, err := c.send(req)
	if err != nil {
		return nil, err
	}
	if conn, ok := resp.Body.(io.ReadWriteCloser); ok && resp.StatusCode == http.StatusSwitchingProtocols {
		return conn, nil
	}
	return nil, refusal(resp)
}

// refusal is the error that an answer is, which it closes.
func refusal(resp *http.Response) error {
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
	if err != nil {
		return fmt.Errorf("agent's answer: %w", err)
	}
	message := strings.TrimSpace(string(text))
	if message == "" {
		message = resp.Status
	}
	return &StatusError{Code: resp.StatusCode, Message: message}
}
