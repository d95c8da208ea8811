package docker_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podkeeper/podkeeper/runtime"
	"github.com/podkeeper/podkeeper/runtime/docker"
)

func TestPull(t *testing.T) {
	const pull = "POST /images/create"
	stream := `{"status":"Pulling from library/app","id":"1"}
{"status":"Pulling fs layer","progressDetail":{},"id":"aa"}
{"status":"Already exists","progressDetail":{},"id":"bb"}
{"status":"Downloading","progressDetail":{"current":10,"total":40},"id":"aa"}
{"status":"Download complete","progressDetail":{},"id":"aa"}
{"status":"Extracting","progressDetail":{"current":1,"total":99},"id":"aa"}
{"status":"Pull complete","progressDetail":{},"id":"aa"}
{"status":"Digest: sha256:1"}
`
	for scene, test := range map[string]struct {
		ref    string
		answer answer
		want   error
	}{
		"works":                {"app:1", status(http.StatusOK, stream), nil},
		"unknown":              {"app:1", status(http.StatusNotFound, "manifest unknown"), runtime.ErrImageNotFound},
		"needs a login":        {"app:1", status(http.StatusUnauthorized, "no"), runtime.ErrImageDenied},
		"forbidden":            {"app:1", status(http.StatusForbidden, "no"), runtime.ErrImageDenied},
		"the registry is down": {"app:1", status(http.StatusInternalServerError, "dial tcp"), errAny},
		"fails later":          {"app:1", status(http.StatusOK, stream+`{"errorDetail":{"message":"disk full"},"error":"disk full"}`), errAny},
		"is denied later":      {"app:1", status(http.StatusOK, stream+`{"errorDetail":{"code":401,"message":"no"},"error":"no"}`), runtime.ErrImageDenied},
		"is forbidden later":   {"app:1", status(http.StatusOK, stream+`{"errorDetail":{"code":403,"message":"no"},"error":"no"}`), runtime.ErrImageDenied},
		"is unknown later":     {"app:1", status(http.StatusOK, stream+`{"errorDetail":{"code":404,"message":"no"},"error":"no"}`), runtime.ErrImageNotFound},
		"the engine goes away": {"app:1", lose, runtime.ErrUnavailable},
		"the engine goes away, midway": {"app:1", func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, stream)
			http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}, runtime.ErrUnavailable},
		"nonsense": {"App:1", nil, runtime.ErrInvalid},
	} {
		t.Run(scene, func(t *testing.T) {
			engine := newScript(t, map[string][]answer{pull: {test.answer}})
			var last runtime.PullProgress
			err := engine.Runtime(t, docker.Config{}).Pull(t.Context(), test.ref, runtime.Auth{}, func(p runtime.PullProgress) { last = p })
			checkClass(t, err, test.want)
			if want := (runtime.PullProgress{Image: "app:1", Done: 2, Layers: 2, Bytes: 40, Total: 40}); test.want == nil && last != want {
				t.Errorf("last progress %+v, want %+v", last, want)
			}
		})
	}
}

// A pull may take as long as it likes while it reports, and no longer.
func TestPullThatStalls(t *testing.T) {
	const stall = 200 * time.Millisecond
	report := func(w http.ResponseWriter, times int) {
		for range times {
			fmt.Fprintln(w, `{"status":"Downloading","id":"aa"}`)
			http.NewResponseController(w).Flush()
			<-time.After(stall / 2)
		}
	}
	for scene, test := range map[string]struct {
		answer answer
		want   error
	}{
		"reports":      {func(w http.ResponseWriter, _ *http.Request) { report(w, 5) }, nil},
		"stalls":       {func(w http.ResponseWriter, req *http.Request) { report(w, 1); hang(w, req) }, runtime.ErrUnavailable},
		"never begins": {hang, runtime.ErrUnavailable},
	} {
		t.Run(scene, func(t *testing.T) {
			t.Parallel()
			r := newScript(t, map[string][]answer{"POST /images/create": {test.answer}}).Runtime(t, docker.Config{})
			r.SetPullStall(stall)
			err := r.Pull(t.Context(), "app:1", runtime.Auth{}, nil)
			checkClass(t, err, test.want)
			if want := "pull app:1: engine unavailable: no progress for 200ms"; err != nil && err.Error() != want {
				t.Errorf("people are told %q, want %q", err, want)
			}
		})
	}
}

func TestPullRefs(t *testing.T) {
	const digest = "sha256:0123456789012345678901234567890123456789012345678901234567890123"
	for ref, want := range map[string]string{
		"app":                     "fromImage=docker.io%2Flibrary%2Fapp&tag=latest",
		"127.0.0.1:5000/a/b:2":    "fromImage=127.0.0.1%3A5000%2Fa%2Fb&tag=2",
		"r.example/a@" + digest:   "fromImage=r.example%2Fa&tag=" + strings.Replace(digest, ":", "%3A", 1),
		"r.example/a:1@" + digest: "fromImage=r.example%2Fa&tag=" + strings.Replace(digest, ":", "%3A", 1),
	} {
		engine := newScript(t, map[string][]answer{"POST /images/create": {status(http.StatusOK, "")}})
		if err := engine.Runtime(t, docker.Config{}).Pull(t.Context(), ref, runtime.Auth{}, nil); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"POST /images/create?" + want}, engine.Calls()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", ref, diff)
		}
	}
}
