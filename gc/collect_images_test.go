package gc_test

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/podkeeper/podkeeper/gc"
	"github.com/podkeeper/podkeeper/node/stats"
	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/runtime"
)

// disk is an engine with its images, on a filesystem of 1000 bytes.
type disk struct {
	images map[string]runtime.StoredImage
	other  int64 // bytes that are no image's
	shared int64 // of an image's size that its removal does not free
	lost   error // what the filesystem answers
	full   error // what a write does
	writes int
	log    strings.Builder
	wanted gc.Wanted
	files  map[string][]byte
	events []string
	// onRemove is called after each removal; nil is nobody.
	onRemove func()
	// removed in order, until somebody looks.
	removed []string
}

func newDisk() *disk {
	return &disk{images: make(map[string]runtime.StoredImage), files: make(map[string][]byte), wanted: gc.Wanted{Whole: true}}
}

func (d *disk) add(name string, size int64) {
	d.images["sha256:"+name] = runtime.StoredImage{ID: "sha256:" + name, Names: []string{name + ":1"}, Size: size}
}

func (d *disk) use(name string, used bool) {
	i := d.images["sha256:"+name]
	i.InUse = used
	d.images["sha256:"+name] = i
}

// names are those of the images that are there.
func (d *disk) names() string {
	return strings.ReplaceAll(strings.Join(slices.Sorted(maps.Keys(d.images)), " "), "sha256:", "")
}

func (d *disk) took() string {
	defer func() { d.removed = nil }()
	return strings.Join(d.removed, " ")
}

func (d *disk) ReadFile(name string) ([]byte, error) {
	if data, ok := d.files[name]; ok {
		return data, nil
	}
	return nil, fs.ErrNotExist
}

func (d *disk) WriteFile(name string, data []byte) error {
	if d.full != nil {
		return d.full
	}
	d.files[name] = data
	d.writes++
	return nil
}

func (d *disk) collector(policy gc.ImagePolicy) *gc.ImageCollector {
	return gc.NewImageCollector(gc.ImageConfig{
		Policy: policy, Keep: []string{"pause:1"}, Store: d,
		Images: func(context.Context) ([]runtime.StoredImage, error) {
			return slices.Collect(maps.Values(d.images)), nil
		},
		Wanted: func(context.Context) (gc.Wanted, error) { return d.wanted, nil },
		Remove: func(_ context.Context, i runtime.StoredImage) (bool, error) {
			switch i.ID {
			case "sha256:busy":
				return false, runtime.ErrInUse
			case "sha256:stuck":
				return false, errors.New("it does not go")
			}
			if i.ID != "sha256:ghost" {
				delete(d.images, i.ID)
			}
			d.removed = append(d.removed, strings.TrimPrefix(i.ID, "sha256:"))
			d.other += min(d.shared, i.Size)
			if d.onRemove != nil {
				d.onRemove()
			}
			return true, nil
		},
		Usage: func(context.Context) (*stats.Filesystem, error) {
			used := d.other
			for _, i := range d.images {
				used += i.Size
			}
			return &stats.Filesystem{Capacity: 1000, Available: 1000 - used}, d.lost
		},
		Event: func(e pod.Event) { d.events = append(d.events, e.Reason+": "+e.Message) },
		Log:   slog.New(slog.NewTextHandler(&d.log, nil)),
	})
}

// runs lets a collector run for that long.
func runs(t *testing.T, c *gc.ImageCollector, d time.Duration) {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	if err := c.Run(ctx); err != nil {
		t.Error(err)
	}
}

func TestImageCollector(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk()
		for _, name := range []string{"pause", "wanted", "used", "old", "older", "foreign"} {
			d.add(name, 100)
		}
		d.wanted.Names = []string{"wanted:1"}
		d.use("used", true)
		c := d.collector(gc.DefaultImagePolicy())
		for _, name := range []string{"older", "old", "used", "wanted", "pause"} {
			c.Ran("sha256:" + name)
			time.Sleep(time.Second)
		}
		d.other = 249 // 84.9 % with the images
		runs(t, c, 16*time.Minute)
		if got := d.took(); got != "" {
			t.Errorf("below the high mark %s went", got)
		}
		d.other = 250
		runs(t, c, 6*time.Minute)
		if got := d.took(); got != "older" {
			t.Errorf("at the high mark %q went, want the older one, with which it is below the low one", got)
		}
		d.other = 400
		runs(t, c, 6*time.Minute)
		if got := d.took(); got != "old" {
			t.Errorf("over the high mark %q went, want all that may", got)
		}
		if len(d.events) != 1 || !strings.HasPrefix(d.events[0], pod.FreeDiskSpaceFailed+": the image filesystem is 80.0% full") {
			t.Errorf("events %q, want it said once that no more may go", d.events)
		}
		if got := d.names(); got != "foreign pause used wanted" {
			t.Errorf("there are %s", got)
		}
	})
}

// The images of others stay others' over a restart, the agent's its own.
func TestImageHistorySurvives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk()
		d.add("pulled", 300)
		d.add("foreign", 300)
		d.other = 300
		c := d.collector(gc.DefaultImagePolicy())
		c.Ran("sha256:pulled")
		runs(t, c, time.Second) // killed soon after the pull
		d.add("once", 300)
		once := d.collector(gc.DefaultImagePolicy())
		once.Ran("sha256:once")
		once.Remember(t.Context())
		c = d.collector(gc.DefaultImagePolicy())
		if freed := c.Reclaim(t.Context()); freed.Count != 0 {
			t.Errorf("%v went before the minimum age", freed)
		}
		time.Sleep(2 * time.Minute)
		if freed := c.Reclaim(t.Context()); freed.Count != 2 || d.names() != "foreign" {
			t.Errorf("%v went, left is %s; want the foreign one left", freed, d.names())
		}
		d.files["images.json"] = []byte(`{"version":`)
		if freed := d.collector(gc.DefaultImagePolicy()).Reclaim(t.Context()); freed.Count != 0 {
			t.Errorf("with what was remembered lost %v went", freed)
		}
	})
}

// Law 1: a source that is silent, also after a restart, does not give its images up.
func TestImagesOfASilentSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk()
		d.add("a", 450)
		d.add("b", 450)
		c := d.collector(gc.DefaultImagePolicy())
		c.Ran("sha256:a")
		c.Ran("sha256:b")
		d.wanted.Names = []string{"a:1", "b:1"}
		runs(t, c, 6*time.Minute)
		d.wanted = gc.Wanted{Names: []string{"b:1"}}
		c = d.collector(gc.DefaultImagePolicy())
		runs(t, c, 16*time.Minute)
		if got := d.took(); got != "" {
			t.Errorf("%s went although its source is silent", got)
		}
		d.wanted.Whole = true
		runs(t, c, 11*time.Minute)
		if got := d.took(); got != "a" {
			t.Errorf("%q went, want what nobody names", got)
		}
	})
}

// Sizes count layers that images share: the filesystem is asked again. One image
// that cannot be removed keeps no other.
func TestImagesThatShareLayers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk()
		c := d.collector(gc.DefaultImagePolicy())
		for _, name := range []string{"busy", "stuck", "a", "b", "c", "d"} {
			d.add(name, 100)
			c.Ran("sha256:" + name)
			time.Sleep(time.Second)
		}
		runs(t, c, 6*time.Minute)
		d.other, d.shared = 300, 60
		runs(t, c, 11*time.Minute) // each frees 40, and 101 of 900 are to go
		if got := d.took(); got != "a b c" {
			t.Errorf("%q went, want as many as bring it below the low mark", got)
		}
		if len(d.events) != 1 || !strings.HasPrefix(d.events[0], pod.ImageGCFailed+": images cannot be collected: it does not go") {
			t.Errorf("events %q, want the failure said once", d.events)
		}
	})
}

// A filesystem that is slow to tell of what was freed does not cost all images.
func TestImagesOfASlowFilesystem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk()
		c := d.collector(gc.DefaultImagePolicy())
		for _, name := range []string{"a", "b", "c", "d"} {
			d.add(name, 100)
			c.Ran("sha256:" + name)
			time.Sleep(time.Second)
		}
		runs(t, c, 6*time.Minute)
		d.other, d.shared = 500, 100
		runs(t, c, 6*time.Minute)
		if got := d.took(); got != "a b" {
			t.Errorf("%q went, want as many as are enough by their sizes", got)
		}
	})
}

// A filesystem that cannot be looked at stops only what depends on it.
func TestImagesWithoutTheirFilesystem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk()
		d.add("a", 100)
		policy := gc.DefaultImagePolicy()
		policy.MaxAge = 30 * time.Minute
		c := d.collector(policy)
		c.Ran("sha256:a")
		d.lost = errors.New("no such folder")
		runs(t, c, 29*time.Minute)
		if len(d.events) != 1 || !strings.HasPrefix(d.events[0], pod.ImageGCFailed) || d.took() != "" {
			t.Errorf("events %q, want it said once", d.events)
		}
		runs(t, c, 11*time.Minute)
		if got := d.took(); got != "a" {
			t.Errorf("over the maximum age %q went", got)
		}
		off := d.collector(gc.ImagePolicy{Off: true, MaxAge: 1, Foreign: true})
		d.add("b", 900)
		runs(t, off, time.Hour)
		if freed := off.Reclaim(t.Context()); freed.Count != 0 || d.took() != "" {
			t.Errorf("although it is off, %v went", freed)
		}
	})
}

// An image that the engine goes on listing is removed once a pass, not for ever.
func TestImageThatIsListedForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk()
		d.add("ghost", 100)
		c := d.collector(gc.DefaultImagePolicy())
		c.Ran("sha256:ghost")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		d.onRemove = func() {
			if len(d.removed) > 1 {
				cancel()
			}
		}
		c.Reclaim(ctx) // sees it for the first time
		time.Sleep(3 * time.Minute)
		c.Reclaim(ctx)
		if got := d.took(); got != "ghost" {
			t.Errorf("%q went, want it once", got)
		}
	})
}

// What is remembered is written when it changes, not at each look; that it cannot be is
// said once.
func TestImageHistoryIsWrittenWhenItChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk()
		d.add("used", 100)
		d.use("used", true)
		c := d.collector(gc.DefaultImagePolicy())
		for range 20 {
			c.Reclaim(t.Context())
			time.Sleep(10 * time.Second)
		}
		if d.writes != 1 {
			t.Errorf("%d writes, want 1", d.writes)
		}
		time.Sleep(5 * time.Minute)
		if c.Reclaim(t.Context()); d.writes != 2 {
			t.Errorf("%d writes after a period, want 2", d.writes)
		}
		d.add("new", 100)
		d.full = errors.New("no space left")
		c.Reclaim(t.Context())
		c.Reclaim(t.Context())
		d.full = nil
		if c.Reclaim(t.Context()); d.writes != 3 {
			t.Errorf("%d writes with a new image, want 3", d.writes)
		}
		if n := strings.Count(d.log.String(), "cannot be remembered"); n != 1 {
			t.Errorf("it was said %d times that nothing can be written", n)
		}
	})
}
