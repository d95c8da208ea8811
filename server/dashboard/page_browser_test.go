package dashboard_test

import (
	"fmt"
	"io"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/server"
)

// The page as a person has it, in a real browser.
func TestBrowser(t *testing.T) {
	b := startBrowser(t)
	for name, test := range map[string]func(t *testing.T, b *browser){
		"logs in once":             logsInOnce,
		"follows the pods":         followsPods,
		"follows a log":            followsLog,
		"follows the next attempt": followsNextAttempt,
		"is used by keys alone":    usedByKeys,
		"has light and dark":       hasLightAndDark,
		"fits a phone":             fitsPhone,
		"waits for the agent":      waitsForAgent,
		"says that it has ended":   saysThatItEnded,
		"acts where it may":        actsWhereItMay,
		"runs no foreign script":   runsNoForeignScript,
		"shows many pods":          showsManyPods,
		"names what it has":        namesWhatItHas,
		"shows sources and events": showsSourcesAndEvents,
	} {
		t.Run(name, func(t *testing.T) { test(t, b) })
	}
}

// isLive holds once the page shows something.
const isLive = `document.querySelector("#link").innerText === "live"`

// enter opens the page of a stage in a window of its own.
func enter(t *testing.T, b *browser, s *stage, width, height int) *tab {
	t.Helper()
	tb := b.newTab(t, width, height)
	tb.open(s.url)
	tb.await(isLive)
	return tb
}

func logsInOnce(t *testing.T, b *browser) {
	s := newStage(t, false, running("web"))
	tb := enter(t, b, s, 1280, 800)
	tb.awaitText("tr", "web")
	var at string
	tb.eval("location.href", &at)
	if address, _, _ := strings.Cut(s.url, "#"); at != address {
		t.Errorf("after the login the address is %s", at)
	}
	tb.open(at) // again: the session holds
	tb.awaitText("tr", "web")
	tb.quiet()

	other := b.newTab(t, 1280, 800)
	other.open(s.url)
	other.awaitText("#say", "used before")
	other.screenshot("login")
	other.eval("document.querySelector('#token').focus()", nil)
	other.write("wrong")
	other.press("Enter")
	other.awaitText("#say", "is not valid")
	other.quiet("403")
}

func followsPods(t *testing.T, b *browser) {
	s := newStage(t, false, running("web"), crashing("worker"))
	tb := enter(t, b, s, 1280, 800)
	tb.awaitText("tr.bad", "back-off 40s restarting")
	tb.awaitText("tr.good .figure", "MiB")
	tb.screenshot("pods")
	// What is in trouble comes first, by its name otherwise.
	tb.await(`[...document.querySelectorAll("a.name")].map(a => a.innerText).join() === "worker,web"`)
	tb.eval(`document.querySelector("tr.good").mark = true`, nil)
	s.set(func() { s.state.Pods[1] = running("worker") })
	tb.await(`document.querySelectorAll("tr.good").length === 2`)
	tb.await(`[...document.querySelectorAll("a.name")].map(a => a.innerText).join() === "web,worker"`)
	tb.await(`document.querySelector("tbody tr").mark`) // the row is the one that it was
	s.set(func() { s.state.Pods = s.state.Pods[:1] })
	tb.await(`document.querySelectorAll("tbody tr").length === 1`)
	tb.await(`document.querySelector("#count-pods").innerText === "1"`)
	s.set(func() { s.state.Pods = nil })
	tb.awaitText(".none", "No pods yet")
	tb.quiet()
}

func followsLog(t *testing.T, b *browser) {
	s := newStage(t, false, running("web"))
	tb := enter(t, b, s, 1280, 800)
	tb.click("a.name", "web")
	tb.awaitText("article", "busybox:stable")
	tb.awaitText("h1", "web")
	tb.awaitText(".plot .figure", "MiB")
	tb.screenshot("pod")
	tb.click(".tabs a", "Log")
	log := <-s.opened
	if log.of != "default/web/app" || log.how.Previous || log.how.Tail != 500 {
		t.Errorf("opened %s %+v", log.of, log.how)
	}
	for i := range 300 {
		fmt.Fprintf(log.w, "line %d \x1b[31mred\x1b[0m <b>bold</b>\n", i)
	}
	tb.awaitText(".log", "line 299 red <b>bold</b>")
	tb.await(`(box => box.scrollHeight - box.scrollTop - box.clientHeight < 2)(document.querySelector(".log"))`)
	tb.screenshot("log")
	// Scrolled back, it stays there, and a button leads to the end.
	tb.eval(`document.querySelector(".log").scrollTop = 0`, nil)
	tb.awaitText(".newest", "Newest")
	fmt.Fprintln(log.w, "one more")
	tb.await(`document.querySelector(".log").innerText.includes("one more") && document.querySelector(".log").scrollTop === 0`)
	tb.click(".newest", "Newest")
	tb.await(`document.querySelector(".newest").hidden`)
	tb.eval(`document.querySelector(".log-part input").focus()`, nil)
	tb.write("line 7")
	tb.await(`document.querySelectorAll(".log > div:not([hidden])").length === 11`)
	tb.click("button", "Times")
	log = <-s.opened
	if !log.how.Timestamps {
		t.Errorf("opened %+v", log.how)
	}
	tb.click("button", "Previous attempt")
	log = <-s.opened
	if !log.how.Previous {
		t.Errorf("opened %+v", log.how)
	}
	fmt.Fprint(log.w, "line 7 its last words")
	log.w.Close()
	tb.awaitText(".log", "its last words")
	tb.awaitText(".log-part", "This attempt has ended")
	// Whoever leaves lets go of the log.
	tb.click("button", "Previous attempt")
	log = <-s.opened
	tb.press("Escape")
	tb.awaitText("table", "web")
	if _, err := io.Copy(log.w, endless{}); err == nil {
		t.Error("the log is still read")
	}
	tb.quiet()
}

// When a container is started anew, its log begins anew.
func followsNextAttempt(t *testing.T, b *browser) {
	s := newStage(t, false, running("web"))
	tb := enter(t, b, s, 1280, 800)
	tb.eval(`location.hash = "#/pod/default/web/log/app"`, nil)
	log := <-s.opened
	fmt.Fprintln(log.w, "its last words")
	tb.awaitText(".log", "its last words")
	log.w.Close()
	tb.awaitText(".log-part", "The log has ended")
	s.set(func() { s.state.Pods = []server.Pod{crashing("web")} })
	tb.awaitText(".pod .status", "CrashLoopBackOff")
	tb.awaitText(".log", "its last words") // they can still be read
	s.set(func() {
		next := running("web")
		next.Pod.Status.ContainerStatuses[0].RestartCount = 5
		s.state.Pods = []server.Pod{next}
	})
	log = <-s.opened
	fmt.Fprintln(log.w, "up again")
	tb.awaitText(".log", "up again")
	tb.await(`!document.querySelector(".log").innerText.includes("last words")`)
	// One that breaks off is taken up again.
	log.w.CloseWithError(io.ErrUnexpectedEOF)
	log = <-s.opened
	fmt.Fprintln(log.w, "and again")
	tb.awaitText(".log", "and again")
	tb.quiet("net::ERR_INCOMPLETE_CHUNKED_ENCODING")
}

// endless is read until the other end is closed.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '\n'
	}
	return len(p), nil
}

func waitsForAgent(t *testing.T, b *browser) {
	s := newStage(t, false, running("web"))
	tb := enter(t, b, s, 1280, 800)
	tb.awaitText("tr", "web")
	s.set(func() { s.away = true })
	tb.awaitText("#banner", "The agent does not answer")
	tb.awaitText("tr", "web") // as it was
	tb.screenshot("away")
	s.set(func() {
		s.away = false
		s.state.Revision = 0 // another agent counts anew
		s.state.Pods = []server.Pod{running("db")}
	})
	tb.await(`document.querySelector("#banner").hidden`)
	tb.awaitText("tr", "db")
	tb.await(`document.querySelectorAll("tbody tr").length === 1`)
	s.set(func() { s.state.Online = false })
	tb.awaitText("#banner", "The container engine does not answer")
	tb.quiet()
}

func saysThatItEnded(t *testing.T, b *browser) {
	s := newStage(t, false, running("web"))
	tb := enter(t, b, s, 1280, 800)
	tb.awaitText("tr", "web")
	s.stop()
	tb.awaitText("#banner", "Run podkeeper dashboard again")
	tb.awaitText("tr", "web")
	tb.quiet("net::ERR")
}

func actsWhereItMay(t *testing.T, b *browser) {
	s := newStage(t, true, running("web"))
	tb := enter(t, b, s, 1280, 800)
	tb.click("a.name", "web")
	tb.click("button", "Restart")
	tb.awaitText("dialog", "Restart web?")
	tb.screenshot("restart")
	tb.press("Escape")
	tb.await(`!document.querySelector("dialog[open]")`)
	tb.click("button", "Stop")
	tb.click("dialog button", "Stop")
	if got := <-s.done; got != "stop default/web" {
		t.Errorf("done: %s", got)
	}
	tb.awaitText(".actions", "The agent has taken it on")
	s.set(func() { s.state.Pods[0].Held = metav1.Now().Time })
	tb.click("button", "Start")
	if got := <-s.done; got != "start default/web" {
		t.Errorf("done: %s", got)
	}
	tb.await(`![...document.querySelectorAll("button")].some(b => b.innerText === "Stop")`)
	tb.quiet()

	s = newStage(t, false, running("web"))
	tb = enter(t, b, s, 1280, 800)
	tb.click("a.name", "web")
	tb.awaitText("article", "app")
	tb.await(`![...document.querySelectorAll("button")].some(b => /Restart|Stop/.test(b.innerText) && b.checkVisibility())`)
	tb.quiet()
}

// The browser itself keeps to the policy.
func runsNoForeignScript(t *testing.T, b *browser) {
	s := newStage(t, false, running("web"))
	tb := enter(t, b, s, 1280, 800)
	for name, js := range map[string]string{
		"a script in the page": `const s = document.createElement("script"); s.append("window.ran = true"); document.body.append(s)`,
		"text as markup":       `document.body.insertAdjacentHTML("beforeend", "<img src=x onerror='window.ran = true'>")`,
		"text as code":         `setTimeout("window.ran = true")`,
		"a style in the page":  `document.body.setAttribute("style", "display: none")`,
	} {
		tb.eval("(() => { try { "+js+" } catch {} })()", nil)
		tb.await("window.ran === undefined")
		if name == "a style in the page" {
			tb.await(`getComputedStyle(document.body).display !== "none"`)
		}
	}
	tb.eval(`new Promise(done => fetch("http://127.0.0.1:1/").then(() => done("went"), () => done("refused")))`, nil)
	tb.mu.Lock()
	defer tb.mu.Unlock()
	said := strings.Join(tb.complaints, "\n")
	for _, want := range []string{"TrustedScript", "TrustedHTML", "style-src", "connect-src"} {
		if !strings.Contains(said, want) {
			t.Errorf("the browser does not complain about %s: %s", want, said)
		}
	}
}

func showsManyPods(t *testing.T, b *browser) {
	var pods []server.Pod
	for i := range 200 {
		pods = append(pods, running(fmt.Sprintf("pod-%03d", i)))
	}
	s := newStage(t, false, pods...)
	tb := enter(t, b, s, 1280, 800)
	tb.await(`document.querySelectorAll("tbody tr").length === 200`)
	// A change of one pod makes no row anew, and none is moved.
	tb.eval(`for (const row of document.querySelectorAll("tbody tr")) row.mark = true;
		window.touched = 0;
		new MutationObserver(list => { for (const m of list) window.touched += m.addedNodes.length + m.removedNodes.length })
			.observe(document.querySelector("tbody"), {childList: true})`, nil)
	s.set(func() {
		s.state.Pods = append([]server.Pod{}, s.state.Pods...)
		changed := running("pod-100")
		changed.Pod.Status.Conditions[0].Status = v1.ConditionFalse
		s.state.Pods[100] = changed
	})
	tb.await(`document.querySelector("tr.busy a").innerText === "pod-100"`)
	tb.await(`window.touched === 0 && [...document.querySelectorAll("tbody tr")].every(row => row.mark)`)
	tb.screenshot("many")
	tb.quiet()
}

func badSources() []pod.Source {
	id := pod.SourceID{Kind: pod.FileSource, Name: "/m"}
	return []pod.Source{{
		ID: id, Spoken: true, Present: true, Skipped: []pod.Skipped{{Path: "/m/web.yaml~", Reason: "a backup"}},
		Origins: []pod.OriginStatus{{
			Origin: pod.Origin{Source: id, Name: "/m/web.yaml"}, Stale: true, Pods: []pod.Key{{Namespace: "default", Name: "web"}},
			Problems: []pod.Problem{{Severity: pod.Error, File: "/m/web.yaml", Line: 18, Column: 5, Field: "spec.containers", Message: "is not valid YAML"}},
		}},
	}, {ID: pod.SourceID{Kind: pod.HTTPSource, Name: "https://example.org/pods"}, Problem: "connection refused"}}
}

func showsSourcesAndEvents(t *testing.T, b *browser) {
	s := newStage(t, false, running("web"))
	s.set(func() { s.state.Sources = badSources() })
	s.happen(running("web"), "Unhealthy", "Readiness probe failed")
	tb := enter(t, b, s, 1280, 800)
	tb.awaitText("#count-sources", "2")
	tb.click("#views a", "Sources")
	tb.awaitText(".problems li", "/m/web.yaml:18:5")
	tb.awaitText(".problems li", "spec.containers: is not valid YAML")
	tb.awaitText(".origin", "last good version")
	tb.awaitText(".source", "connection refused")
	tb.screenshot("sources")
	tb.click("#views a", "Events")
	tb.awaitText(".events li", "Readiness probe failed")
	s.happen(running("web"), "Killing", "Stopping container app")
	tb.await(`document.querySelector(".events li .reason").innerText.includes("Killing")`)
	tb.screenshot("events")
	tb.click(".events a", "web")
	tb.awaitText(".events", "Stopping container app")
	tb.quiet()
}
