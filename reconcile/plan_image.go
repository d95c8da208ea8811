package reconcile

import (
	"fmt"
	"slices"

	"github.com/distribution/reference"
	v1 "k8s.io/api/core/v1"
)

// images looks up or pulls, beside the making of the sandbox, what the
// containers will need.
func (g *generationPlan) images(attempt func(string) int) {
	for _, m := range g.members {
		if w, ok := g.image(m.Container, attempt(m.Name)); !ok {
			g.wait(m.Name, w)
		}
	}
}

// needed is an image that a container needs, its own or that of a volume.
type needed struct {
	name   string
	policy v1.PullPolicy
}

// neededBy returns the images that a container needs, its own first.
func neededBy(p *v1.Pod, c *v1.Container) []needed {
	list := []needed{{c.Image, c.ImagePullPolicy}}
	for _, m := range c.VolumeMounts {
		if v, ok := volumeOf(p, m.Name); ok && v.Image != nil {
			list = append(list, needed{v.Image.Reference, v.Image.PullPolicy})
		}
	}
	return list
}

// image reports whether the images of a container are ready for that attempt, and
// if not, plans how to get them.
func (g *generationPlan) image(spec *v1.Container, attempt int) (Waiting, bool) {
	var first Waiting
	all := true
	for _, need := range neededBy(g.pod.Object, spec) {
		if w, ok := g.getImage(need, spec.Name, attempt); !ok && all {
			first, all = w, false
		}
	}
	return first, all
}

func (g *generationPlan) getImage(need needed, container string, attempt int) (Waiting, bool) {
	name := need.name
	if _, err := reference.ParseNormalizedNamed(name); err != nil {
		return Waiting{InvalidImageName, fmt.Sprintf("image %q: %v", name, err)}, false
	}
	image, known := g.in.Images[name]
	always, never := need.policy == v1.PullAlways, need.policy == v1.PullNever
	if always && g.in.Pulled[Pull{container, g.uid, name, attempt}] || !always && image.Present {
		return Waiting{}, true
	}
	switch {
	case image.Failed > 0 && g.in.Now.Before(image.Retry):
		g.wakeAt(image.Retry)
		if never {
			return Waiting{ErrImageNeverPull, image.Message}, false
		}
		return Waiting{ImagePullBackOff, fmt.Sprintf("back-off pulling image %q: %s", name, image.Message)}, false
	case never && known && g.in.Now.Before(image.Recheck):
		g.wakeAt(image.Recheck)
	case never:
		g.fetch(Step{Verb: CheckImage, Image: name, Reason: PolicyNever})
	case always:
		g.fetch(Step{Verb: PullImage, Image: name, Container: container, Attempt: attempt, Reason: PolicyAlways})
	case !known:
		g.fetch(Step{Verb: CheckImage, Image: name})
	default:
		g.fetch(Step{Verb: PullImage, Image: name, Reason: ImageAbsent})
	}
	switch {
	case never && known:
		return Waiting{ErrImageNeverPull, "the image is not present and its pull policy is Never"}, false
	case image.Failed > 0:
		return Waiting{ErrImagePull, image.Message}, false
	default:
		return Waiting{Reason: g.creating()}, false
	}
}

// recheckImage looks, from time to time, whether the name of an image that cannot
// be run stands for another one.
func (g *generationPlan) recheckImage(spec *v1.Container, attempt int) {
	switch recheck := g.in.Images[spec.Image].Recheck; {
	case g.in.Now.Before(recheck):
		g.wakeAt(recheck)
	case spec.ImagePullPolicy == v1.PullAlways:
		g.fetch(Step{Verb: PullImage, Image: spec.Image, Container: spec.Name, Attempt: attempt, Reason: PolicyAlways})
	default:
		g.fetch(Step{Verb: CheckImage, Image: spec.Image})
	}
}

func (g *generationPlan) fetch(s Step) {
	s.Pod, s.UID = g.in.Key, g.uid
	if !slices.Contains(g.plan.Images, s) {
		g.plan.Images = append(g.plan.Images, s)
	}
}
