package agent_test

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/podkeeper/podkeeper/server"
)

// logs reads a log to its end.
func (w *world) logs(container string, query url.Values) (string, error) {
	body, err := server.NewClient(w.cfg.Socket).Get(w.t.Context(), "/containerLogs/default/"+container, query)
	if err != nil {
		return "", err
	}
	defer body.Close()
	text, err := io.ReadAll(body)
	return string(text), err
}

func counted(from, to int) string {
	var all strings.Builder
	for n := from; n < to; n++ {
		fmt.Fprintf(&all, "line %d of what is written\n", n)
	}
	return all.String()
}

// C126: log files that are rotated every few lines, by the engine itself, lose and
// repeat nothing for those who follow, who read it later, and who ask for its end.
func TestLogsThroughRotation(t *testing.T) {
	w := newWorld(t)
	w.cfg.Docker.LogMaxSize, w.cfg.Docker.LogMaxFiles = 4<<10, 200
	const lines = 2000
	w.write("chatty.yaml", manifest("{name: chatty}", fmt.Sprintf(
		`{name: app, image: "busybox:stable", command: ["sh", "-c", "until [ -e /go/go ]; do usleep 20000; done; i=0; while [ $i -lt %d ]; do echo line $i of what is written; i=$((i+1)); done; until [ -e /go/end ]; do usleep 20000; done"], volumeMounts: [{name: go, mountPath: /go}]}`, lines))+
		"  restartPolicy: Never\n  volumes: [{name: go, hostPath: {path: "+w.path("go")+"}}]\n")
	mkdir(t, w.path("go"))
	w.start()
	w.await("it runs", running("chatty"))
	id := w.ids()["chatty-node/app/0"]
	var followers sync.WaitGroup
	for range 5 {
		followers.Go(func() {
			if got, err := w.logs("chatty/app", url.Values{"follow": {"true"}}); got != counted(0, lines) || err != nil {
				t.Errorf("a follower got %d lines, %v", strings.Count(got, "\n"), err)
			}
		})
	}
	writeFile(t, w.path("go/go"), "")
	// Of what is still in its pipe ten seconds after its end the engine writes nothing.
	w.poll("the engine has written all of it", func() bool {
		got, err := w.logs("chatty/app", url.Values{"tailLines": {"1"}})
		return err == nil && got == counted(lines-1, lines)
	})
	writeFile(t, w.path("go/end"), "")
	followers.Wait()
	files, err := filepath.Glob("/var/lib/docker/containers/" + id + "/*-json.log.*")
	if err != nil || len(files) < 20 {
		t.Errorf("it was rotated into %d files, %v", len(files), err)
	}
	for query, want := range map[string]string{
		"":                                 counted(0, lines),
		"tailLines=700":                    counted(lines-700, lines),
		"tailLines=1&stream=Stderr":        "",
		"limitBytes=10":                    counted(0, 1)[:10],
		"sinceSeconds=86400&tailLines=900": counted(lines-900, lines),
		"sinceTime=2099-01-01T00:00:00Z":   "",
	} {
		values, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := w.logs("chatty-node/app", values); got != want || err != nil {
			t.Errorf("%s: got %d lines, %v, want %d", query, strings.Count(got, "\n"), err, strings.Count(want, "\n"))
		}
	}
}

func TestLogsOfTheAttemptBefore(t *testing.T) {
	w := newWorld(t)
	w.write("crash.yaml", manifest("{name: crash}", `{name: app, image: "busybox:stable", command: ["sh", "-c", "echo $((`+"$(cat /n/n) + 1))"+` | tee /n/n; printf unfinished >&2; exit 1"], volumeMounts: [{name: count, mountPath: /n}]}`,
		`{name: none, image: "podkeeper.invalid/none:1", imagePullPolicy: Never}`)+"  volumes: [{name: count, hostPath: {path: "+w.path("n")+"}}]\n")
	mkdir(t, w.path("n"))
	writeFile(t, w.path("n/n"), "0\n")
	w.start()
	w.await("it failed", func(s server.State) bool {
		p := find(s, "crash")
		if p == nil || len(p.Pod.Status.ContainerStatuses) == 0 {
			return false
		}
		c := p.Pod.Status.ContainerStatuses[0]
		return c.State.Waiting != nil && c.LastTerminationState.Terminated != nil
	})
	count, err := os.ReadFile(w.path("n/n"))
	if err != nil {
		t.Fatal(err)
	}
	want := string(count)
	// Like a kubelet: of one that waits for its next attempt both are the last one.
	for _, previous := range []string{"true", "false"} {
		got, err := w.logs("crash/app", url.Values{"previous": {previous}, "timestamps": {"false"}})
		if got != want+"unfinished" && got != "unfinished\n"+want || err != nil {
			t.Errorf("previous=%s: %q, %v", previous, got, err)
		}
	}
	for path, want := range map[string]string{
		"crash/none":                `400 container "none" in pod "crash-node" is waiting to start: ErrImageNeverPull`,
		"crash/none?previous=true":  `400 previous terminated container "none" in pod "crash-node" not found`,
		"crash/nobody":              `404 container "nobody" not found in pod "crash-node"`,
		"nobody/app":                `404 pod "nobody" not found in namespace "default"`,
		"crash/app?tailLines=often": `400 tailLines: want a whole number from 0 on, not "often"`,
	} {
		path, query, _ := strings.Cut(path, "?")
		values, _ := url.ParseQuery(query)
		_, err := w.logs(path, values)
		refused, ok := err.(*server.StatusError)
		if !ok || strconv.Itoa(refused.Code)+" "+refused.Message != want {
			t.Errorf("%s: %v, want %s", path, err, want)
		}
	}
}

// A thousand followers of one container, of whom half vanish in the midst: each of the
// others has every line, and nothing is left of any of them.
func TestAThousandFollowers(t *testing.T) {
	w := newWorldAlone(t)
	w.write("pod.yaml", manifest("{name: pod}", `{name: app, image: "busybox:stable", command: ["sh", "-c", "echo first; until [ -e /go/go ]; do usleep 20000; done; echo last"], volumeMounts: [{name: go, mountPath: /go}]}`)+
		"  restartPolicy: Never\n  volumes: [{name: go, hostPath: {path: "+w.path("go")+"}}]\n")
	mkdir(t, w.path("go"))
	w.start()
	w.await("it runs", running("pod"))
	if _, err := w.logs("pod/app", nil); err != nil { // what is made once, is
		t.Fatal(err)
	}
	goroutines, files := goruntime.NumGoroutine(), descriptors(t)
	const all = 1000
	var followers sync.WaitGroup
	began := make(chan struct{}, all)
	gone, vanish := context.WithCancel(t.Context())
	for n := range all {
		ctx := t.Context()
		if n%2 == 0 {
			ctx = gone
		}
		followers.Go(func() {
			got, err := followed(ctx, w.cfg.Socket, func() { began <- struct{}{} })
			if n%2 == 1 && (got != "first\nlast\n" || err != nil) {
				t.Errorf("follower %d got %q, %v", n, got, err)
			}
		})
	}
	for range all {
		<-began
	}
	t.Logf("%d goroutines, %d descriptors with %d followers and their clients", goruntime.NumGoroutine()-goroutines, descriptors(t)-files, all)
	vanish()
	writeFile(t, w.path("go/go"), "")
	followers.Wait()
	w.poll("nothing is left of them", func() bool {
		return goruntime.NumGoroutine() <= goroutines+5 && descriptors(t) <= files+5
	})
}

func followed(ctx context.Context, socket string, began func()) (string, error) {
	body, err := server.NewClient(socket).Get(ctx, "/containerLogs/default/pod/app", url.Values{"follow": {"true"}})
	if err != nil {
		began()
		return "", err
	}
	defer body.Close()
	first := make([]byte, len("first\n"))
	_, err = io.ReadFull(body, first)
	began()
	if err != nil {
		return "", err
	}
	rest, err := io.ReadAll(body)
	return string(first) + string(rest), err
}

func descriptors(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}
