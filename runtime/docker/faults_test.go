package docker_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podkeeper/podkeeper/runtime"
	"github.com/podkeeper/podkeeper/runtime/docker"
	"github.com/podkeeper/podkeeper/runtime/pause"
)

const create = "POST /containers/create"

func appSpec() runtime.ContainerSpec {
	return runtime.ContainerSpec{Identity: identity("app"), Image: "app:1"}
}

func created(id string) answer { return status(http.StatusCreated, `{"Id": "`+id+`"}`) }

// Law 4: a create whose answer was lost is found again, never made twice.
func TestCreate(t *testing.T) {
	name := appSpec().ContainerName()
	other := identity("app")
	other.ContainerHash.Digest = "cccc"
	lookup := "GET /containers/" + name + "/json"
	ours, stale := inspects(t, identity("app"), `{}`), inspects(t, other, `{}`)
	foreign := inspects(t, identity("app"), `{"Id": "foreign", "Config": {"Labels": {"io.podkeeper.root-dir": "/other"}}}`)
	going := inspects(t, identity("app"), `{"State": {"Status": "removing"}}`)
	taken := status(http.StatusConflict, "name in use")
	gone := status(http.StatusNotFound, "no such container")
	const seventh = "_65677190" // from the id "foreign"

	for scene, test := range map[string]struct {
		answers map[string][]answer
		want    string // the id
		wantErr error
		calls   []string
	}{
		"at once": {
			map[string][]answer{create: {created("new")}}, "new", nil,
			[]string{create + "?name=" + name},
		},
		"answer lost, made": {
			map[string][]answer{create: {lose}, lookup: {ours}}, "abc", nil,
			[]string{create + "?name=" + name, lookup},
		},
		"answer lost, not made": {
			map[string][]answer{create: {lose, created("new")}, lookup: {gone}}, "new", nil,
			[]string{create + "?name=" + name, lookup, create + "?name=" + name},
		},
		"answer late, made": {
			map[string][]answer{create: {hang}, lookup: {ours}}, "abc", nil,
			[]string{create + "?name=" + name, lookup},
		},
		"made by an earlier call": {
			map[string][]answer{create: {taken}, lookup: {ours}}, "abc", nil,
			[]string{create + "?name=" + name, lookup},
		},
		"made by an earlier call that is not done": {
			map[string][]answer{create: {taken}, lookup: {gone}}, "", runtime.ErrUnavailable, nil,
		},
		"made by an earlier call, being removed": {
			map[string][]answer{create: {taken}, lookup: {going}}, "", runtime.ErrUnavailable, nil,
		},
		"made by an earlier call from another definition": {
			map[string][]answer{create: {taken}, lookup: {stale}}, "", errAny, nil,
		},
		"the name is somebody else's (law 6)": {
			map[string][]answer{create: {taken, created("new")}, lookup: {foreign}}, "new", nil,
			[]string{create + "?name=" + name, lookup, create + "?name=" + name + seventh},
		},
		"the name is somebody else's, and the answer to the second try is lost": {
			map[string][]answer{
				create: {taken, lose}, lookup: {foreign},
				"GET /containers/" + name + seventh + "/json": {inspects(t, identity("app"), `{"Name": "/`+name+seventh+`"}`)},
			}, "abc", nil,
			[]string{create + "?name=" + name, lookup, create + "?name=" + name + seventh, "GET /containers/" + name + seventh + "/json"},
		},
		"lookup fails too": {
			map[string][]answer{create: {lose}, lookup: {lose}}, "", runtime.ErrUnavailable, nil,
		},
		"the sandbox is missing": {
			map[string][]answer{create: {status(http.StatusNotFound, "x")}, "GET /containers/5a/json": {gone}, "GET /images/app:1/json": {gone}},
			"", runtime.ErrNotFound, nil,
		},
		"the sandbox is missing, says an engine with another code": {
			map[string][]answer{create: {status(http.StatusConflict, "x")}, lookup: {gone}, "GET /containers/5a/json": {gone}},
			"", runtime.ErrUnavailable, nil, // a name in use has the same code
		},
		"the image is missing": {
			map[string][]answer{create: {status(http.StatusNotFound, "x")}, "GET /containers/5a/json": {ours}, "GET /images/app:1/json": {gone}},
			"", runtime.ErrImageNotFound, nil,
		},
		"something else is missing": {
			map[string][]answer{create: {status(http.StatusNotFound, "x")}, "GET /containers/5a/json": {ours}, "GET /images/app:1/json": {status(http.StatusOK, "{}")}},
			"", errAny, nil,
		},
		"refused": {
			map[string][]answer{create: {status(http.StatusBadRequest, "x")}, "GET /containers/5a/json": {ours}, "GET /images/app:1/json": {status(http.StatusOK, "{}")}},
			"", runtime.ErrInvalid, nil,
		},
	} {
		t.Run(scene, func(t *testing.T) {
			t.Parallel()
			engine := newScript(t, test.answers)
			id, err := engine.Runtime(t, docker.Config{CallTimeout: 300 * time.Millisecond}).EnsureContainer(t.Context(), appSpec())
			if id != test.want {
				t.Errorf("got id %q (%v), want %q", id, err, test.want)
			}
			checkClass(t, err, test.wantErr)
			if diff := cmp.Diff(test.calls, engine.Calls()); test.calls != nil && diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
}

// errAny stands for an error of no class.
var errAny = errors.New("an error of no class")

func checkClass(t *testing.T, err, want error) {
	t.Helper()
	if (err == nil) != (want == nil) {
		t.Fatalf("got %v, want %v", err, want)
	}
	for _, class := range []error{runtime.ErrNotFound, runtime.ErrImageNotFound, runtime.ErrImageDenied, runtime.ErrInvalid, runtime.ErrUnavailable} {
		if got := errors.Is(err, class); got != (class == want) {
			t.Errorf("%v: is %q: %t", err, class, got)
		}
	}
}

// The sandbox's calls are create, start and inspect and no other.
func TestSandboxCalls(t *testing.T) {
	spec := runtime.SandboxSpec{Identity: identity(runtime.SandboxName)}
	calls := []string{create + "?name=" + spec.ContainerName(), "POST /containers/abc/start", "GET /containers/abc/json"}
	answers := func() map[string][]answer {
		return map[string][]answer{
			create:                       {created("abc")},
			"POST /containers/abc/start": {status(http.StatusNoContent, "")},
			"GET /containers/abc/json":   {inspects(t, spec.Identity, `{"State": {"Status": "running"}}`)},
		}
	}
	engine := newScript(t, answers())
	r := engine.Runtime(t, docker.Config{})
	for range 2 {
		if _, err := r.EnsureSandbox(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(append(calls, calls...), engine.Calls()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}

	// A pause image that people name is pulled when missing.
	missing := answers()
	missing[create] = []answer{status(http.StatusNotFound, "no image"), created("abc")}
	missing["GET /images/mine:1/json"] = []answer{status(http.StatusNotFound, "no image")}
	missing["POST /images/create"] = []answer{status(http.StatusOK, `{"status": "Pulling from mine"}`)}
	engine = newScript(t, missing)
	if _, err := engine.Runtime(t, docker.Config{PauseImage: "mine:1"}).EnsureSandbox(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	want := append([]string{calls[0], "GET /images/mine:1/json", "POST /images/create?fromImage=docker.io%2Flibrary%2Fmine&tag=1"}, calls...)
	if diff := cmp.Diff(want, engine.Calls()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

// Pods that start beside each other on a new engine load the image once.
func TestPauseImageIsLoadedOnce(t *testing.T) {
	const pods = 3
	ref, _, err := pause.Image("amd64")
	if err != nil {
		t.Fatal(err)
	}
	var missed sync.WaitGroup
	missed.Add(pods)
	lacks := func(w http.ResponseWriter, req *http.Request) { // all find out before any does something about it
		missed.Done()
		missed.Wait()
		status(http.StatusNotFound, "no image")(w, req)
	}
	spec := runtime.SandboxSpec{Identity: identity(runtime.SandboxName)}
	engine := newScript(t, map[string][]answer{
		create:                         {lacks, lacks, lacks, created("abc")},
		"GET /images/" + ref + "/json": {status(http.StatusNotFound, "no image"), status(http.StatusOK, "{}")},
		"POST /images/load":            {status(http.StatusOK, `{"stream": "Loaded image"}`)},
		"POST /containers/abc/start":   {status(http.StatusNoContent, "")},
		"GET /containers/abc/json":     {inspects(t, spec.Identity, `{"State": {"Status": "running"}}`)},
	})
	r := engine.Runtime(t, docker.Config{})
	ended := make(chan error)
	for range pods {
		go func() {
			_, err := r.EnsureSandbox(t.Context(), spec)
			ended <- err
		}()
	}
	for range pods {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	loads := 0
	for _, call := range engine.Calls() {
		if strings.HasPrefix(call, "POST /images/load") {
			loads++
		}
	}
	if loads != 1 {
		t.Errorf("loaded %d times: %v", loads, engine.Calls())
	}

	// An engine that refuses the archive says why.
	engine = newScript(t, map[string][]answer{
		create:                         {status(http.StatusNotFound, "no image")},
		"GET /images/" + ref + "/json": {status(http.StatusNotFound, "no image")},
		"POST /images/load": {func(w http.ResponseWriter, req *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			status(http.StatusOK, `{"errorDetail": {"message": "disk full"}}`)(w, req)
		}},
	})
	_, err = engine.Runtime(t, docker.Config{}).EnsureSandbox(t.Context(), spec)
	checkClass(t, err, errAny)
}

// One hung container costs its own caller a deadline, and nobody else anything.
func TestHungInspect(t *testing.T) {
	engine := newScript(t, map[string][]answer{
		"GET /containers/hung/json": {hang},
		"GET /containers/abc/json":  {inspects(t, identity("app"), `{}`)},
	})
	r := engine.Runtime(t, docker.Config{CallTimeout: 300 * time.Millisecond})
	ended := make(chan error)
	go func() {
		_, err := r.Inspect(t.Context(), "hung")
		ended <- err
	}()
	if _, err := r.Inspect(t.Context(), "abc"); err != nil {
		t.Error(err)
	}
	began := time.Now()
	checkClass(t, <-ended, runtime.ErrUnavailable)
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the hung one took %v, with a deadline of 300 ms", took)
	}
}

// New needs no engine; each call says so until there is one.
func TestEngineDown(t *testing.T) {
	engine := newScript(t, map[string][]answer{"GET /containers/json": {status(http.StatusOK, "[]")}})
	r := engine.Runtime(t, docker.Config{})
	engine.Close()
	down := func(verb string, err error) {
		t.Helper()
		if !errors.Is(err, runtime.ErrUnavailable) {
			t.Errorf("%s: %v, want ErrUnavailable", verb, err)
		}
	}
	ctx := t.Context()
	_, err := r.List(ctx)
	down("list", err)
	_, err = r.Inspect(ctx, "abc")
	down("inspect", err)
	_, err = r.EnsureSandbox(ctx, runtime.SandboxSpec{Identity: identity("POD")})
	down("sandbox", err)
	_, err = r.EnsureContainer(ctx, appSpec())
	down("create", err)
	_, err = r.Image(ctx, "app:1")
	down("image", err)
	down("start", r.Start(ctx, "abc"))
	down("stop", r.Stop(ctx, "abc", 0))
	down("remove", r.Remove(ctx, "abc"))
	down("update", r.UpdateResources(ctx, "abc", runtime.Resources{}))
	down("pull", r.Pull(ctx, "app:1", runtime.Auth{}, nil))
	_, err = r.Exec(ctx, "abc", []string{"true"}, 1)
	down("exec", err)
	_, err = r.LogTail(ctx, "abc", 1, 1)
	down("log tail", err)
	_, err = r.Features(ctx)
	down("features", err)
	down("watch", r.Watch(ctx, func() { t.Error("ready") }, nil))
}

// An engine that was replaced by one that no longer speaks the old version is
// found out when its event stream ends.
func TestVersionIsNegotiatedAgain(t *testing.T) {
	var paths []string
	note := func(body string) answer {
		return func(w http.ResponseWriter, req *http.Request) {
			paths = append(paths, req.URL.Path)
			fmt.Fprint(w, body)
		}
	}
	engine := newScript(t, map[string][]answer{"GET /containers/json": {note("[]")}, "GET /events": {note("")}})
	r := engine.Runtime(t, docker.Config{})
	list := func() {
		t.Helper()
		if _, err := r.List(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	list()
	list()
	checkClass(t, r.Watch(t.Context(), func() {}, nil), runtime.ErrUnavailable)
	engine.mu.Lock()
	engine.API = "1.44"
	engine.mu.Unlock()
	list()
	want := []string{"/v1.41/containers/json", "/v1.41/containers/json", "/v1.41/events", "/v1.44/containers/json"}
	if diff := cmp.Diff(want, paths); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What somebody else removes at the same time is waited for.
func TestRemoveInProgress(t *testing.T) {
	const conflict, look, wait = "DELETE /containers/abc", "GET /containers/abc/json", "POST /containers/abc/wait"
	busy := status(http.StatusConflict, "in progress")
	known := inspects(t, identity("app"), `{"State": {"Status": "exited"}}`)
	removing := inspects(t, identity("app"), `{"State": {"Status": "removing"}}`)
	gone := status(http.StatusNotFound, "gone")
	for scene, test := range map[string]struct {
		answers map[string][]answer
		want    error
	}{
		"and goes while we wait": {map[string][]answer{conflict: {busy}, look: {known, removing}, wait: {status(http.StatusOK, `{"StatusCode": 0}`)}}, nil},
		"and is gone already":    {map[string][]answer{conflict: {busy}, look: {known, gone}}, nil},
		"and is gone then":       {map[string][]answer{conflict: {busy}, look: {known, removing}, wait: {gone}}, nil},
		"and never goes":         {map[string][]answer{conflict: {busy}, look: {known, removing}, wait: {hang}}, runtime.ErrUnavailable},
		"no, it runs":            {map[string][]answer{conflict: {busy}, look: {known, inspects(t, identity("app"), `{"State": {"Status": "running"}}`)}}, errAny},
	} {
		t.Run(scene, func(t *testing.T) {
			t.Parallel()
			engine := newScript(t, test.answers)
			checkClass(t, engine.Runtime(t, docker.Config{CallTimeout: 300 * time.Millisecond}).Remove(t.Context(), "abc"), test.want)
		})
	}
}

// Law 6: what we do not know to be ours is looked at before anything is done.
func TestForeignIsNotTouched(t *testing.T) {
	foreign := inspects(t, identity("app"), `{"Name": "/somebody"}`)
	engine := newScript(t, map[string][]answer{"GET /containers/abc/json": {foreign}})
	r := engine.Runtime(t, docker.Config{})
	r.Start(t.Context(), "abc")
	r.Stop(t.Context(), "abc", 0)
	r.Remove(t.Context(), "abc")
	r.UpdateResources(t.Context(), "abc", runtime.Resources{})
	for _, call := range engine.Calls() {
		if call != "GET /containers/abc/json" {
			t.Errorf("asked %s", call)
		}
	}
}

// What came from a listing is known to be ours: no inspect before a verb. A
// later listing without it ends that.
func TestListedIsKnown(t *testing.T) {
	id := identity("app")
	labels := strings.Builder{}
	for key, value := range id.Labels("/r") {
		fmt.Fprintf(&labels, `, %q: %q`, key, value)
	}
	entry := fmt.Sprintf(`[{"Id": "abc", "Names": ["/other/alias", "/%s"], "State": "exited", "Labels": {%s}}, {"Id": "foreign", "Names": ["/somebody"], "State": "running", "Labels": {%s}}]`,
		id.ContainerName(), labels.String()[2:], labels.String()[2:])
	engine := newScript(t, map[string][]answer{
		"GET /containers/json":       {status(http.StatusOK, entry), status(http.StatusOK, "[]")},
		"POST /containers/abc/start": {status(http.StatusNotModified, "")},
		"GET /containers/abc/json":   {status(http.StatusNotFound, "gone")},
	})
	r := engine.Runtime(t, docker.Config{})
	got, err := r.List(t.Context())
	want := []runtime.Summary{{ID: "abc", Identity: id, State: runtime.Exited}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Fatalf("%v (-want +got):\n%s", err, diff)
	}
	if err := r.Start(t.Context(), "abc"); err != nil {
		t.Error(err)
	}
	if _, err := r.List(t.Context()); err != nil {
		t.Error(err)
	}
	checkClass(t, r.Start(t.Context(), "abc"), runtime.ErrNotFound)
	filter := "?all=1&filters=%7B%22label%22%3A%7B%22io.podkeeper.root-dir%3D%2Fr%22%3Atrue%7D%7D"
	calls := []string{"GET /containers/json" + filter, "POST /containers/abc/start", "GET /containers/json" + filter, "GET /containers/abc/json"}
	if diff := cmp.Diff(calls, engine.Calls()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func TestStopRoundsUp(t *testing.T) {
	for grace, want := range map[time.Duration]string{0: "0", -time.Second: "0", time.Millisecond: "1", 30 * time.Second: "30", 1500 * time.Millisecond: "2"} {
		engine := newScript(t, map[string][]answer{
			"GET /containers/abc/json":  {inspects(t, identity("app"), `{}`)},
			"POST /containers/abc/stop": {status(http.StatusNoContent, "")},
		})
		if err := engine.Runtime(t, docker.Config{}).Stop(t.Context(), "abc", grace); err != nil {
			t.Fatal(err)
		}
		if calls := engine.Calls(); calls[len(calls)-1] != "POST /containers/abc/stop?t="+want {
			t.Errorf("%v: asked %v, want t=%s", grace, calls, want)
		}
	}
}

// An update says each limit, since a zero would leave it as it was.
func TestUpdateLiftsLimits(t *testing.T) {
	engine := newScript(t, map[string][]answer{
		"GET /containers/abc/json":    {inspects(t, identity("app"), `{}`)},
		"POST /containers/abc/update": {status(http.StatusOK, "{}")},
	})
	if err := engine.Runtime(t, docker.Config{}).UpdateResources(t.Context(), "abc", runtime.Resources{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"CpuShares":1024,`, `"CpuQuota":-1,`, `"Memory":9223372036854771712,`, `"MemorySwap":9223372036854771712,`} {
		if !strings.Contains(string(engine.Body()), want) {
			t.Errorf("body lacks %s: %s", want, engine.Body())
		}
	}
}

// A cancelled call is the caller's doing: it says nothing about the engine.
func TestCancelled(t *testing.T) {
	engine := newScript(t, map[string][]answer{"POST /images/create": {hang}, "GET /containers/abc/json": {hang}})
	r := engine.Runtime(t, docker.Config{})
	if _, err := r.Image(t.Context(), "x"); err == nil {
		t.Fatal("the script has no such image")
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	go func() { ended <- r.Pull(ctx, "app:1", runtime.Auth{}, nil) }()
	go func() { _, err := r.Inspect(ctx, "abc"); ended <- err }()
	cancel()
	for range 2 {
		if err := <-ended; !errors.Is(err, context.Canceled) || errors.Is(err, runtime.ErrUnavailable) {
			t.Errorf("got %v, want context.Canceled and no class", err)
		}
	}
}
