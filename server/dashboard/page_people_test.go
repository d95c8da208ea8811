package dashboard_test

import (
	"fmt"
	"strings"
	"testing"
)

// Who uses the page without a mouse, without sight, in the dark, or on a phone.

func usedByKeys(t *testing.T, b *browser) {
	s := newStage(t, false, running("api"), running("db"), running("web"))
	tb := enter(t, b, s, 1280, 800)
	tb.awaitText("tr", "web")
	tb.press("Tab")
	tb.await(`document.activeElement.className === "skip"`)
	tb.press("j")
	tb.press("j")
	tb.press("ArrowDown")
	tb.press("k")
	tb.await(`document.activeElement.innerText === "db"`)
	// The focus can be seen.
	tb.await(`getComputedStyle(document.activeElement).outlineStyle === "solid"`)
	tb.press("Enter")
	tb.await(`document.activeElement.tagName === "H1" && document.activeElement.innerText === "db"`)
	tb.press("Escape")
	tb.await(`document.activeElement.innerText === "db" && document.activeElement.className === "name"`)
	tb.press("/")
	tb.await(`document.activeElement.type === "search"`)
	tb.write("ap")
	tb.await(`document.querySelectorAll("tbody tr").length === 1`)
	tb.press("Escape")
	tb.press("?")
	tb.awaitText("dialog", "next and previous pod")
	tb.press("Escape")
	tb.await(`!document.querySelector("dialog[open]")`)
	for key, view := range map[string]string{"2": "Events", "3": "Sources", "4": "Node"} {
		tb.press(key)
		tb.awaitText("#views a[aria-current]", view)
	}
	tb.press("1")
	tb.awaitText("#views a[aria-current]", "Pods")
	// All that Tab leads to can be left, and the page is left at the end.
	var stops []string
	tb.eval(`document.querySelector(".skip").focus()`, nil)
	for range 40 {
		tb.press("Tab")
		var at string
		tb.eval(`document.activeElement === document.body ? "" : document.activeElement.innerText || document.activeElement.getAttribute("aria-label")`, &at)
		if at == "" && len(stops) > 0 {
			break
		}
		stops = append(stops, at)
	}
	if len(stops) < 15 || len(stops) == 40 {
		t.Errorf("Tab leads to %q", stops)
	}
	tb.quiet()
}

func hasLightAndDark(t *testing.T, b *browser) {
	s := newStage(t, false, running("web"), crashing("worker"))
	tb := enter(t, b, s, 1280, 800)
	tb.awaitText("tr", "web")
	ground := `getComputedStyle(document.body).backgroundColor`
	const light, dark = `"rgb(246, 245, 242)"`, `"rgb(21, 23, 26)"`
	tb.scheme("light")
	tb.await(ground + " === " + light)
	tb.scheme("dark")
	tb.await(ground + " === " + dark)
	tb.screenshot("pods-dark")
	tb.click("#theme", "")
	tb.await(ground + " === " + light) // whatever the system has
	tb.open("about:blank")
	address, _, _ := strings.Cut(s.url, "#")
	tb.open(address)
	tb.await(isLive)
	tb.await(ground + " === " + light)
	tb.click("#theme", "")
	tb.scheme("light")
	tb.await(ground + " === " + dark)
	tb.click("a.name", "worker")
	tb.awaitText("article", "exit code 3")
	tb.screenshot("pod-dark")
	tb.quiet()
}

func fitsPhone(t *testing.T, b *browser) {
	long := crashing("a-pod-with-a-name-that-is-longer-than-any-telephone-is-wide-and-then-some-more-vm")
	long.Pod.Spec.Containers[0].Image = "registry.example.org/" + strings.Repeat("deep/", 20) + "image@sha256:" + strings.Repeat("0", 64)
	s := newStage(t, true, running("web"), long)
	s.happen(long, "BackOff", strings.Repeat("long", 50))
	s.set(func() { s.state.Sources = badSources() })
	tb := enter(t, b, s, 360, 740)
	tb.awaitText("tr", "web")
	fits := func(name string) {
		t.Helper()
		tb.await(`document.scrollingElement.scrollWidth <= 360`)
		tb.screenshot("phone-" + name)
	}
	fits("pods")
	for _, view := range []string{"Events", "Sources", "Node"} {
		tb.click("#views a", view)
		tb.awaitText("#views a[aria-current]", view)
		fits(strings.ToLower(view))
	}
	tb.click("#views a", "Pods")
	tb.click("a.name", "longer")
	tb.awaitText("article", "exit code 3")
	tb.click("summary", "More")
	fits("pod")
	tb.click(".tabs a", "Log")
	log := <-s.opened
	fmt.Fprintln(log.w, strings.Repeat("wide", 200))
	tb.awaitText(".log", "wide")
	fits("log")
	tb.quiet()
}

// All that can be used has a name that is read out.
func namesWhatItHas(t *testing.T, b *browser) {
	s := newStage(t, true, running("web"), crashing("worker"))
	s.happen(crashing("worker"), "BackOff", "back-off")
	s.set(func() { s.state.Sources = badSources() })
	tb := enter(t, b, s, 1280, 800)
	for _, view := range []string{"#/", "#/events", "#/sources", "#/node", "#/pod/default/web", "#/pod/default/web/log/app"} {
		tb.eval(fmt.Sprintf("location.hash = %q", view), nil)
		tb.await(`document.querySelector("main h1")`)
		var tree struct {
			Nodes []struct {
				Ignored    bool
				Role, Name struct{ Value any }
			}
		}
		tb.call("Accessibility.getFullAXTree", object{}, &tree)
		roles := map[string]int{}
		for _, n := range tree.Nodes {
			role := fmt.Sprint(n.Role.Value)
			roles[role]++
			switch role {
			case "button", "link", "searchbox", "combobox", "meter", "navigation", "heading":
				if !n.Ignored && (n.Name.Value == nil || n.Name.Value == "") {
					t.Errorf("%s: a %s has no name", view, role)
				}
			}
		}
		if roles["main"] != 1 || roles["banner"] != 1 || roles["navigation"] == 0 || roles["heading"] == 0 {
			t.Errorf("%s: landmarks %v", view, roles)
		}
	}
	tb.quiet()
}
