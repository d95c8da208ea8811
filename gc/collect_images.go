package gc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/docker/go-units"

	"github.com/podkeeper/podkeeper/node/stats"
	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/runtime"
)

// Wanted says which images may not go because of what is desired.
type Wanted struct {
	// Names are the references of everything that is desired, running or not.
	Names []string
	// Whole: every source has said all that it has to say (law 1). Otherwise what it
	// said before counts, too.
	Whole bool
}

// Freed is what a pass took away.
type Freed struct {
	Count int
	// Bytes are as the engine tells the sizes of images, shared layers included; 0
	// where nobody told any.
	Bytes int64
}

// ImageConfig is what the collector of images works with and on.
type ImageConfig struct {
	Policy ImagePolicy
	// Keep are references that stay whatever is desired: what sandboxes run from.
	Keep []string
	// Images lists every image of the engine.
	Images func(context.Context) ([]runtime.StoredImage, error)
	// Wanted tells what is desired now.
	Wanted func(context.Context) (Wanted, error)
	// Remove removes an image unless it is wanted by now: then it reports false.
	Remove func(context.Context, runtime.StoredImage) (bool, error)
	// Usage is that of the filesystem of the images.
	Usage func(context.Context) (*stats.Filesystem, error)
	// Store is where the history of images lies; without one a restart forgets it.
	Store Store
	// Period is how often it looks; 0 is every five minutes.
	Period time.Duration
	Event  pod.Sink
	// Removed is told of each image that went; nil is nobody.
	Removed func(ImageRemoval)
	Log     *slog.Logger
}

// Store is the root dir. Writes are atomic.
type Store interface {
	ReadFile(name string) ([]byte, error)
	WriteFile(name string, data []byte) error
}

// ImageCollector removes images that nobody needs. It can be asked from several goroutines; it
// makes one pass at a time.
type ImageCollector struct {
	ImageConfig
	turn   chan struct{} // holds one token while a pass is made
	memory memory        // of whoever has the turn
	// saved is the memory that was written last, at savedAt; unsaved: it was said that it
	// cannot be.
	saved   memory
	savedAt time.Time
	unsaved bool
	// failed and short are the events that were sent last, until things are well again.
	failed, short bool

	mu sync.Mutex
	// ran are the images that the agent pulled or ran since the last pass.
	ran   map[string]time.Time
	fresh chan struct{} // holds one token while one of them is new
}

// NewImageCollector returns one that Run has look.
func NewImageCollector(cfg ImageConfig) *ImageCollector {
	if cfg.Removed == nil {
		cfg.Removed = func(ImageRemoval) {}
	}
	return &ImageCollector{ImageConfig: cfg, turn: make(chan struct{}, 1), ran: make(map[string]time.Time), fresh: make(chan struct{}, 1)}
}

// Ran says that the agent pulled that image, or runs a container from it. It does
// not wait.
func (c *ImageCollector) Ran(id string) {
	if id == "" || c.Policy.Off {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.ran[id]; !known {
		select {
		case c.fresh <- struct{}{}:
		default:
		}
	}
	c.ran[id] = time.Now()
}

// Run looks once a period until ctx ends, and keeps what it remembers on the disk.
func (c *ImageCollector) Run(ctx context.Context) error {
	if c.Policy.Off {
		return nil
	}
	tick := time.NewTicker(c.period())
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-c.fresh:
			c.passing(ctx, c.learn)
		case <-tick.C:
			c.passing(ctx, func() { c.pass(ctx, false) })
		}
	}
}

// Remember keeps on the disk what Ran said, for who does not call Run.
func (c *ImageCollector) Remember(ctx context.Context) {
	if !c.Policy.Off {
		c.passing(ctx, c.learn)
	}
}

// Reclaim removes every image that may go, whatever the thresholds say: the disk
// is needed for something else. It waits for a pass that is under way.
func (c *ImageCollector) Reclaim(ctx context.Context) (freed Freed) {
	if !c.Policy.Off {
		c.passing(ctx, func() { freed = c.pass(ctx, true) })
	}
	return freed
}

// passing runs f unless ctx ends before it can.
func (c *ImageCollector) passing(ctx context.Context, f func()) {
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
		f()
	case <-ctx.Done():
	}
}

func (c *ImageCollector) period() time.Duration { return cmp.Or(c.Period, 5*time.Minute) }

func (c *ImageCollector) pass(ctx context.Context, all bool) (freed Freed) {
	c.learn()
	stay := make(map[string]bool)
	need, why := int64(everything), underPressure
	var errs []error
	begun, got := false, 0 // images, in the last round
	for before := need; ; before = need {
		if !all {
			var err error
			need, why, err = c.need(ctx, begun)
			errs = append(errs, err)
		}
		if begun && got > 0 && need >= before {
			break // a filesystem may be slow to tell of what was freed
		}
		removed, more, err := c.round(ctx, need, why, stay)
		if ctx.Err() != nil {
			return freed // the agent is stopping
		}
		errs = append(errs, err)
		freed.Count += removed.Count
		freed.Bytes += removed.Bytes
		if !more {
			break
		}
		got = removed.Count
		begun = begun || !all && need > 0
	}
	c.sayFailure(errors.Join(errs...))
	if !all {
		c.sayShortage(need, why, freed)
	}
	if freed.Count > 0 {
		c.Log.Info("images removed", "count", freed.Count, "size", units.HumanSize(float64(freed.Bytes)), "reason", why)
	}
	return freed
}

// need returns how many bytes are to be freed, and why.
func (c *ImageCollector) need(ctx context.Context, begun bool) (int64, string, error) {
	fs, err := c.Usage(ctx)
	switch {
	case err != nil:
		return 0, "", fmt.Errorf("the image filesystem cannot be looked at: %w", err)
	case fs == nil:
		return 0, "", nil // the engine does not say where it is
	}
	return c.Policy.need(*fs, begun), fmt.Sprintf("the image filesystem is %.1f%% full, and to be below %d%%", percentUsed(*fs), c.Policy.Low), nil
}

// round removes once what SelectImages says, but for what has to stay. What was tried
// is added to that, also what an engine goes on listing. more: there may be more to
// remove than what was. Images share layers, so that what they free is less than their
// sizes, and one that others were made from may go only after them.
func (c *ImageCollector) round(ctx context.Context, need int64, why string, stay map[string]bool) (freed Freed, more bool, err error) {
	images, err := c.inventory(ctx)
	if err != nil {
		return freed, false, err
	}
	images = slices.DeleteFunc(images, func(i Image) bool { return stay[i.ID] })
	var errs []error
	for _, r := range SelectImages(images, c.Policy, need, why, time.Now()) {
		removed, err := c.Remove(ctx, r.StoredImage)
		if ctx.Err() != nil {
			return freed, false, nil
		}
		more, stay[r.ID] = true, true
		if !removed {
			if !errors.Is(err, runtime.ErrInUse) { // since the list was made
				errs = append(errs, err)
			}
			continue
		}
		freed.Count++
		freed.Bytes += r.Size
		c.Removed(r)
		c.Log.Info("image removed", "image", label(r.StoredImage), "id", r.ID, "size", units.HumanSize(float64(r.Size)), "reason", r.Why)
	}
	return freed, more, errors.Join(errs...)
}

// label is what people know an image by.
func label(i runtime.StoredImage) string {
	for _, list := range [][]string{i.Names, i.Digests, {i.ID}} {
		if len(list) > 0 {
			return list[0]
		}
	}
	return ""
}

// inventory lists the images, and remembers what it sees.
func (c *ImageCollector) inventory(ctx context.Context) ([]Image, error) {
	listed, err := c.Images(ctx)
	if err != nil {
		return nil, err
	}
	wanted, err := c.Wanted(ctx) // after the list: what came since is refused by Remove
	if err != nil {
		return nil, err
	}
	named := c.memory.named(wanted)
	references := runtime.NewReferences(append(named, c.Keep...)...)
	now := time.Now()
	images := make([]Image, 0, len(listed))
	next := memory{Version: memoryVersion, Named: named, Images: make(map[string]ImageHistory, len(listed))}
	for _, stored := range listed {
		i := Image{StoredImage: stored, Wanted: references.Mean(stored)}
		i.ImageHistory = c.memory.Images[stored.ID].follow(i.Wanted || i.InUse, now)
		next.Images[stored.ID] = i.ImageHistory
		images = append(images, i)
	}
	c.memory = next
	c.save()
	return images, nil
}

func (c *ImageCollector) sayFailure(err error) {
	if err != nil && !c.failed {
		c.Event(pod.Event{Type: pod.EventWarning, Reason: pod.ImageGCFailed, Message: fmt.Sprintf("images cannot be collected: %v", err)})
	}
	c.failed = err != nil
}

// sayShortage tells when what could go was not enough.
func (c *ImageCollector) sayShortage(need int64, why string, freed Freed) {
	if need > 0 && !c.short {
		c.Event(pod.Event{Type: pod.EventWarning, Reason: pod.FreeDiskSpaceFailed, Message: fmt.Sprintf(
			"%s, which takes %s more; %d images were removed, and that is not enough", why, units.HumanSize(float64(need)), freed.Count)})
	}
	c.short = need > 0
}
