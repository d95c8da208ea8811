package fake

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/podkeeper/podkeeper/runtime"
)

// Image is what a registry and the engine know of one reference.
type Image struct {
	Present  bool
	Pullable bool
	Denied   bool
	// Login is what a pull has to bring; the zero one lets everybody pull.
	Login runtime.Auth
	// ID is the image's; "" is one of its own. References that share one are names of
	// one image.
	ID   string
	Size int64
	// User and StopSignal are what the image says of itself.
	User, StopSignal string
}

// SetImage says what is known of an image from now on.
func (e *Engine) SetImage(ref string, i Image) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.images[ref] = i
}

func (e *Engine) imageID(ref string) string {
	return cmp.Or(e.images[ref].ID, fmt.Sprintf("sha256:%016x", e.Fate.Hash("image", ref)))
}

// Image implements runtime.Runtime.
func (c *Client) Image(ctx context.Context, ref string) (runtime.ImageInfo, error) {
	var info runtime.ImageInfo
	err := c.do(ctx, "image", ref, time.Millisecond, 5*time.Millisecond, func() error {
		image := c.engine.images[ref]
		if !image.Present {
			return runtime.ErrImageNotFound
		}
		info = runtime.ImageInfo{ID: c.engine.imageID(ref), User: image.User, StopSignal: image.StopSignal}
		return nil
	})
	if err != nil {
		return runtime.ImageInfo{}, fmt.Errorf("inspect image %s: %w", ref, err)
	}
	return info, nil
}

// Pull implements runtime.Runtime. A reference that nobody set is not in the registry.
func (c *Client) Pull(ctx context.Context, ref string, auth runtime.Auth, progress func(runtime.PullProgress)) error {
	err := c.do(ctx, "pull", ref, 300*time.Millisecond, 20*time.Second, func() error {
		switch image := c.engine.images[ref]; {
		case image.Denied, image.Login != (runtime.Auth{}) && image.Login != auth:
			return fmt.Errorf("%s: %w", ref, runtime.ErrImageDenied)
		case !image.Pullable:
			return fmt.Errorf("%s: %w", ref, runtime.ErrImageNotFound)
		default:
			image.Present = true
			c.engine.images[ref] = image
			return nil
		}
	})
	if err != nil {
		return fmt.Errorf("pull image %s: %w", ref, err)
	}
	if progress != nil {
		progress(runtime.PullProgress{Image: ref, Done: 1, Layers: 1, Bytes: 1 << 20, Total: 1 << 20})
	}
	return nil
}

// Images implements runtime.Runtime.
func (c *Client) Images(ctx context.Context) ([]runtime.StoredImage, error) {
	var list []runtime.StoredImage
	err := c.do(ctx, "images", c.rootDir, time.Millisecond, 10*time.Millisecond, func() error {
		list = c.engine.stored()
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list images: %w", err)
	}
	return list, nil
}

// stored returns what is present, by reference.
func (e *Engine) stored() []runtime.StoredImage {
	var list []runtime.StoredImage
	for _, ref := range slices.Sorted(maps.Keys(e.images)) {
		image := e.images[ref]
		if !image.Present {
			continue
		}
		id := e.imageID(ref)
		at := slices.IndexFunc(list, func(i runtime.StoredImage) bool { return i.ID == id })
		if at < 0 {
			at = len(list)
			list = append(list, runtime.StoredImage{ID: id, Size: image.Size, InUse: e.imageInUse(id)})
		}
		if strings.Contains(ref, "@") {
			list[at].Digests = append(list[at].Digests, ref)
		} else {
			list[at].Names = append(list[at].Names, ref)
		}
	}
	return list
}

func (e *Engine) imageInUse(id string) bool {
	for _, c := range e.containers {
		if c.ImageID == id {
			return true
		}
		if c.Spec != nil && slices.ContainsFunc(c.Spec.Mounts, func(m runtime.Mount) bool { return m.Image != "" && e.imageID(m.Image) == id }) {
			return true
		}
	}
	return false
}

// RemoveImage implements runtime.Runtime.
func (c *Client) RemoveImage(ctx context.Context, id string) error {
	err := c.do(ctx, "remove-image", id, 5*time.Millisecond, 500*time.Millisecond, func() error {
		if c.engine.imageInUse(id) {
			return runtime.ErrInUse
		}
		for _, image := range c.engine.stored() {
			if image.ID == id {
				c.engine.Removed(image)
			}
		}
		for ref, image := range c.engine.images {
			if image.Present && c.engine.imageID(ref) == id {
				image.Present = false
				c.engine.images[ref] = image
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("remove image %s: %w", id, err)
	}
	return nil
}

// SetFeatures makes it an engine that can do other things.
func (e *Engine) SetFeatures(f runtime.Features) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.Features = f
}

// Features implements runtime.Runtime.
func (c *Client) Features(ctx context.Context) (runtime.Features, error) {
	var f runtime.Features
	err := c.do(ctx, "features", c.rootDir, time.Millisecond, 10*time.Millisecond, func() error {
		f = c.engine.Features
		f.CgroupDriver = cmp.Or(f.CgroupDriver, runtime.Cgroupfs)
		f.CgroupVersion = cmp.Or(f.CgroupVersion, 1)
		f.Root = cmp.Or(f.Root, "/var/lib/docker")
		return nil
	})
	if err != nil {
		return runtime.Features{}, fmt.Errorf("ask the engine what it can do: %w", err)
	}
	return f, nil
}
