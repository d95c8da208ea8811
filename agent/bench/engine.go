package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// engine makes the bare calls over the engine's socket.
type engine struct{ http *http.Client }

func newEngine(socket string) engine {
	return engine{&http.Client{Transport: &http.Transport{
		MaxIdleConnsPerHost: 64,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", socket)
		},
	}}}
}

func (e engine) call(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://engine/v1.41"+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := e.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode >= 400 {
		err = fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, data)
	}
	return data, err
}

func (e engine) create(ctx context.Context, name string, body []byte) (id string, err error) {
	data, err := e.call(ctx, http.MethodPost, "/containers/create?name="+name, body)
	if err != nil {
		return "", err
	}
	var made struct{ ID string }
	err = json.Unmarshal(data, &made)
	return made.ID, err
}

func (e engine) start(ctx context.Context, id string) error {
	_, err := e.call(ctx, http.MethodPost, "/containers/"+id+"/start", nil)
	return err
}

func (e engine) stop(ctx context.Context, id string) error {
	_, err := e.call(ctx, http.MethodPost, "/containers/"+id+"/stop?t=10", nil)
	return err
}

func (e engine) remove(ctx context.Context, id string) error {
	_, err := e.call(ctx, http.MethodDelete, "/containers/"+id+"?v=1", nil)
	return err
}

// destroyed sends the instants at which containers with that label go, by name.
func (e engine) destroyed(ctx context.Context, out chan<- destruction) error {
	filter := url.QueryEscape(`{"type":["container"],"event":["destroy"]}`)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://engine/v1.41/events?filters="+filter, nil)
	if err != nil {
		return err
	}
	resp, err := e.http.Do(req)
	if err != nil {
		return err
	}
	go func() {
		defer resp.Body.Close()
		for dec := json.NewDecoder(resp.Body); ; {
			var event struct {
				TimeNano int64
				Actor    struct{ Attributes map[string]string }
			}
			if dec.Decode(&event) != nil {
				return
			}
			select {
			case out <- destruction{event.Actor.Attributes["name"], time.Unix(0, event.TimeNano)}:
			case <-ctx.Done():
				return
			}
		}
	}()
	return nil
}

type destruction struct {
	name string
	at   time.Time
}

// recorder stands between agent and engine and keeps the bodies of creates, in
// order. Measured runs go to the engine directly.
type recorder struct {
	root    string // the agent's
	mu      sync.Mutex
	creates []creation
}

// creation is one create as the agent asked for it.
type creation struct {
	name string
	body []byte
	made []item // what of the root dir it mounts
	id   string // of the container that it made
}

// serve proxies l to the engine's socket until ctx ends.
func (r *recorder) serve(ctx context.Context, l net.Listener, e engine) {
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if err := r.pass(w, req, e); err != nil && req.Context().Err() == nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
		}
	})}
	context.AfterFunc(ctx, func() { srv.Close() })
	srv.Serve(l)
}

// pass hands one request on, and its answer back piece by piece: an event
// stream's headers come long before its first event.
func (r *recorder) pass(w http.ResponseWriter, req *http.Request, e engine) error {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return err
	}
	create := strings.HasSuffix(req.URL.Path, "/containers/create")
	var mounted []item
	if create {
		if mounted, err = made(r.root, body); err != nil {
			return err
		}
	}
	out := req.Clone(req.Context())
	out.RequestURI, out.URL.Scheme, out.URL.Host = "", "http", "engine"
	out.Body, out.ContentLength = http.NoBody, int64(len(body))
	if len(body) > 0 {
		out.Body = io.NopCloser(bytes.NewReader(body))
	}
	resp, err := e.http.Do(out)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	maps.Copy(w.Header(), resp.Header)
	w.WriteHeader(resp.StatusCode)
	if create {
		var answer struct{ ID string }
		data, err := io.ReadAll(resp.Body)
		if err == nil && json.Unmarshal(data, &answer) == nil && answer.ID != "" {
			r.mu.Lock()
			r.creates = append(r.creates, creation{req.URL.Query().Get("name"), body, mounted, answer.ID})
			r.mu.Unlock()
		}
		w.Write(data)
		return err
	}
	flush := http.NewResponseController(w)
	for piece := make([]byte, 32<<10); ; {
		flush.Flush()
		n, err := resp.Body.Read(piece)
		w.Write(piece[:n])
		if err != nil {
			return nil
		}
	}
}

// pods groups what was recorded by pod, each with its sandbox first.
func (r *recorder) pods() []podCalls {
	r.mu.Lock()
	defer r.mu.Unlock()
	var pods []podCalls
	byUID := make(map[string]int)
	for _, c := range r.creates {
		part := strings.Split(c.name, "_") // k8s_<container>_<pod>_<namespace>_<uid>_<attempt>
		i, ok := byUID[part[4]]
		if !ok {
			i = len(pods)
			byUID[part[4]] = i
			pods = append(pods, podCalls{folder: filepath.Join(r.root, "pods", part[4])})
		}
		if part[1] == "POD" {
			pods[i].sandbox = c
		} else {
			pods[i].containers = append(pods[i].containers, c)
		}
	}
	return pods
}

// podCalls is what the engine was asked for to make one pod.
type podCalls struct {
	sandbox    creation
	containers []creation
	later      []creation // attempts after the first
	folder     string     // of the pod, in the root dir
}

// up makes what is mounted and the calls, one after the other, and returns the ids,
// sandbox first.
func (p podCalls) up(ctx context.Context, e engine) ([]string, error) {
	if err := p.prepare(); err != nil {
		return nil, err
	}
	sandbox, err := e.create(ctx, p.sandbox.name, p.sandbox.body)
	if err != nil {
		return nil, err
	}
	if err := e.start(ctx, sandbox); err != nil {
		return nil, err
	}
	ids := []string{sandbox}
	for _, c := range p.containers {
		id, err := p.add(ctx, e, c, sandbox)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// add makes and starts a container of the pod in that sandbox. The body differs
// from the recorded one in the sandbox's id alone.
func (p podCalls) add(ctx context.Context, e engine, c creation, sandbox string) (string, error) {
	id, err := e.create(ctx, c.name, bytes.ReplaceAll(c.body, []byte(p.sandbox.id), []byte(sandbox)))
	if err != nil {
		return "", err
	}
	return id, e.start(ctx, id)
}

// down ends and removes what up made: containers, then the sandbox.
func down(ctx context.Context, e engine, ids []string) error {
	for i := len(ids) - 1; i >= 0; i-- {
		if err := e.stop(ctx, ids[i]); err != nil {
			return err
		}
		if err := e.remove(ctx, ids[i]); err != nil {
			return err
		}
	}
	return nil
}

// upAll brings pods up, that many at a time, and downAll takes them down.
func upAll(ctx context.Context, e engine, pods []podCalls, parallel int) ([][]string, error) {
	ids := make([][]string, len(pods))
	return ids, each(len(pods), parallel, func(i int) (err error) {
		ids[i], err = pods[i].up(ctx, e)
		return err
	})
}

func downAll(ctx context.Context, e engine, pods []podCalls, ids [][]string, parallel int) error {
	return each(len(pods), parallel, func(i int) error {
		return errors.Join(down(ctx, e, ids[i]), pods[i].clear())
	})
}

// each calls f for 0 to n-1, that many at a time.
func each(n, parallel int, f func(i int) error) error {
	errs := make([]error, n)
	next := make(chan int)
	var workers sync.WaitGroup
	for range parallel {
		workers.Go(func() {
			for i := range next {
				errs[i] = f(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	workers.Wait()
	return errors.Join(errs...)
}
