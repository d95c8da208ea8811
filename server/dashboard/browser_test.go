package dashboard_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// The browser is driven by the DevTools protocol over a pair of pipes: JSON messages
// with a zero byte after each. That is little enough to need no library, of which the
// usual one comes with a megabyte of generated types.

// patience bounds every wait for the browser.
const patience = 30 * time.Second

// browser is a headless Chromium that ends with the test.
type browser struct {
	to *os.File

	mu      sync.Mutex
	last    int
	replies map[int]chan cdpMessage
	tabs    map[string]*tab // by session
	gone    chan struct{}   // closed when it says nothing any more
}

type cdpMessage struct {
	ID        int             `json:"id,omitempty"`
	SessionID string          `json:"sessionId,omitempty"`
	Method    string          `json:"method,omitempty"`
	Params    json.RawMessage `json:"params,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"`
	Error     *cdpError       `json:"error,omitempty"`
}

// cdpError is a call that the browser refused.
type cdpError struct {
	Message string `json:"message"`
}

func (e *cdpError) Error() string { return e.Message }

func startBrowser(t *testing.T) *browser {
	t.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatalf("%v: scripts/test-tools.sh installs it", err)
	}
	fromUs, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	from, fromIt, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	cmd := exec.Command(program, "--headless", "--remote-debugging-pipe", "--user-data-dir="+filepath.Join(home, "profile"),
		"--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--no-default-browser-check", "--disable-extensions",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
		// Whoever runs the tests may be root, and need not have user namespaces.
		"--no-sandbox", "about:blank")
	cmd.Env = append(os.Environ(), "HOME="+home)
	cmd.ExtraFiles = []*os.File{fromUs, fromIt} // 3 and 4
	// Its helpers go with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	var said bytes.Buffer
	cmd.Stderr = &said
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	fromUs.Close()
	fromIt.Close()
	b := &browser{to: to, replies: map[int]chan cdpMessage{}, tabs: map[string]*tab{}, gone: make(chan struct{})}
	go b.listen(from)
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait() // killed
		to.Close()
		<-b.gone
		if t.Failed() {
			t.Logf("chromium said %d bytes", said.Len())
		}
	})
	return b
}

// listen hands out what the browser says.
func (b *browser) listen(from *os.File) {
	defer close(b.gone)
	defer from.Close()
	for r := bufio.NewReader(from); ; {
		data, err := r.ReadBytes(0)
		if err != nil {
			return
		}
		var m cdpMessage
		if err := json.Unmarshal(data[:len(data)-1], &m); err != nil {
			return
		}
		b.mu.Lock()
		reply, tab := b.replies[m.ID], b.tabs[m.SessionID]
		delete(b.replies, m.ID)
		b.mu.Unlock()
		switch {
		case reply != nil:
			reply <- m
		case tab != nil && m.ID == 0:
			tab.hear(m)
		}
	}
}

// call asks for one thing; result may be nil.
func (b *browser) call(ctx context.Context, session, method string, params, result any) error {
	data, err := json.Marshal(params)
	if err != nil {
		return err
	}
	b.mu.Lock()
	b.last++
	m := cdpMessage{ID: b.last, SessionID: session, Method: method, Params: data}
	reply := make(chan cdpMessage, 1)
	b.replies[m.ID] = reply
	data, err = json.Marshal(m)
	if err == nil {
		_, err = b.to.Write(append(data, 0))
	}
	b.mu.Unlock()
	if err != nil {
		return err
	}
	select {
	case m = <-reply:
	case <-b.gone:
		return errors.New("the browser is gone")
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", method, ctx.Err())
	}
	switch {
	case m.Error != nil:
		return m.Error
	case result != nil:
		return json.Unmarshal(m.Result, result)
	default:
		return nil
	}
}

// tab is one page in a browser window of its own, with no cookies.
type tab struct {
	t       *testing.T
	b       *browser
	session string

	mu         sync.Mutex
	complaints []string // errors of the console, and of the policy
}

type object = map[string]any

func (b *browser) newTab(t *testing.T, width, height int) *tab {
	t.Helper()
	tb := &tab{t: t, b: b}
	var window struct{ BrowserContextID string }
	var target struct{ TargetID string }
	var attached struct{ SessionID string }
	tb.call("Target.createBrowserContext", object{}, &window)
	tb.call("Target.createTarget", object{"url": "about:blank", "browserContextId": window.BrowserContextID}, &target)
	tb.call("Target.attachToTarget", object{"targetId": target.TargetID, "flatten": true}, &attached)
	tb.session = attached.SessionID
	b.mu.Lock()
	b.tabs[tb.session] = tb
	b.mu.Unlock()
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		tb.call(domain+".enable", object{}, nil)
	}
	tb.resize(width, height)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_ = b.call(ctx, "", "Target.disposeBrowserContext", object{"browserContextId": window.BrowserContextID}, nil)
	})
	return tb
}

func (tb *tab) call(method string, params, result any) {
	tb.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := tb.b.call(ctx, tb.session, method, params, result); err != nil {
		tb.t.Fatalf("%s: %v", method, err)
	}
}

// hear notes what a person would find in the console.
func (tb *tab) hear(m cdpMessage) {
	var p struct {
		Type  string
		Args  []struct{ Value, Description any }
		Entry struct{ Level, Source, Text, URL string }

		ExceptionDetails struct {
			Text      string
			Exception struct{ Description string }
		}
	}
	if err := json.Unmarshal(m.Params, &p); err != nil {
		return
	}
	text := ""
	switch {
	case m.Method == "Runtime.consoleAPICalled" && (p.Type == "error" || p.Type == "warning" || p.Type == "assert"):
		text = fmt.Sprintf("console.%s %v", p.Type, p.Args)
	case m.Method == "Runtime.exceptionThrown":
		text = p.ExceptionDetails.Text + " " + p.ExceptionDetails.Exception.Description
	case m.Method == "Log.entryAdded" && (p.Entry.Level == "error" || p.Entry.Level == "warning"):
		text = strings.Join([]string{p.Entry.Source, p.Entry.Text, p.Entry.URL}, " ")
	default:
		return
	}
	tb.mu.Lock()
	defer tb.mu.Unlock()
	tb.complaints = append(tb.complaints, text)
}

// quiet fails the test if there was any error but those that hold one of the words.
func (tb *tab) quiet(but ...string) {
	tb.t.Helper()
	tb.eval("true", nil) // all that was said before is here now
	tb.mu.Lock()
	defer tb.mu.Unlock()
complaints:
	for _, c := range tb.complaints {
		// What follows from such a drop: early.js says so, and loads the page again.
		if strings.Contains(c, networkChanged) || strings.Contains(c, "Failed to fetch dynamically imported module") {
			continue
		}
		for _, word := range but {
			if strings.Contains(c, word) {
				continue complaints
			}
		}
		tb.t.Errorf("the console has: %s", c)
	}
}

// networkChanged is what the browser drops requests with when the machine gets or
// loses an interface, which other tests do. The page loads itself again then.
const networkChanged = "net::ERR_NETWORK_CHANGED"

func (tb *tab) open(url string) {
	tb.t.Helper()
	for range 5 {
		var found struct{ ErrorText string }
		tb.call("Page.navigate", object{"url": url}, &found)
		switch {
		case found.ErrorText == networkChanged:
			continue
		case found.ErrorText != "":
			tb.t.Fatalf("open %s: %s", url, found.ErrorText)
		}
		tb.await(`document.readyState === "complete"`)
		// Where what loads the page again was dropped itself, a person does it.
		if !tb.complained("early.js") {
			return
		}
		tb.forget()
		tb.call("Page.navigate", object{"url": "about:blank"}, nil)
	}
	tb.t.Fatalf("open %s: dropped each time", url)
}

func (tb *tab) complained(word string) bool {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	return slices.ContainsFunc(tb.complaints, func(c string) bool { return strings.Contains(c, word) })
}

func (tb *tab) forget() {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	tb.complaints = nil
}

func (tb *tab) resize(width, height int) {
	tb.t.Helper()
	tb.call("Emulation.setDeviceMetricsOverride", object{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}, nil)
}

// scheme makes the system's colours "light" or "dark".
func (tb *tab) scheme(name string) {
	tb.t.Helper()
	tb.call("Emulation.setEmulatedMedia", object{"features": []object{{"name": "prefers-color-scheme", "value": name}}}, nil)
}

// evaluate runs an expression, and waits for it where it is a promise.
func (tb *tab) evaluate(ctx context.Context, js string, into any) error {
	var found struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct {
			Exception struct{ Description string }
		}
	}
	err := tb.b.call(ctx, tb.session, "Runtime.evaluate", object{"expression": js, "awaitPromise": true, "returnByValue": true}, &found)
	switch {
	case err != nil:
		return err
	case found.ExceptionDetails != nil:
		return errors.New(found.ExceptionDetails.Exception.Description)
	case into == nil:
		return nil
	default:
		return json.Unmarshal(found.Result.Value, into)
	}
}

func (tb *tab) eval(js string, into any) {
	tb.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := tb.evaluate(ctx, js, into); err != nil {
		tb.t.Fatalf("%s: %v", js, err)
	}
}

// await waits until an expression is true, which is looked at in each frame.
func (tb *tab) await(js string) {
	tb.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		err := tb.evaluate(ctx, "new Promise(done => { const look = () => { let is = false; try { is = "+js+
			" } catch {} is ? done(true) : requestAnimationFrame(look) }; look() })", nil)
		if err == nil {
			return
		}
		// The page may have been another one meanwhile.
		var refused *cdpError
		if !errors.As(err, &refused) || ctx.Err() != nil {
			var text string
			if tb.evaluate(context.Background(), "location.href + '\\n' + document.body.innerText", &text) != nil {
				text = "nothing"
			}
			tb.t.Fatalf("waiting for %s: %v; the page has %s; the console %q", js, err, text, tb.complaints)
		}
	}
}

// awaitText waits until an element has that text in it.
func (tb *tab) awaitText(selector, text string) {
	tb.t.Helper()
	tb.await(fmt.Sprintf("[...document.querySelectorAll(%q)].some(e => e.checkVisibility() && e.innerText.includes(%q))", selector, text))
}

// press presses and releases a key, which goes to what has the focus.
func (tb *tab) press(key string) {
	tb.t.Helper()
	codes := map[string]int{"Enter": 13, "Escape": 27, "Tab": 9, "ArrowDown": 40, "ArrowUp": 38}
	down := object{"type": "keyDown", "key": key, "windowsVirtualKeyCode": codes[key]}
	switch {
	case key == "Enter":
		down["text"] = "\r"
	case len(key) == 1:
		down["text"] = key
	}
	tb.call("Input.dispatchKeyEvent", down, nil)
	tb.call("Input.dispatchKeyEvent", object{"type": "keyUp", "key": key, "windowsVirtualKeyCode": codes[key]}, nil)
}

func (tb *tab) write(text string) {
	tb.t.Helper()
	tb.call("Input.insertText", object{"text": text}, nil)
}

// click clicks with the mouse on the first visible element that has that text in it.
func (tb *tab) click(selector, text string) {
	tb.t.Helper()
	tb.awaitText(selector, text)
	var at struct{ X, Y float64 }
	tb.eval(fmt.Sprintf(`(() => {
		const e = [...document.querySelectorAll(%q)].find(e => e.checkVisibility() && e.innerText.includes(%q));
		e.scrollIntoView({block: "center"});
		const box = e.getBoundingClientRect();
		return {x: box.x + box.width / 2, y: box.y + box.height / 2};
	})()`, selector, text), &at)
	for _, kind := range []string{"mousePressed", "mouseReleased"} {
		tb.call("Input.dispatchMouseEvent", object{"type": kind, "x": at.X, "y": at.Y, "button": "left", "clickCount": 1}, nil)
	}
}

// screenshot writes a picture among the artifacts of the test: go test -artifacts
// keeps them.
func (tb *tab) screenshot(name string) {
	tb.t.Helper()
	var found struct{ Data []byte }
	tb.call("Page.captureScreenshot", object{"format": "png"}, &found)
	if err := os.WriteFile(filepath.Join(tb.t.ArtifactDir(), name+".png"), found.Data, 0o600); err != nil {
		tb.t.Fatal(err)
	}
}
