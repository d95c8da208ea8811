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

// image reports whether the image of a container is ready for that attempt, and
// if not, plans how to get it.
func (g *generationPlan) image(spec *v1.Container, attempt int) (Waiting, bool) {
	if _, err := reference.ParseNormalizedNamed(spec.Image); err != nil {
		return Waiting{InvalidImageName, fmt.Sprintf("image %q: %v", spec.Image, err)}, false
	}
	image, known := g.in.Images[spec.Image]
	always, never := spec.ImagePullPolicy == v1.PullAlways, spec.ImagePullPolicy == v1.PullNever
	if always && g.in.Pulled[spec.Name] == (Pull{g.uid, spec.Image, attempt}) || !always && image.Present {
		return Waiting{}, true
	}
	switch {
	case image.Failed > 0 && g.in.Now.Before(image.Retry):
		g.wakeAt(image.Retry)
		if never {
			return Waiting{ErrImageNeverPull, image.Message}, false
		}
		return Waiting{ImagePullBackOff, fmt.Sprintf("back-off pulling image %q: %s", spec.Image, image.Message)}, false
	case never && known && g.in.Now.Before(image.Recheck):
		g.wakeAt(image.Recheck)
	case never:
		g.fetch(Step{Verb: CheckImage, Image: spec.Image, Reason: PolicyNever})
	case always:
		g.fetch(Step{Verb: PullImage, Image: spec.Image, Container: spec.Name, Attempt: attempt, Reason: PolicyAlways})
	case !known:
		g.fetch(Step{Verb: CheckImage, Image: spec.Image})
	default:
		g.fetch(Step{Verb: PullImage, Image: spec.Image, Reason: ImageAbsent})
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
