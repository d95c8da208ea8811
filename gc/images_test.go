package gc_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/podkeeper/podkeeper/gc"
	"github.com/podkeeper/podkeeper/runtime"
)

// image is one that may go: the agent's, an hour old, 10 bytes.
func image(name string, edit func(*gc.Image)) gc.Image {
	i := gc.Image{
		StoredImage:  runtime.StoredImage{ID: "sha256:" + name, Names: []string{name + ":1"}, Size: 10},
		ImageHistory: gc.ImageHistory{Ours: true, Seen: now.Add(-2 * time.Hour), Used: now.Add(-time.Hour), Unused: now.Add(-time.Hour)},
	}
	if edit != nil {
		edit(&i)
	}
	return i
}

func imageNames(list []gc.ImageRemoval) string {
	var names []string
	for _, r := range list {
		names = append(names, strings.TrimPrefix(r.ID, "sha256:"))
	}
	return strings.Join(names, " ")
}

func TestSelectImages(t *testing.T) {
	used := func(name string, ago time.Duration) gc.Image {
		return image(name, func(i *gc.Image) { i.Used, i.Unused = now.Add(-ago), now.Add(-ago) })
	}
	policy := gc.DefaultImagePolicy()
	with := func(edit func(*gc.ImagePolicy)) gc.ImagePolicy {
		p := policy
		edit(&p)
		return p
	}
	pinned := func(globs ...string) gc.ImagePolicy { return with(func(p *gc.ImagePolicy) { p.Pinned = globs }) }
	both := image("r.example/a/b", func(i *gc.Image) { i.Digests = []string{"r.example/a/b@sha256:" + strings.Repeat("0", 64)} })
	three := []gc.Image{used("b", 2*time.Hour), used("c", time.Hour), used("a", 3*time.Hour)}
	for name, c := range map[string]struct {
		images []gc.Image
		policy gc.ImagePolicy
		need   int64
		want   string
	}{
		"the least recently used first":      {three, policy, 1000, "a b c"},
		"no more than there is need of":      {three, policy, 11, "a b"},
		"none where there is no need":        {three, policy, 0, ""},
		"off":                                {three, with(func(p *gc.ImagePolicy) { p.Off = true }), 1000, ""},
		"one that was never used goes first": {append(slices.Clone(three), image("n", func(i *gc.Image) { i.Used = time.Time{} })), policy, 1, "n"},
		"one in use stays":                   {[]gc.Image{image("a", func(i *gc.Image) { i.InUse = true })}, policy, 1, ""},
		"one that is wanted stays":           {[]gc.Image{image("a", func(i *gc.Image) { i.Wanted = true })}, policy, 1, ""},
		"another's stays":                    {[]gc.Image{image("a", func(i *gc.Image) { i.Ours = false })}, policy, 1, ""},
		"another's goes where it may":        {[]gc.Image{image("a", func(i *gc.Image) { i.Ours = false })}, with(func(p *gc.ImagePolicy) { p.Foreign = true }), 1, "a"},
		"one used until just now stays":      {[]gc.Image{used("a", 119*time.Second), used("b", 2*time.Minute)}, policy, 1000, "b"},
		"one that was just built stays":      {[]gc.Image{image("a", func(i *gc.Image) { i.Built = now.Add(-time.Minute) })}, policy, 1, ""},
		"one whose use has not ended stays":  {[]gc.Image{image("a", func(i *gc.Image) { i.Unused = time.Time{} })}, policy, 1, ""},
		"one over the maximum age goes":      {three, with(func(p *gc.ImagePolicy) { p.MaxAge = 2 * time.Hour }), 0, "a b"},
		"... and counts as freed":            {three, with(func(p *gc.ImagePolicy) { p.MaxAge = 3 * time.Hour }), 20, "a b"},
		"pinned by name":                     {[]gc.Image{both}, pinned("r.example/a/b"), 1, ""},
		"pinned by name and tag":             {[]gc.Image{both}, pinned("no", "r.example/*:1"), 1, ""},
		"pinned by digest":                   {[]gc.Image{both}, pinned("*@sha256:0000*"), 1, ""},
		"pinned in full":                     {three, pinned("docker.io/library/[ab]", "docker.io/library/?:1"), 1000, ""},
		"everything is pinned":               {[]gc.Image{image("a", func(i *gc.Image) { i.Names = nil })}, pinned("*"), 1, ""},
		"a glob is about the whole name":     {[]gc.Image{both}, pinned("example", "r.example", "a/b*"), 1, "r.example/a/b"},
	} {
		if got := imageNames(gc.SelectImages(c.images, c.policy, c.need, "why", now)); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// Law 9: whatever there is, nothing protected is selected, there is enough as far
// as there can be, no more than that, and the least recently used is first.
func TestSelectImagesProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ago := func(what string) time.Time {
			return now.Add(-time.Duration(rapid.IntRange(-60, 600).Draw(t, what)) * time.Second)
		}
		var images []gc.Image
		byID := make(map[string]gc.Image)
		for n := range rapid.IntRange(0, 20).Draw(t, "n") {
			i := image(fmt.Sprint("i", n), func(i *gc.Image) {
				i.Size = rapid.Int64Range(0, 50).Draw(t, "size")
				flags := rapid.IntRange(0, 31).Draw(t, "flags")
				i.InUse, i.Wanted, i.Ours = flags == 1, flags == 2, flags > 3
				i.Seen, i.Used, i.Unused, i.Built = ago("seen"), ago("used"), ago("unused"), ago("built")
				if flags == 4 {
					i.Names = []string{"pinned:1"}
				}
			})
			images, byID[i.ID] = append(images, i), i
		}
		policy := gc.ImagePolicy{
			MinAge: 2 * time.Minute, MaxAge: time.Duration(rapid.SampledFrom([]int{0, 300}).Draw(t, "max")) * time.Second,
			Pinned: []string{"pinned"}, Foreign: rapid.Bool().Draw(t, "foreign"),
		}
		need := rapid.Int64Range(0, 400).Draw(t, "need")
		age := func(i gc.Image) time.Duration { return min(now.Sub(i.Unused), now.Sub(i.Built)) }
		protected := func(i gc.Image) bool {
			return i.InUse || i.Wanted || !i.Ours && !policy.Foreign || i.Names[0] == "pinned:1" || age(i) < policy.MinAge
		}
		freed, last := int64(0), gc.Image{}
		for _, r := range gc.SelectImages(images, policy, need, "why", now) {
			old := policy.MaxAge > 0 && age(r.Image) >= policy.MaxAge
			switch {
			case protected(r.Image):
				t.Fatalf("%s is protected: %+v", r.ID, r.Image)
			case !old && freed >= need:
				t.Fatalf("%s goes although %d of %d are free already", r.ID, freed, need)
			case !old && last.ID != "" && r.Used.Before(last.Used):
				t.Fatalf("%s was used before %s, and goes after it", r.ID, last.ID)
			}
			if _, there := byID[r.ID]; !there {
				t.Fatalf("%s goes twice", r.ID)
			}
			delete(byID, r.ID)
			freed += r.Size
			if !old {
				last = r.Image
			}
		}
		for _, i := range byID {
			switch {
			case protected(i):
			case freed < need:
				t.Fatalf("%s stays although only %d of %d are free", i.ID, freed, need)
			case policy.MaxAge > 0 && age(i) >= policy.MaxAge:
				t.Fatalf("%s stays, and is over the maximum age", i.ID)
			case last.ID != "" && i.Used.Before(last.Used):
				t.Fatalf("%s stays, and was used before %s", i.ID, last.ID)
			}
		}
	})
}
