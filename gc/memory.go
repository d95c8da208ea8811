package gc

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"time"
)

const (
	memoryFile    = "images.json"
	memoryVersion = 1
)

// memory is what the root dir remembers of images (law 5): a lost file makes all of
// them another's, which keeps them.
type memory struct {
	Version int `json:"version"`
	// Images by ID.
	Images map[string]ImageHistory `json:"images,omitempty"`
	// Named are the references of everything that was desired, when all sources had
	// said so last, and since.
	Named []string `json:"named,omitempty"`
}

// named returns the references that count as desired: with a source that is silent,
// those from before, too (law 1).
func (m memory) named(wanted Wanted) []string {
	names := slices.Clone(wanted.Names)
	if !wanted.Whole {
		names = append(names, m.Named...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// learn takes over which images the agent ran.
func (c *ImageCollector) learn() {
	if c.memory.Version == 0 {
		c.load()
	}
	c.mu.Lock()
	ran := c.ran
	c.ran = make(map[string]time.Time)
	c.mu.Unlock()
	changed := false
	for id, at := range ran {
		h := c.memory.Images[id]
		changed = changed || !h.Ours
		h.Ours = true
		c.memory.Images[id] = h.follow(true, at)
	}
	if changed {
		c.save()
	}
}

func (c *ImageCollector) load() {
	c.memory = memory{Version: memoryVersion, Images: make(map[string]ImageHistory)}
	if c.Store == nil {
		return
	}
	data, err := c.Store.ReadFile(memoryFile)
	var read memory
	if err == nil {
		err = json.Unmarshal(data, &read)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil, read.Version != memoryVersion:
		c.Log.Warn("what is remembered of images cannot be read and counts as lost: they stay", "file", memoryFile, "err", err)
	default:
		maps.Copy(c.memory.Images, read.Images)
		c.memory.Named = read.Named
	}
}

// save writes what changed. When an image in use was last seen so changes at each
// pass: that alone is written once a period.
func (c *ImageCollector) save() {
	if c.Store == nil || c.memory.like(c.saved) && time.Since(c.savedAt) < c.period() {
		return
	}
	data, err := json.Marshal(c.memory)
	if err == nil {
		err = c.Store.WriteFile(memoryFile, data)
	}
	if err == nil {
		c.saved = memory{Images: maps.Clone(c.memory.Images), Named: c.memory.Named}
		c.savedAt, c.unsaved = time.Now(), false
		return
	}
	if !c.unsaved {
		c.Log.Warn("what is known of images cannot be remembered", "err", err)
	}
	c.unsaved = true
}

// like reports whether both know the same but for when images were last in use.
func (m memory) like(o memory) bool {
	return slices.Equal(m.Named, o.Named) && maps.EqualFunc(m.Images, o.Images, func(a, b ImageHistory) bool {
		a.Used, b.Used = time.Time{}, time.Time{}
		return a == b
	})
}
