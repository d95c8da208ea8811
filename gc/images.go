package gc

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/podkeeper/podkeeper/node/stats"
	"github.com/podkeeper/podkeeper/runtime"
)

// ImagePolicy says which images stay.
type ImagePolicy struct {
	// Off: none is ever removed.
	Off bool
	// High and Low are percentages of the image filesystem in use: from High on,
	// images go until it is below Low. High 100 is never.
	High, Low int
	// MinAge is for how long an image must have been in nobody's use; MaxAge is after
	// how long it goes although there is room, 0 for never.
	MinAge, MaxAge time.Duration
	// Pinned are globs of the names of images that stay, where * and ? stand for any
	// characters, a / too. A name may be the short or the full one, with or without
	// its tag, one by digest, or an ID.
	Pinned []string
	// Foreign: those may go, too, that the agent neither pulled nor ran.
	Foreign bool
}

// DefaultImagePolicy is the kubelet's, but for the images of others, which stay.
func DefaultImagePolicy() ImagePolicy { return ImagePolicy{High: 85, Low: 80, MinAge: 2 * time.Minute} }

// ImageHistory is what is remembered of an image of the engine.
type ImageHistory struct {
	// Ours: the agent pulled it, or ran a container from it.
	Ours bool `json:"ours,omitempty"`
	// Seen is when it was first seen, Used when it was last seen in use, zero for
	// never. Unused is since when it was not seen in use, zero while it is.
	Seen   time.Time `json:"seen"`
	Used   time.Time `json:"used,omitzero"`
	Unused time.Time `json:"unused,omitzero"`
}

// Image is one image of the engine, and what is known of it.
type Image struct {
	runtime.StoredImage
	ImageHistory
	// Wanted: something that is desired names it, or all sandboxes need it.
	Wanted bool
}

// ImageRemoval is an image that is to go, and why, in words.
type ImageRemoval struct {
	Image
	Why string
	// Old: it goes for its age, however much room there is.
	Old bool
}

// follow returns the history of an image that is seen again.
func (h ImageHistory) follow(used bool, now time.Time) ImageHistory {
	if h.Seen.IsZero() {
		h.Seen = now
	}
	switch {
	case used:
		h.Used, h.Unused = now, time.Time{}
	case h.Unused.IsZero() || h.Unused.After(now): // the clock was set back
		h.Unused = now
	}
	return h
}

// age is for how long an image was in nobody's use, at least: one that was just
// built was not there before.
func (i Image) age(now time.Time) time.Duration {
	age := now.Sub(i.Unused)
	if !i.Built.IsZero() {
		age = min(age, now.Sub(i.Built))
	}
	return age
}

// SelectImages returns the images to remove, in that order: those over the
// maximum age, and those least recently used until need bytes are free, by the
// sizes that the engine tells. It selects none that is in use, wanted, pinned,
// younger than the minimum age or, unless the policy lets it, another's.
func SelectImages(images []Image, policy ImagePolicy, need int64, why string, now time.Time) []ImageRemoval {
	if policy.Off {
		return nil
	}
	pinned := matcher(policy.Pinned)
	var allowed []Image
	for _, i := range images {
		if i.InUse || i.Wanted || !i.Ours && !policy.Foreign || i.Unused.IsZero() || i.age(now) < policy.MinAge || pinned(i.StoredImage) {
			continue
		}
		allowed = append(allowed, i)
	}
	slices.SortFunc(allowed, func(a, b Image) int {
		return cmp.Or(a.Used.Compare(b.Used), a.Seen.Compare(b.Seen), cmp.Compare(a.ID, b.ID))
	})
	var removals, spare []ImageRemoval
	for _, i := range allowed {
		if policy.MaxAge > 0 && i.age(now) >= policy.MaxAge {
			removals = append(removals, ImageRemoval{Image: i, Old: true, Why: fmt.Sprintf("in nobody's use for %s", i.age(now).Round(time.Second))})
			need -= i.Size
		} else {
			spare = append(spare, ImageRemoval{Image: i, Why: why})
		}
	}
	for _, r := range spare {
		if need <= 0 {
			break
		}
		removals = append(removals, r)
		need -= r.Size
	}
	return removals
}

// everything is a need that no image fills.
const everything = math.MaxInt64

// need returns how many bytes are to be freed of a filesystem: what brings it below
// Low, and 0 below High unless that has begun.
func (p ImagePolicy) need(fs stats.Filesystem, begun bool) int64 {
	if fs.Capacity <= 0 || p.High >= 100 || !begun && percentUsed(fs) < float64(p.High) {
		return 0
	}
	free := fs.Capacity/100*int64(100-p.Low) + fs.Capacity%100*int64(100-p.Low)/100
	return max(free-fs.Available+1, 0)
}

func percentUsed(fs stats.Filesystem) float64 {
	return 100 - 100*float64(fs.Available)/float64(max(fs.Capacity, 1))
}

// CheckPinned reports what is wrong with a glob of pinned images.
func CheckPinned(glob string) error {
	if glob == "" || strings.ContainsFunc(glob, func(r rune) bool { return r <= ' ' }) {
		return fmt.Errorf("%q: want a glob of the names of images, such as registry.example/base/*", glob)
	}
	return nil
}

// matcher returns what reports whether any of the globs is about an image.
func matcher(globs []string) func(runtime.StoredImage) bool {
	if len(globs) == 0 {
		return func(runtime.StoredImage) bool { return false }
	}
	var all []string
	for _, g := range globs {
		g = strings.ReplaceAll(regexp.QuoteMeta(g), `\*`, ".*")
		all = append(all, strings.ReplaceAll(g, `\?`, "."))
	}
	re := regexp.MustCompile("^(?s:" + strings.Join(all, "|") + ")$")
	return func(i runtime.StoredImage) bool { return slices.ContainsFunc(i.Spellings(), re.MatchString) }
}
