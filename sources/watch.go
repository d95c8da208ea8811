package sources

// Watcher gives hints that something happened to files. Hints may be late, lost,
// doubled or wrong; nothing but latency depends on them.
type Watcher interface {
	// Watch begins with no folder watched. An error means that there will be no
	// hints; it may be tried again later.
	Watch() (Watch, error)
}

// Watch is one reader's view of a Watcher. All methods but Ready are called by
// one goroutine.
type Watch interface {
	// Ready can be received from when there is something to Take.
	Ready() <-chan struct{}
	// Take returns the hints since the last Take, in the order they came first.
	Take() []Hint
	// Set replaces the watched folders. It may be called again with the same:
	// folders whose watch got lost are then watched anew. An error says that
	// some cannot be watched; one that is not there is no error.
	Set(dirs []Dir) error
	// Close ends it and frees what it holds.
	Close()
}

// Dir is a folder to watch: its path without links, and which folder is meant by
// it, since another one may take its place.
type Dir struct {
	Path     string
	Dev, Ino uint64
}

// Hint says that something happened to Path: a watched folder or what lies
// directly in one. The empty path stands for anything.
type Hint struct {
	Path string
	Op   Op
}

// Op is what happened, as far as it matters here.
type Op uint8

// The ops, a set of bits.
const (
	// Changed: made, removed, renamed from or to.
	Changed Op = 1 << iota
	// Written: content or metadata changed in place.
	Written
)
