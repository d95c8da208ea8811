package sources

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"time"

	"github.com/podkeeper/podkeeper/manifests"
	"github.com/podkeeper/podkeeper/pod"
)

// file is one origin, and what it supplies.
type file struct {
	origin   pod.Origin
	docs     []document
	problems []pod.Problem
	stale    bool
	missed   time.Time // since when it is not there, and not believed to be gone
	read     bool      // believed once: its content, not only a record of it, decides
	recalled bool      // its record was asked for

	observed Stat      // when last looked at
	looked   time.Time // when that was
	stat     Stat      // when last read
	since    time.Time // when first read with that stat
	sure     bool      // read again so much later that equal stats mean equal content
	sum      [sha256.Size]byte
	decoded  bool // sum is of something

	// broken: first is when it began to be broken, last when its content last
	// changed. pending is what it then said, until it is believed.
	broken  span
	pending *manifests.Result
	target  string // what it leads to, where it is a link
}

// seen is the outcome of one look at one file.
type seen int

const (
	seenSame seen = iota
	seenChanged
	seenUnfinished // being written, or not believed yet
	seenSkipped
	seenNoMore // listed, and not there
)

const leadsNowhere = "a link that leads nowhere"

// maxRaces is how often in a row a file may be listed and not be there before
// that is told as an error.
const maxRaces = 5

// lookAt brings one file up to date, as cheaply as it can be had.
func (l *folder) lookAt(path string, now time.Time, link bool) (seen, string) {
	st, err := l.cfg.FS.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && link && !l.single:
		return seenSkipped, leadsNowhere
	case errors.Is(err, fs.ErrNotExist):
		return l.lost(path, now, err), ""
	case err == nil && st.Mode&fs.ModeType != 0 && !l.single:
		return seenSkipped, describe(st.Mode)
	}
	f := l.files[path]
	if f == nil {
		f = &file{origin: pod.Origin{Source: l.src.ID, Name: path}, stale: true}
		l.files[path] = f
	}
	if err == nil && link && (st != f.observed || f.target == "") {
		l.follow(f)
	}
	if l.unfinished(f, st, now) {
		l.recall(f)
		return seenUnfinished, ""
	}
	if f.decoded && f.sure && st == f.stat {
		return l.believe(f, now), ""
	}
	if err != nil {
		return l.refuse(f, now, err), ""
	}
	data, err := l.readFile(path, st)
	if errors.Is(err, fs.ErrNotExist) {
		return l.lost(path, now, err), ""
	}
	if after, err := l.cfg.FS.Stat(path); err != nil || after != st {
		l.wake(now.Add(namesQuiet)) // it changed while it was read: look again
		l.recall(f)
		return seenUnfinished, ""
	}
	if st != f.stat {
		f.stat, f.since, f.sure = st, now, false
	} else {
		f.sure = now.Sub(f.since) >= trustAfter
	}
	if err != nil {
		return l.refuse(f, now, err), ""
	}
	return l.decode(f, now, data, nil), ""
}

// unfinished reports whether somebody may still be writing the file: hints say
// so, or it changed in place, or a file is new and no hint came of it.
func (l *folder) unfinished(f *file, st Stat, now time.Time) bool {
	path := f.origin.Name
	inPlace := f.observed != (Stat{}) && st.sameFile(f.observed) && st != f.observed
	unheard := l.listed && !l.hinted && !st.sameFile(f.observed)
	s, writing := l.writing[path]
	// Where hints told of it first, the change is what they told of.
	if news := !writing || !f.looked.Before(s.first); news && (inPlace || unheard) {
		s, writing = s.extended(now), true
		l.writing[path] = s
	}
	f.observed, f.looked = st, now
	return writing && now.Before(s.end(writeQuiet, writeLimit))
}

func (l *folder) readFile(path string, st Stat) ([]byte, error) {
	if st.Mode&fs.ModeType != 0 {
		return nil, fmt.Errorf("open %s: %s", path, describe(st.Mode))
	}
	if st.Size > manifests.MaxBytes {
		return nil, errTooLarge
	}
	r, err := l.cfg.FS.Open(path)
	if err != nil {
		return nil, err
	}
	data, err := readAll(r, st.Size)
	return data, errors.Join(err, r.Close())
}

var errTooLarge = fmt.Errorf("larger than the limit of %d MiB", manifests.MaxBytes>>20)

// readAll reads no more than one byte beyond the limit. size is a guess.
func readAll(r io.Reader, size int64) ([]byte, error) {
	buf := make([]byte, 0, min(max(size, 0), manifests.MaxBytes)+512)
	for {
		n, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		switch {
		case len(buf) > manifests.MaxBytes:
			return nil, errTooLarge
		case err == io.EOF:
			return buf, nil
		case err != nil:
			return nil, err
		}
		if len(buf) == cap(buf) {
			buf = slices.Grow(buf, len(buf))
		}
	}
}

// lost is a file that was listed and is not there: renamed in between, most
// likely, so that the next look finds it.
func (l *folder) lost(path string, now time.Time, err error) seen {
	if l.races < maxRaces {
		l.wake(now.Add(namesQuiet))
		return seenNoMore
	}
	if f := l.files[path]; f != nil {
		return l.refuse(f, now, err)
	}
	return seenNoMore
}

// refuse is a file that could not be read.
func (l *folder) refuse(f *file, now time.Time, err error) seen {
	f.sure = false
	res := refusal(f.origin, err.Error())
	return l.decode(f, now, []byte(res.Problems[0].Message), &res)
}

// decode takes in the content of a file. What is broken waits to be believed.
// unread is the result where there is no content to decode.
func (l *folder) decode(f *file, now time.Time, data []byte, unread *manifests.Result) seen {
	sum := sha256.Sum256(data)
	if unread != nil {
		sum[0] ^= 1 // the text of a failure is not the content that reads alike
	}
	if f.decoded && sum == f.sum {
		return l.believe(f, now)
	}
	f.sum, f.decoded = sum, true
	if unread == nil {
		res := l.cfg.Parse(data, f.origin)
		if slices.ContainsFunc(res.Documents, func(d manifests.Document) bool { return d.Object != nil }) {
			l.recall(f) // one may have been immutable
		}
		res = keepSealed(f.docs, res)
		unread = &res
	}
	f.pending = unread
	if failed(unread.Problems) {
		f.broken = f.broken.extended(now)
	} else {
		f.broken = span{}
	}
	return l.believe(f, now)
}

// believe puts what a file said into force, at once if it is good.
func (l *folder) believe(f *file, now time.Time) seen {
	if f.pending == nil {
		return seenSame
	}
	if end := f.broken.end(brokenQuiet, brokenLimit); f.broken != (span{}) && now.Before(end) && !l.longBroken(f) {
		l.wake(end)
		l.recall(f)
		return seenUnfinished
	}
	res := *f.pending
	f.pending = nil
	if failed(res.Problems) {
		l.recall(f)
	}
	before := f.problems
	f.docs, f.stale = hold(f.docs, res)
	f.problems, f.read = res.Problems, true
	l.unkept[f.origin.Name] = f
	if !failed(res.Problems) {
		l.log.Info("manifest read", append([]any{"origin", f.origin.Name}, namesOf(f.docs)...)...)
	}
	logProblems(l.log, before, f.problems)
	return seenChanged
}

// longBroken: at start a file that was last changed a while ago is not being
// written.
func (l *folder) longBroken(f *file) bool {
	if l.listed {
		return false
	}
	age := l.cfg.Now().UnixNano() - f.observed.Modified
	return age < 0 || age >= int64(brokenQuiet)
}

// recall gives a file that was never believed the last good documents that the
// store has of it.
func (l *folder) recall(f *file) {
	if f.read || f.recalled {
		return
	}
	f.recalled = true
	_, f.docs = recall(l.cfg.Store, l.cfg.Parse, l.log, recordName(f.origin))
}
