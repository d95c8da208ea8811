package sources

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/podkeeper/podkeeper/pod"
)

// How soon hints are followed. A name that appeared or went is looked at after
// a short quiet, so that a file replaced in two steps is seen once; a file that
// is written in place after a longer one, so that it is whole.
const (
	namesQuiet = 3 * time.Millisecond
	namesLimit = 20 * time.Millisecond
	writeQuiet = 50 * time.Millisecond
	writeLimit = time.Second
	// A broken file is not told of, and not believed, before its content was the
	// same for brokenQuiet, or it was broken in any way for brokenLimit.
	brokenQuiet = time.Second
	brokenLimit = 10 * time.Second
	// A folder that has come back may still be being filled.
	returnQuiet = time.Second
	// A file that went while another is being written may be moving there.
	moveQuiet = time.Second
	// Equal file times mean equal content only this long after the first reading:
	// some file systems count in steps of two seconds.
	trustAfter = 2 * time.Second
)

// FileConfig says what a [File] looks at, and with what.
type FileConfig struct {
	// Path is a folder or a single file, absolute.
	Path string
	// Extensions of manifests in a folder, with or without the dot; "" is none at all.
	// nil: DefaultExtensions.
	Extensions []string
	// Period of the looks that need no hint. 0: 20 s.
	Period time.Duration
	Parse  ParseFunc
	FS     FS
	// Watcher gives hints. nil: there are none.
	Watcher Watcher
	// Store keeps the last good documents. nil: nothing is kept.
	Store Store
	// Now is the wall clock, for times that are shown or stored. nil: time.Now.
	Now func() time.Time
	Log *slog.Logger
}

// File is the source of a folder of manifests, or of a single file.
type File struct {
	cfg FileConfig
	id  pod.SourceID
}

var _ Source = (*File)(nil)

// NewFile returns the source of a folder or file, which need not exist.
func NewFile(cfg FileConfig) (*File, error) {
	switch {
	case !filepath.IsAbs(cfg.Path):
		return nil, errors.New("sources: Path is not absolute: " + cfg.Path)
	case cfg.Parse == nil || cfg.FS == nil || cfg.Log == nil:
		return nil, errors.New("sources: Parse, FS and Log are needed")
	case cfg.Period < 0:
		return nil, errors.New("sources: Period is negative")
	}
	cfg.Path = filepath.Clean(cfg.Path)
	if cfg.Extensions == nil {
		cfg.Extensions = DefaultExtensions()
	}
	cfg.Extensions = slices.Clone(cfg.Extensions)
	for i, ext := range cfg.Extensions {
		if ext != "" && !strings.HasPrefix(ext, ".") {
			cfg.Extensions[i] = "." + ext
		}
	}
	if cfg.Period == 0 {
		cfg.Period = 20 * time.Second
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &File{cfg: cfg, id: pod.SourceID{Kind: pod.FileSource, Name: cfg.Path}}, nil
}

// ID implements Source.
func (f *File) ID() pod.SourceID { return f.id }

// Run implements Source.
func (f *File) Run(ctx context.Context, out chan<- Supply) error {
	w := newWriter(f.cfg.Store, f.id, f.cfg.Now, f.cfg.Log)
	var writing sync.WaitGroup
	writing.Go(func() { w.run(ctx) })
	defer writing.Wait()

	h := &hinter{watcher: f.cfg.Watcher, log: f.cfg.Log.With("source", f.id.String())}
	defer h.close()
	l := newFolder(f.cfg, f.id, h, w)

	timer := time.NewTimer(0) // the first look comes at once
	defer timer.Stop()
	for sent := false; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-h.ready():
			l.take(h.hints(), time.Now())
		case <-timer.C:
		}
		if now := time.Now(); !now.Before(l.due()) {
			if changed := l.look(now); changed || !sent {
				select {
				case out <- l.supply():
					sent = true
				case <-ctx.Done():
					return nil
				}
			}
			l.keep()
		}
		timer.Reset(time.Until(l.due()))
	}
}

// hinter holds the Watch, and does without where it cannot be had.
type hinter struct {
	watcher Watcher
	log     *slog.Logger
	watch   Watch
	polling bool // said so
}

// set watches those folders, as far as that is possible.
func (h *hinter) set(dirs []Dir) {
	if h.watcher == nil {
		return
	}
	var err error
	if h.watch == nil {
		h.watch, err = h.watcher.Watch()
	}
	if err == nil {
		err = h.watch.Set(dirs)
	}
	if (err != nil) == h.polling {
		return
	}
	h.polling = err != nil
	if h.polling {
		h.log.Warn("files are not all watched: changes are seen at the next periodic look only", "err", err)
	} else {
		h.log.Info("files are watched again")
	}
}

func (h *hinter) ready() <-chan struct{} {
	if h.watch == nil {
		return nil
	}
	return h.watch.Ready()
}

func (h *hinter) hints() []Hint { return h.watch.Take() }

func (h *hinter) close() {
	if h.watch != nil {
		h.watch.Close()
	}
}
