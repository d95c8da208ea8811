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
	"os"
	"path/filepath"
	"slices"
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
	mu      sync.Mutex
	creates []creation
}

// creation is one create as the agent asked for it.
type creation struct {
	name string
	body []byte
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
	if strings.HasSuffix(req.URL.Path, "/containers/create") {
		var made struct{ ID string }
		data, err := io.ReadAll(resp.Body)
		if err == nil && json.Unmarshal(data, &made) == nil && made.ID != "" {
			r.mu.Lock()
			r.creates = append(r.creates, creation{req.URL.Query().Get("name"), body, made.ID})
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
			pods = append(pods, podCalls{})
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
}

// files returns what the containers mount of the pod's folder, which goes with the
// pod: its hosts file, and those for the messages of their ends.
func (p podCalls) files() ([]string, error) {
	uid := strings.Split(p.sandbox.name, "_")[4]
	var files []string
	for _, c := range slices.Concat(p.containers, p.later) {
		var asked struct {
			HostConfig struct{ Mounts []struct{ Source string } }
		}
		if err := json.Unmarshal(c.body, &asked); err != nil {
			return nil, err
		}
		for _, m := range asked.HostConfig.Mounts {
			if strings.Contains(m.Source, "/pods/"+uid+"/") {
				files = append(files, m.Source)
			}
		}
	}
	return files, nil
}

// prepare makes those files for the bare calls, and clear removes them.
func (p podCalls) prepare() error {
	files, err := p.files()
	if err != nil {
		return err
	}
	for _, file := range files {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, nil, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (p podCalls) clear() error {
	files, err := p.files()
	for _, file := range files {
		before, uid, _ := strings.Cut(file, "/pods/")
		uid, _, _ = strings.Cut(uid, "/")
		err = errors.Join(err, os.RemoveAll(filepath.Join(before, "pods", uid)))
	}
	return err
}

// up makes the calls, one after the other, and returns the ids, sandbox first.
func (p podCalls) up(ctx context.Context, e engine) ([]string, error) {
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

// upAll brings pods up, that many at a time.
func upAll(ctx context.Context, e engine, pods []podCalls, parallel int) ([][]string, error) {
	ids := make([][]string, len(pods))
	errs := make([]error, len(pods))
	next := make(chan int)
	var workers sync.WaitGroup
	for range parallel {
		workers.Go(func() {
			for i := range next {
				ids[i], errs[i] = pods[i].up(ctx, e)
			}
		})
	}
	for i := range pods {
		next <- i
	}
	close(next)
	workers.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return ids, nil
}
