package docker_test

import (
	"cmp"
	"net/http"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/podkeeper/podkeeper/runtime"
	"github.com/podkeeper/podkeeper/runtime/docker"
)

const (
	listImages     = "GET /images/json"
	listContainers = "GET /containers/json"
)

func TestImages(t *testing.T) {
	engine := newScript(t, map[string][]answer{
		listImages: {status(http.StatusOK, `[
			{"Id":"sha256:1","RepoTags":["app:1","app:2"],"RepoDigests":["app@sha256:d"],"Created":1700000000,"Size":10},
			{"Id":"sha256:2","RepoTags":["<none>:<none>"],"RepoDigests":["<none>@<none>"],"Size":20},
			{"Id":"sha256:3","RepoTags":null,"RepoDigests":["app@sha256:e"],"ParentId":"sha256:2"},
			{"Id":"sha256:4","RepoTags":["data:1"]},
			{"Id":"sha256:5","RepoTags":["data:2"]}]`)},
		listContainers: {status(http.StatusOK, `[{"Id":"a","ImageID":"sha256:3","State":"exited","Mounts":[{"Type":"image","Source":"data:1"},{"Type":"bind","Source":"data:2"}]}]`)},
	})
	got, err := engine.Runtime(t, docker.Config{}).Images(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []runtime.StoredImage{
		{ID: "sha256:1", Names: []string{"app:1", "app:2"}, Digests: []string{"app@sha256:d"}, Size: 10, Built: time.Unix(1700000000, 0)},
		{ID: "sha256:2", Size: 20, InUse: true},
		{ID: "sha256:3", Digests: []string{"app@sha256:e"}, InUse: true},
		{ID: "sha256:4", Names: []string{"data:1"}, InUse: true},
		{ID: "sha256:5", Names: []string{"data:2"}},
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := gocmp.Diff([]string{"GET /images/json?all=1", "GET /containers/json?all=1"}, engine.Calls()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

// An engine says 409 of an image that is in use as of one with several names.
func TestRemoveImage(t *testing.T) {
	ok, conflict, missing := status(http.StatusOK, `[]`), status(http.StatusConflict, "conflict"), status(http.StatusNotFound, "no such image")
	const (
		byID   = "DELETE /images/sha256:1"
		names  = `[{"Id":"sha256:1","RepoTags":["a/app:1","b/app:1"],"RepoDigests":["a/app@sha256:d","a/app@sha256:e"]}]`
		digest = `[{"Id":"sha256:1","RepoDigests":["a/app@sha256:d","b/app@sha256:d"]}]`
	)
	unnamed := []string{"DELETE /images/b/app:1?noprune=1", "DELETE /images/a/app@sha256:e?noprune=1"}
	for scene, test := range map[string]struct {
		byID       []answer
		images     string
		containers string
		deletes    map[string][]answer
		want       error
		calls      []string // after the first removal by ID and the lists
	}{
		"it goes":       {byID: []answer{ok}},
		"it is gone":    {byID: []answer{missing}},
		"it is in use":  {byID: []answer{conflict}, images: names, containers: `[{"Id":"a","ImageID":"sha256:1"}]`, want: runtime.ErrInUse},
		"it went since": {byID: []answer{conflict}, images: `[]`},
		"it has several names": {
			byID: []answer{conflict, ok}, images: names, calls: append(unnamed, byID+"?noprune=1"),
			deletes: map[string][]answer{"DELETE /images/b/app:1": {ok}, "DELETE /images/a/app@sha256:e": {missing}},
		},
		"it has several digests only": {
			byID: []answer{conflict, ok}, images: digest, calls: []string{"DELETE /images/b/app@sha256:d?noprune=1", byID + "?noprune=1"},
			deletes: map[string][]answer{"DELETE /images/b/app@sha256:d": {ok}},
		},
		"somebody uses it meanwhile": {
			byID: []answer{conflict}, images: names, want: runtime.ErrInUse,
			deletes: map[string][]answer{"DELETE /images/b/app:1": {ok}, "DELETE /images/a/app@sha256:e": {ok}},
			calls:   append(unnamed, byID+"?noprune=1", "POST /images/sha256:1/tag?repo=docker.io%2Fb%2Fapp&tag=1"),
		},
		"the engine goes away midway": {
			byID: []answer{conflict}, images: names, want: runtime.ErrUnavailable,
			deletes: map[string][]answer{"DELETE /images/b/app:1": {ok}, "DELETE /images/a/app@sha256:e": {lose}},
			calls:   append(unnamed, "POST /images/sha256:1/tag?repo=docker.io%2Fb%2Fapp&tag=1"),
		},
	} {
		t.Run(scene, func(t *testing.T) {
			answers := map[string][]answer{
				byID: test.byID, listImages: {status(http.StatusOK, test.images)},
				listContainers:              {status(http.StatusOK, cmp.Or(test.containers, `[]`))},
				"POST /images/sha256:1/tag": {status(http.StatusCreated, "")},
			}
			for call, list := range test.deletes {
				answers[call] = list
			}
			engine := newScript(t, answers)
			checkClass(t, engine.Runtime(t, docker.Config{}).RemoveImage(t.Context(), "sha256:1"), test.want)
			want := []string{byID + "?noprune=1"}
			if test.images != "" {
				want = append(want, listImages+"?all=1", listContainers+"?all=1")
			}
			if diff := gocmp.Diff(append(want, test.calls...), engine.Calls()); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
}
