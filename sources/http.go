package sources

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/podkeeper/podkeeper/manifests"
	"github.com/podkeeper/podkeeper/pod"
)

const (
	// fetchTimeout is for a whole answer, retries and body included.
	fetchTimeout = 10 * time.Second
	// headStart is how long a URL may take at start before the pods of its last
	// good body are supplied.
	headStart = time.Second
)

// HTTPConfig says what an [HTTP] asks, and how.
type HTTPConfig struct {
	// URL is http or https. What it holds of user, password and query is a secret.
	URL string
	// Name is what the source is called. "": the URL without its secrets. See
	// NamesOfURLs.
	Name string
	// Header is sent to the URL's own host only, and never shown.
	Header http.Header
	// Period of the requests. 0: 20 s.
	Period time.Duration
	// CAFile is a PEM file of the only authorities that are believed. "": those
	// of the system.
	CAFile string
	// CertFile and KeyFile are PEM files of a client certificate. They are read
	// anew for each connection.
	CertFile, KeyFile string
	// Transport replaces the network; the files above are then not used. nil: the
	// real one.
	Transport http.RoundTripper
	Parse     ParseFunc
	// Store keeps the last good documents. nil: nothing is kept.
	Store Store
	// Now is the wall clock, for times that are shown or stored. nil: time.Now.
	Now func() time.Time
	Log *slog.Logger
}

// HTTP is the source of the pods that a URL lists.
type HTTP struct {
	cfg    HTTPConfig
	id     pod.SourceID
	origin pod.Origin
	get    *getter
}

var _ Source = (*HTTP)(nil)

// NewHTTP returns the source of a URL, which need not answer. Its errors, like
// all that it says later, are free of secrets.
func NewHTTP(cfg HTTPConfig) (*HTTP, error) {
	if cfg.Parse == nil || cfg.Log == nil {
		return nil, errors.New("sources: Parse and Log are needed")
	}
	u, err := parseURL(cfg.URL)
	if err != nil {
		return nil, err
	}
	if cfg.Name == "" {
		cfg.Name = nameOf(u)
	}
	if cfg.Period < 0 {
		return nil, errors.New("sources: Period is negative")
	}
	if cfg.Period == 0 {
		cfg.Period = 20 * time.Second
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	get, err := newGetter(u, cfg)
	if err != nil {
		return nil, fmt.Errorf("manifest URL %s: %w", cfg.Name, err)
	}
	id := pod.SourceID{Kind: pod.HTTPSource, Name: cfg.Name}
	return &HTTP{cfg: cfg, id: id, origin: pod.Origin{Source: id, Name: cfg.Name}, get: get}, nil
}

// NamesOfURLs returns a name for each URL, without its secrets. Those that
// differ in nothing else are numbered in the order given.
func NamesOfURLs(urls []string) ([]string, error) {
	names := make([]string, len(urls))
	count := map[string]int{}
	for i, raw := range urls {
		u, err := parseURL(raw)
		if err != nil {
			return nil, err
		}
		name := nameOf(u)
		if count[name]++; count[name] > 1 {
			names[i] = fmt.Sprintf("%s#%d", name, count[name])
		} else {
			names[i] = name
		}
	}
	return names, nil
}

// parseURL shows nothing of a URL that it refuses: where the secrets begin is
// not known then.
func parseURL(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return nil, errors.New("manifest URL: not a URL (it is not shown, for the secrets it may hold)")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("manifest URL: want http:// or https:// (it is not shown, for the secrets it may hold)")
	case u.Hostname() == "":
		return nil, errors.New("manifest URL: no host (it is not shown, for the secrets it may hold)")
	}
	return u, nil
}

func nameOf(u *url.URL) string {
	shown := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}
	return shown.String()
}

// ID implements Source.
func (h *HTTP) ID() pod.SourceID { return h.id }

// Run implements Source.
func (h *HTTP) Run(ctx context.Context, out chan<- Supply) error {
	defer h.get.close()
	var working sync.WaitGroup
	defer working.Wait()
	w := newWriter(h.cfg.Store, h.id, h.cfg.Now, h.cfg.Log)
	working.Go(func() { w.run(ctx) })

	p := newPage(h.cfg, h.origin)
	var early <-chan time.Time
	if p.stale {
		early = time.After(headStart)
	}
	next := time.NewTimer(h.cfg.Period)
	defer next.Stop()
	answers, asking := make(chan answer, 1), false
	ask := func() {
		asking = true
		v := p.validators
		working.Go(func() { answers <- h.get.fetch(ctx, v) })
	}
	ask()
	for sent := false; ; {
		changed := !sent
		select {
		case a := <-answers:
			early, asking = nil, false
			changed = p.take(a, h.cfg.Now()) || changed
		case <-early:
			p.src.Problem = "no answer yet"
		case <-next.C:
			next.Reset(h.cfg.Period)
			if !asking {
				ask()
			}
			continue
		case <-ctx.Done():
			return nil
		}
		if changed {
			select {
			case out <- p.supply():
				sent = true
			case <-ctx.Done():
				return nil
			}
		}
		if p.unkept {
			p.unkept = false
			w.put(p.origin, p.docs)
			w.signal()
		}
	}
}

// page is what is known of a URL. One goroutine has it.
type page struct {
	origin pod.Origin
	parse  ParseFunc
	log    *slog.Logger

	src      pod.Source // without Origins
	docs     []document
	problems []pod.Problem
	stale    bool
	unkept   bool
	silent   bool // and said so

	sum        [sha256.Size]byte // of the last body
	decoded    bool
	validators validators // of the last body without an error
}

func newPage(cfg HTTPConfig, origin pod.Origin) *page {
	p := &page{origin: origin, parse: cfg.Parse, log: cfg.Log.With("source", origin.Source.String())}
	p.src.ID = origin.Source
	_, p.docs = recall(cfg.Store, cfg.Parse, p.log, recordName(origin))
	p.stale = len(p.docs) > 0
	return p
}

// take takes in an answer, and reports whether anything that is told changed.
func (p *page) take(a answer, now time.Time) (changed bool) {
	switch {
	case a.err != nil:
		return p.silence(a.err.Error())
	case a.unchanged:
		return p.heard(now)
	}
	sum := sha256.Sum256(a.body)
	if p.decoded && sum == p.sum {
		if !failed(p.problems) {
			p.validators = a.validators
		}
		return p.heard(now)
	}
	p.sum, p.decoded = sum, true
	res := keepSealed(p.docs, read(a.body, p.origin, p.parse))
	before := p.problems
	p.docs, p.stale = hold(p.docs, res)
	p.problems, p.unkept = res.Problems, true
	p.validators = validators{}
	if !failed(res.Problems) {
		p.validators = a.validators
		p.log.Info("manifest read", append([]any{"origin", p.origin.Name}, namesOf(p.docs)...)...)
	}
	p.src.Spoken = p.src.Spoken || !failed(res.Problems) || len(res.Documents) > 0
	logProblems(p.log, before, p.problems)
	p.heard(now)
	return true
}

// heard notes an answer that could be read, whatever it says.
func (p *page) heard(now time.Time) (changed bool) {
	changed = !p.src.Present
	if p.silent {
		p.silent = false
		p.log.Info("manifest URL answers again")
	}
	p.src.Present, p.src.Problem, p.src.Read = true, "", now
	return changed
}

// silence notes that there was no answer of use.
func (p *page) silence(problem string) (changed bool) {
	if p.silent && p.src.Problem == problem {
		return false
	}
	p.silent, p.src.Present, p.src.Problem = true, false, problem
	p.log.Warn("manifest URL gives nothing of use: pods stay as they are", "reason", problem, "pods", len(status(p.origin, p.docs, nil, false).Pods))
	return true
}

func (p *page) supply() Supply {
	s := Supply{Source: p.src}
	// Where the URL is away, what it supplies is not what it says now.
	stale := p.stale || !p.src.Present && len(p.docs) > 0
	s.Source.Origins = []pod.OriginStatus{status(p.origin, p.docs, p.problems, stale)}
	s.add(p.docs)
	return s
}

// read decodes a body. What no server means is refused, though a file may say
// it: nothing at all, a page for people, or no objects without an empty list.
func read(body []byte, origin pod.Origin, parse ParseFunc) manifests.Result {
	if refused := refusedBody(body); refused != "" {
		return refusal(origin, refused)
	}
	res := parse(body, origin)
	if len(res.Documents) == 0 && !failed(res.Problems) && !emptyList(body) {
		return refusal(origin, "no objects in it: only an explicit empty list removes pods")
	}
	return res
}
