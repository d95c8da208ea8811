package dashboard

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/server"
)

// Answers are what the page asks the agent for. An error of any of them is shown to
// the person, in its own words.
type Answers struct {
	// State and Events return what is newer than a revision as soon as there is
	// something, and at once for 0.
	State  func(ctx context.Context, after uint64) (server.State, error)
	Events func(ctx context.Context, after uint64) (server.Events, error)
	// Usage returns what the machine and its pods use. nil: there are no plots.
	Usage func(ctx context.Context) (*stats.Summary, error)
	// Node returns the machine with its conditions. nil: they are not shown.
	Node func(ctx context.Context) (*v1.Node, error)
	// Log opens what a container wrote.
	Log func(ctx context.Context, at pod.Key, container string, how LogOptions) (io.ReadCloser, error)
	// Line is a pod in the words that get pods has for it.
	Line func(server.Pod) Line
	// Act has something done to a pod, one of Actions. nil: the page only shows. Its
	// error wraps [server.ErrNoPod], or is why it cannot be.
	Act func(ctx context.Context, at pod.Key, action string) error
	// Actions are the names that Act takes, as the page offers them.
	Actions []string
}

// LogOptions say what of a log is wanted.
type LogOptions struct {
	// Tail is how many lines of its end.
	Tail int
	// Previous: of the attempt before the newest.
	Previous bool
	// Timestamps: each line begins with its time.
	Timestamps bool
}

// Line is what a list says of a pod.
type Line struct {
	Status string
	// Tone is one of the Tone constants.
	Tone     Tone
	Ready    string // "1/2"
	Restarts int
}

// Tone is how alarming a status is.
type Tone string

// The tones.
const (
	Good  Tone = "good"
	Busy  Tone = "busy"
	Bad   Tone = "bad"
	Faint Tone = "faint" // over, and as it should be
)

//go:embed assets
var assets embed.FS

// The login page, which is all that answers without a session.
var loginPage = []string{"/login.js", "/key.js", "/early.js", "/look.css", "/login.css", "/icon.svg"}

// maxStreams is how many answers may be under way that end when the client wishes.
const maxStreams = 32

type page struct {
	Answers
	door    *door
	hosts   []string
	cookie  string
	streams chan struct{} // has one for each stream under way
}

// New returns the page that is to be served at that address, which the Host header
// of requests must name, and the token that lets one person in.
func New(at netip.AddrPort, a Answers) (h http.Handler, token string) {
	p := &page{
		Answers: a, door: newDoor(), hosts: hosts(at),
		// Cookies go to all ports of a host: each page has a name of its own.
		cookie: fmt.Sprintf("podkeeper_%d", at.Port()), streams: make(chan struct{}, maxStreams),
	}
	return p.handler(), p.door.token
}

// refusal is an error with a status, told to the client.
type refusal struct {
	status int
	why    string
}

func (r *refusal) Error() string { return r.why }

type handlerFunc func(w http.ResponseWriter, r *http.Request) error

func (p *page) handler() http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern string, h handlerFunc) { mux.Handle(pattern, answer(h)) }
	handle("POST /login", p.login)
	handle("GET /{$}", p.front)
	handle("GET /", p.file)
	handle("GET /live", p.keyed(p.stream(p.live)))
	handle("GET /pods/{namespace}/{name}/log/{container}", p.keyed(p.stream(p.log)))
	handle("POST /pods/{namespace}/{name}/{action}", p.keyed(p.act))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		protect(w.Header())
		if status, why := strange(r, p.hosts); status != 0 {
			http.Error(w, why, status)
			return
		}
		if !p.known(r) && r.URL.Path != "/" && r.URL.Path != "/login" && !slices.Contains(loginPage, r.URL.Path) {
			http.Error(w, "log in first", http.StatusUnauthorized)
			return
		}
		if r.Method == http.MethodPost {
			if err := takeBody(w, r); err != nil {
				http.Error(w, "the request is too long, or takes too long", http.StatusRequestEntityTooLarge)
				return
			}
		}
		mux.ServeHTTP(w, r)
	})
}

// answer tells the client of an error.
func answer(h handlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := h(w, r)
		var refused *refusal
		var said *server.StatusError
		switch {
		case err == nil:
		case errors.As(err, &refused):
			http.Error(w, refused.why, refused.status)
		case errors.As(err, &said):
			http.Error(w, said.Message, said.Code)
		case errors.Is(err, server.ErrNoPod):
			http.Error(w, err.Error(), http.StatusNotFound)
		case errors.Is(err, server.ErrNoAgent):
			http.Error(w, "the agent does not answer", http.StatusBadGateway)
		default:
			http.Error(w, err.Error(), http.StatusConflict)
		}
	})
}

// known reports whether the request bears the cookie.
func (p *page) known(r *http.Request) bool {
	c, err := r.Cookie(p.cookie)
	return err == nil && same(p.door.session, c.Value)
}

// keyed lets those through that also have the key.
func (p *page) keyed(h handlerFunc) handlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		if !same(p.door.key, r.Header.Get(keyHeader)) {
			return &refusal{http.StatusForbidden, "the session's key is missing"}
		}
		return h(w, r)
	}
}

// stream bounds how many of h are under way.
func (p *page) stream(h handlerFunc) handlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		select {
		case p.streams <- struct{}{}:
			defer func() { <-p.streams }()
			return h(w, r)
		default:
			return &refusal{http.StatusServiceUnavailable, "too many windows are open"}
		}
	}
}

const (
	// readWithin is how long a client may take to send what it asks for.
	readWithin = 5 * time.Second
	// maxBody is more than a token has.
	maxBody = 256
)

// takeBody reads the body of a request, in bounded time. What is done then may take
// longer: a deadline that went on would end it.
func takeBody(w http.ResponseWriter, r *http.Request) error {
	// Not all writers have deadlines: those of tests don't.
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(readWithin))
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return err
	}
	_ = control.SetReadDeadline(time.Time{})
	r.Body = io.NopCloser(bytes.NewReader(body))
	return nil
}

// login exchanges the token, which is the body, for the session: the cookie, and the
// key as the answer.
func (p *page) login(w http.ResponseWriter, r *http.Request) error {
	token, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	if !p.door.open(string(token)) {
		return &refusal{http.StatusForbidden, "this link is not valid, or was used before"}
	}
	http.SetCookie(w, &http.Cookie{Name: p.cookie, Value: p.door.session, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, p.door.key) // an error is a client that went away
	return nil
}

func (p *page) front(w http.ResponseWriter, r *http.Request) error {
	name := "assets/login.html"
	if p.known(r) {
		name = "assets/app.html"
	}
	http.ServeFileFS(w, r, assets, name)
	return nil
}

// file serves the parts of the page. Its two texts are only served as "/".
func (p *page) file(w http.ResponseWriter, r *http.Request) error {
	name := "assets" + r.URL.Path
	info, err := fs.Stat(assets, name)
	if err != nil || info.IsDir() || strings.HasSuffix(name, ".html") {
		return &refusal{http.StatusNotFound, "not found"}
	}
	http.ServeFileFS(w, r, assets, name)
	return nil
}

func (p *page) act(w http.ResponseWriter, r *http.Request) error {
	action := r.PathValue("action")
	switch {
	case p.Act == nil:
		return &refusal{http.StatusForbidden, "this page only shows: podkeeper dashboard --allow-actions"}
	case !slices.Contains(p.Actions, action):
		return &refusal{http.StatusNotFound, "no such action"}
	}
	if err := p.Act(r.Context(), keyIn(r), action); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func keyIn(r *http.Request) pod.Key {
	return pod.Key{Namespace: r.PathValue("namespace"), Name: r.PathValue("name")}
}
