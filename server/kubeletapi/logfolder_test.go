package kubeletapi_test

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/podkeeper/podkeeper/server/kubeletapi"
)

// logs are answers with a log folder that has something of everything in it, beside a
// file that is nobody's to read.
func logs(t *testing.T) kubeletapi.Answers {
	t.Helper()
	dir := t.TempDir()
	folder := filepath.Join(dir, "log")
	if err := os.MkdirAll(filepath.Join(folder, "apt", "deep"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "secret", []byte("secret"))
	write(t, folder, "syslog", []byte("0123456789"))
	write(t, folder, "<b>&", []byte("odd"))
	write(t, folder, "page.html", []byte("<script>alert(1)</script>"))
	write(t, filepath.Join(folder, "apt"), "term.log", []byte("term"))
	for link, target := range map[string]string{
		"inside": "apt/term.log", "outside": "../secret", "absolute": filepath.Join(dir, "secret"), "folder": "..", "root": "/", "loop": "loop", "proc": "/proc/self/root",
	} {
		if err := os.Symlink(target, filepath.Join(folder, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(folder, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(folder, "s"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	a := everything()
	a.LogFolder = folder
	return a
}

func TestLogFolder(t *testing.T) {
	a := logs(t)
	for path, want := range map[string]struct {
		code int
		body string // what is in it
	}{
		"/logs/syslog":                        {200, "0123456789"},
		"/logs/apt/term.log":                  {200, "term"},
		"/logs/inside":                        {200, "term"},
		"/logs/%3Cb%3E&":                      {200, "odd"},
		"/logs/page.html":                     {200, "<script>"},
		"/logs/":                              {200, `<a href="./apt/">apt/</a>`},
		"/logs":                               {307, ""},
		"/logs/apt":                           {301, ""},
		"/logs/apt/":                          {200, `<a href="./term.log">term.log</a>`},
		"/logs/none":                          {404, "no such file"},
		"/logs/syslog/":                       {404, "no such file"},
		"/logs/syslog/x":                      {404, "no such file"},
		"/logs/outside":                       {404, "no such file"},
		"/logs/absolute":                      {404, "no such file"},
		"/logs/folder/secret":                 {404, "no such file"},
		"/logs/root/etc/passwd":               {404, "no such file"},
		"/logs/proc/etc/passwd":               {404, "no such file"},
		"/logs/loop":                          {404, "no such file"},
		"/logs/pipe":                          {403, "not a regular file"},
		"/logs/s":                             {404, "no such file"},
		"/logs/%2e%2e/secret":                 {400, "bad path"},
		"/logs/..%2fsecret":                   {400, "bad path"},
		"/logs/apt/%2e%2e/%2e%2e/secret":      {400, "bad path"},
		"/logs/%2fetc%2fpasswd":               {400, "bad path"},
		"/logs//etc/passwd":                   {307, ""},
		"/logs/%00":                           {404, "no such file"},
		"/logs/syslog%00":                     {404, "no such file"},
		"/logs/%252e%252e/secret":             {404, "no such file"},
		"/logs/..%5csecret":                   {404, "no such file"},
		"/logs/.":                             {307, ""},
		"/logs/%2e":                           {301, ""},
		"/logs/" + strings.Repeat("a/", 5000): {404, "no such file"},
		"/logs/" + strings.Repeat("a", 300):   {404, "no such file"},
	} {
		code, body := call(t, kubeletapi.Full, a, http.MethodGet, path)
		if code != want.code || !strings.Contains(body, want.body) || strings.Contains(body, "secret") || len(body) > 1000 {
			t.Errorf("%.60s: %d %.200q, want %d %q", path, code, body, want.code, want.body)
		}
	}
}

// A browser runs nothing that stands in a log, nor in the name of one.
func TestLogsAreText(t *testing.T) {
	a := logs(t)
	h := kubeletapi.Handler(a, kubeletapi.NewStreams(1), kubeletapi.Everybody(kubeletapi.Full), quiet)
	page := get(t, h, "/logs/page.html", "")
	if got := page.Header().Get("Content-Type"); got != "text/plain; charset=utf-8" || page.Header().Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("headers %v", page.Header())
	}
	list := get(t, h, "/logs/", "").Body.String()
	if strings.Contains(list, "<b>") || !strings.Contains(list, `<a href="./%3Cb%3E&">&lt;b&gt;&amp;</a>`) {
		t.Errorf("the list has %s", list)
	}
	if part := get(t, h, "/logs/syslog", "bytes=2-4"); part.Code != http.StatusPartialContent || part.Body.String() != "234" {
		t.Errorf("a part: %d %q", part.Code, part.Body)
	}
}

// A list says where it is cut off.
func TestLongListsAreCutOff(t *testing.T) {
	a := everything()
	a.LogFolder = t.TempDir()
	for i := range kubeletapi.MaxEntries + 1 {
		write(t, a.LogFolder, fmt.Sprint(i), nil)
	}
	_, body := call(t, kubeletapi.Full, a, http.MethodGet, "/logs/")
	if n := strings.Count(body, "<a "); n != kubeletapi.MaxEntries || !strings.Contains(body, "and more") {
		t.Errorf("%d entries, and %.100q at the end", n, body[len(body)-100:])
	}
}
