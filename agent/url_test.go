package agent_test

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/docker/docker/api/types/events"

	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/server"
)

// serving is a URL of manifests.
type serving struct {
	url  string
	body atomic.Pointer[string]
}

func (s *serving) say(body string) { s.body.Store(&body) }

// serve gives the world a URL as a source, which says body.
func (w *world) serve(body string) *serving {
	w.t.Helper()
	s := new(serving)
	s.say(body)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(*s.body.Load()))
	}))
	w.t.Cleanup(srv.Close)
	s.url = srv.URL + "/pods"
	w.cfg.URLs, w.cfg.HTTPCheck = []string{s.url}, 200*time.Millisecond
	return s
}

// failed: the URL has an error, or has none any more.
func (u *serving) failed(is bool) condition {
	return func(s server.State) bool {
		for _, src := range s.Sources {
			if src.ID == (pod.SourceID{Kind: pod.HTTPSource, Name: u.url}) {
				failed := src.Problem != ""
				for _, o := range src.Origins {
					failed = failed || o.Failed()
				}
				return failed == is
			}
		}
		return false
	}
}

func item(name string) string {
	return "{metadata: {name: " + name + "}, spec: {terminationGracePeriodSeconds: 2, containers: [" + sleeping("c") + "]}}"
}

func podList(items ...string) string {
	text := "apiVersion: v1\nkind: PodList\nitems:\n"
	if len(items) == 0 {
		text = "apiVersion: v1\nkind: PodList\nitems: []\n"
	}
	for _, i := range items {
		text += "- " + i + "\n"
	}
	return text
}

// C128: an empty list is an answer, an empty body is none.
func TestURLThatIsEmpty(t *testing.T) {
	w := newWorld(t)
	u := w.serve(podList(item("p"), item("q")))
	w.write("folder.yaml", manifest("{name: folder}", sleeping("app")))
	w.start()
	w.await("all run", running("p"), running("q"), running("folder"))
	before := w.ids()
	u.say(`{"apiVersion":"v1","kind":"PodList","items":[]}`)
	w.await("p and q are gone", gone("p"), gone("q"))
	u.say(podList(item("p")))
	w.await("p runs again", running("p"))
	again := w.ids()
	u.say("")
	w.await("the empty body is an error", u.failed(true), running("p"))
	w.same(before, "folder-node/POD/0", "folder-node/app/0")
	w.same(again, "p-node/POD/0", "p-node/c/0")
}

// C129: what a body may look like, and that one bad entry costs no pod.
func TestFormsOfABody(t *testing.T) {
	w := newWorld(t)
	u := w.serve(manifest("{name: p}", sleeping("c")))
	w.start()
	w.await("a pod", running("p"))
	before := w.ids()
	u.say(podList(item("p"), item("q")))
	w.await("a list", running("p"), running("q"))
	before["q-node/c/0"] = w.ids()["q-node/c/0"]
	u.say(podList(item("p"), item(`""`)))
	s := w.await("an entry without a name", u.failed(true), running("p"), running("q"))
	if len(s.Pods) != 2 {
		t.Errorf("pods are %s, want p and q", summary(s))
	}
	u.say(podList(item("p"), item("q"), `{metadata: {name: q}, spec: {containers: [{name: other, image: "busybox:stable"}]}}`))
	s = w.await("a name that comes twice", u.failed(false), running("p"), running("q"), func(s server.State) bool {
		o, _ := originOf(s, u.url)
		return mentions(o, "duplicate pod name")
	})
	if status(s, "q", "c") == nil {
		t.Error("the second q won")
	}
	u.say("apiVersion: v1\nkind: List\nitems:\n- " + `{apiVersion: v1, kind: Pod, ` + item("p")[1:] + "\n- {apiVersion: v1, kind: Pod, " + item("q")[1:] + "\n")
	w.await("a list of anything", u.failed(false), running("p"), running("q"), func(s server.State) bool {
		o, _ := originOf(s, u.url)
		return !mentions(o, "duplicate pod name")
	})
	u.say(manifest("{name: p}", sleeping("c")) + "---\n" + manifest("{name: r}", sleeping("c")))
	w.await("documents", running("p"), running("r"), gone("q"))
	w.same(before, "p-node/POD/0", "p-node/c/0")
}

// A pod that moves from a file to the URL is not restarted.
func TestMoveFromFileToURL(t *testing.T) {
	w := newWorld(t)
	text := manifest("{name: web}", sleeping("c"))
	u := w.serve(podList())
	w.write("web.yaml", text)
	w.start()
	w.await("web runs", running("web"), u.failed(false))
	before, h := w.ids(), w.record()
	u.say(text)
	w.await("both supply it", func(s server.State) bool { return len(s.Conflicts) == 1 }, suppliedBy("web", w.dir+"/web.yaml"))
	w.remove("web.yaml")
	w.await("the URL supplies it", suppliedBy("web", u.url), running("web"))
	w.restart()
	w.await("the agent took over", suppliedBy("web", u.url), running("web"))
	w.same(before, "web-node/POD/0", "web-node/c/0")
	if n := h.count(events.ActionDie, "web", "c"); n != 0 {
		t.Errorf("it was ended %d times", n)
	}
}
