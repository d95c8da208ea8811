package sources

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/podkeeper/podkeeper/pod"
)

// Store keeps small files below the root dir. Names are relative to it, with
// slashes.
type Store interface {
	// WriteFile replaces the file atomically; only the agent's user can read it.
	WriteFile(name string, data []byte) error
	// ReadFile fails with fs.ErrNotExist for a file that is not there.
	ReadFile(name string) ([]byte, error)
	// Remove removes the file; one that is not there is success.
	Remove(name string) error
	// Entries lists the files of a folder; one that is not there has none.
	Entries(dir string) ([]string, error)
}

const (
	storeFolder   = "sources"
	recordVersion = 1
)

// record is the last good state of one origin as it lies in the store. Time is
// when its documents were first so.
type record struct {
	Version   int              `json:"version"`
	Origin    pod.Origin       `json:"origin"`
	Time      time.Time        `json:"time"`
	Documents []recordDocument `json:"documents"`
}

type recordDocument struct {
	Line   int             `json:"line"`
	Object json.RawMessage `json:"object"`
}

// recordName returns the file of an origin. All of one source begin alike, so
// that a source finds its own without opening those of others.
func recordName(o pod.Origin) string {
	return path.Join(storeFolder, sourcePrefix(o.Source)+digest(o.Name)[:32]+".json")
}

func sourcePrefix(id pod.SourceID) string { return digest(id.String())[:16] + "-" }

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

func newRecord(o pod.Origin, docs []document) record {
	r := record{Version: recordVersion, Origin: o}
	for _, d := range docs {
		r.Documents = append(r.Documents, recordDocument{Line: d.line(), Object: d.json})
	}
	return r
}

func (r record) encode() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(r); err != nil {
		return nil, fmt.Errorf("encode last good state of %s: %w", r.Origin, err)
	}
	return b.Bytes(), nil
}

func decodeRecord(name string, data []byte) (record, error) {
	var r record
	if err := json.Unmarshal(data, &r); err != nil {
		return record{}, fmt.Errorf("decode %s: %w", name, err)
	}
	if r.Version != recordVersion || recordName(r.Origin) != name {
		return record{}, fmt.Errorf("%s: version %d, written by another release: not used", name, r.Version)
	}
	return r, nil
}

// recall returns the last good documents of an origin, decoded anew. Without a
// record, or with one that cannot be used, there are none.
func recall(store Store, parse ParseFunc, log *slog.Logger, name string) (pod.Origin, []document) {
	if store == nil {
		return pod.Origin{}, nil
	}
	data, err := store.ReadFile(name)
	var r record
	if err == nil {
		r, err = decodeRecord(name, data)
	}
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			log.Warn("last good manifest is unusable", "err", err)
		}
		return pod.Origin{}, nil
	}
	var docs []document
	for _, d := range r.Documents {
		result := parse(d.Object, r.Origin)
		if len(result.Documents) != 1 || result.Documents[0].Broken() {
			log.Warn("a last good document is no longer accepted", "origin", r.Origin.Name, "line", d.Line)
			continue
		}
		doc := documentOf(result.Documents[0], d.Line)
		doc.json = d.Object
		docs = append(docs, doc)
	}
	return r.Origin, docs
}

// RemoveCache removes the last good manifests of all sources.
func RemoveCache(store Store) error {
	entries, err := store.Entries(storeFolder)
	if err != nil {
		return fmt.Errorf("list last good manifests: %w", err)
	}
	var errs []error
	for _, e := range entries {
		errs = append(errs, store.Remove(path.Join(storeFolder, path.Base(e))))
	}
	return errors.Join(errs...)
}

// recordsOf lists the records of one source.
func recordsOf(store Store, id pod.SourceID) ([]string, error) {
	if store == nil {
		return nil, nil
	}
	entries, err := store.Entries(storeFolder)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if base := path.Base(e); strings.HasPrefix(base, sourcePrefix(id)) {
			names = append(names, path.Join(storeFolder, base))
		}
	}
	slices.Sort(names)
	return names, nil
}

// writer writes records beside the goroutine that has them, so that no fsync
// delays a manifest. Of several records of one origin only the newest is written.
type writer struct {
	store  Store
	source pod.SourceID
	log    *slog.Logger
	now    func() time.Time

	mu      sync.Mutex
	pending map[string]record // by name; one without documents is removed
	keep    map[string]bool   // not nil: remove all others of the source
	wake    chan struct{}

	failing bool // of the goroutine only: a failure is said once
}

func newWriter(store Store, source pod.SourceID, now func() time.Time, log *slog.Logger) *writer {
	return &writer{store: store, source: source, now: now, log: log, pending: map[string]record{}, wake: make(chan struct{}, 1)}
}

// put hands on a record. It does not block.
func (w *writer) put(o pod.Origin, docs []document) {
	w.mu.Lock()
	w.pending[recordName(o)] = newRecord(o, docs)
	if w.keep != nil {
		w.keep = maps.Clone(w.keep)
		w.keep[recordName(o)] = true
	}
	w.mu.Unlock()
}

// keepOnly has all records of the source removed whose names keep lacks.
func (w *writer) keepOnly(keep map[string]bool) {
	w.mu.Lock()
	w.keep = keep
	w.mu.Unlock()
}

// signal has what was put written, all of it at once.
func (w *writer) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// run writes until ctx ends, and then what is still pending.
func (w *writer) run(ctx context.Context) {
	var retry <-chan time.Time
	for {
		select {
		case <-w.wake:
		case <-retry:
		case <-ctx.Done():
			w.flush()
			return
		}
		retry = nil
		if !w.flush() {
			retry = time.After(retryWrite)
		}
	}
}

func (w *writer) flush() (done bool) {
	w.mu.Lock()
	pending, keep := w.pending, w.keep
	w.pending, w.keep = map[string]record{}, nil
	w.mu.Unlock()
	if w.store == nil {
		return true
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(pending)) {
		err := w.write(name, pending[name])
		if err != nil {
			w.again(name, pending[name])
		}
		errs = append(errs, err)
	}
	if keep != nil {
		err := w.removeAllBut(keep, pending)
		if err != nil {
			w.keepAgain(keep, pending)
		}
		errs = append(errs, err)
	}
	err := errors.Join(errs...)
	if err != nil && !w.failing {
		w.log.Warn("last good manifests cannot be kept: a restart of the agent would not know them", "source", w.source.String(), "err", err)
	}
	if len(pending) > 0 || err != nil {
		w.failing = err != nil
	}
	return err == nil
}

// retryWrite is how long after a failure the store is tried again.
const retryWrite = 10 * time.Second

// keepAgain wants again what could not be removed, unless something newer is.
// What is written meanwhile stays.
func (w *writer) keepAgain(keep map[string]bool, written map[string]record) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.keep != nil {
		return
	}
	w.keep = maps.Clone(keep)
	for _, records := range []map[string]record{written, w.pending} {
		for name := range records {
			w.keep[name] = true
		}
	}
}

// again keeps what could not be written for the next flush, unless there is
// something newer.
func (w *writer) again(name string, r record) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.pending[name]; !ok {
		w.pending[name] = r
	}
}

func (w *writer) removeAllBut(keep map[string]bool, pending map[string]record) error {
	names, err := recordsOf(w.store, w.source)
	if err != nil {
		return fmt.Errorf("list last good manifests: %w", err)
	}
	var errs []error
	for _, name := range names {
		if _, ok := pending[name]; !ok && !keep[name] {
			errs = append(errs, w.remove(name))
		}
	}
	return errors.Join(errs...)
}

func (w *writer) write(name string, r record) error {
	if len(r.Documents) == 0 {
		return w.remove(name)
	}
	r.Time = w.now()
	old, oldErr := w.store.ReadFile(name)
	if was, err := decodeRecord(name, old); oldErr == nil && err == nil {
		r.Time = was.Time
	}
	data, err := r.encode()
	if err != nil {
		return err
	}
	if oldErr == nil && bytes.Equal(data, old) {
		return nil
	}
	r.Time = w.now()
	if data, err = r.encode(); err != nil {
		return err
	}
	if err := w.store.WriteFile(name, data); err != nil {
		return fmt.Errorf("keep last good state of %s: %w", r.Origin, err)
	}
	return nil
}

func (w *writer) remove(name string) error {
	if err := w.store.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove %s: %w", name, err)
	}
	return nil
}
