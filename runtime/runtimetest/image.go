package runtimetest

import (
	"errors"
	"path"
	"slices"
	"testing"

	"github.com/podkeeper/podkeeper/runtime"
)

// imageNames are unlike those of another test: a sandbox's id is in them.
func imageNames(sandbox runtime.Container) (first, second, third string) {
	repository := "registry.local/" + sandbox.ID[:12]
	return repository + ":1", repository + ":2", path.Join(repository, "other:1")
}

// stored returns the image of that name.
func (b bench) stored(t *testing.T, name string) (image runtime.StoredImage, there bool) {
	t.Helper()
	list, err := b.Runtime.Images(b.ctx)
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(list, func(i runtime.StoredImage) bool { return slices.Contains(i.Names, name) })
	if at < 0 {
		return image, false
	}
	return list[at], true
}

func imageRemoved(t *testing.T, b bench) {
	first, second, third := imageNames(b.sandbox(t))
	for what, names := range map[string][]string{
		"one name":                    {first},
		"two names in one repository": {first, second},
		"names in two repositories":   {first, second, third},
	} {
		b.Somebody.MakeImage(t, names...)
		image, there := b.stored(t, first)
		slices.Sort(names)
		slices.Sort(image.Names)
		if !there || !slices.Equal(image.Names, names) || image.InUse || image.Size == 0 {
			t.Errorf("%s: got %+v, there %t; want it by its names, with its size, and not in use", what, image, there)
		}
		for range 2 { // law 4
			if err := b.Runtime.RemoveImage(b.ctx, image.ID); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
		for _, name := range names {
			if _, err := b.Runtime.Image(b.ctx, name); !errors.Is(err, runtime.ErrImageNotFound) {
				t.Errorf("%s: look-up of %s after the removal: %v, want ErrImageNotFound", what, name, err)
			}
		}
	}
	if _, there := b.stored(t, b.Image); !there {
		t.Errorf("%s went too", b.Image)
	}
}

func imageInUse(t *testing.T, b bench) {
	sandbox := b.sandbox(t)
	first, _, third := imageNames(sandbox)
	b.Somebody.MakeImage(t, first, third)
	spec := b.containerSpec(sandbox, "app", b.Forever)
	spec.Image = third
	id, err := b.Runtime.EnsureContainer(b.ctx, spec)
	if err != nil {
		t.Fatal(err)
	}
	refused := func(when string) {
		image, there := b.stored(t, first)
		if !there || !image.InUse {
			t.Fatalf("%s: got %+v, there %t; want it in use", when, image, there)
		}
		if err := b.Runtime.RemoveImage(b.ctx, image.ID); !errors.Is(err, runtime.ErrInUse) {
			t.Errorf("%s: removed: %v, want ErrInUse", when, err)
		}
		if image, there = b.stored(t, first); !there || !slices.Contains(image.Names, third) {
			t.Errorf("%s: got %+v, there %t; want it under both names still", when, image, there)
		}
	}
	refused("before its container starts")
	if err := b.Runtime.Start(b.ctx, id); err != nil {
		t.Fatal(err)
	}
	refused("while its container runs")
	b.Somebody.Kill(t, id)
	refused("after its container ended")
	if err := b.Runtime.Remove(b.ctx, id); err != nil {
		t.Fatal(err)
	}
	image, _ := b.stored(t, first)
	if err := b.Runtime.RemoveImage(b.ctx, image.ID); image.InUse || err != nil {
		t.Errorf("without a container: got %+v, removed: %v", image, err)
	}
}
