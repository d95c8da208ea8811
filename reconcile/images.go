package reconcile

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/runtime"
)

// image is one image of the node. Pods share it: one look-up or pull at a time.
type image struct {
	Image
	known bool
	// op is the look-up or pull under way; its verb is empty when there is none.
	op Step
	// away: the engine did not answer.
	away  bool
	users map[pod.Key]bool // pods to look at when something is known
	// always has the attempts that wait for a pull although the image is there.
	always []Step
}

// absent: the engine says that it does not have it.
func (i *image) absent() {
	i.known, i.Present = true, false
	i.Missed++
	i.Recheck = time.Now().Add(imageDelay(i.Missed))
}

// forgive lets what failed because the engine was away be tried at once.
func (i *image) forgive() {
	if i.away {
		i.known, i.away, i.Image = false, false, Image{}
	}
}

func (s *state) image(ref string) *image {
	i := s.images[ref]
	if i == nil {
		i = &image{users: make(map[pod.Key]bool)}
		s.images[ref] = i
	}
	return i
}

// fetchImages starts the look-ups and pulls that a plan asks for.
func (s *state) fetchImages(e *entry) {
	if !s.online {
		return
	}
	for _, step := range e.plan.Images {
		if s.cfg.LookOnly && step.Verb != CheckImage {
			continue
		}
		i := s.image(step.Image)
		i.users[e.key] = true
		if step.Reason == PolicyAlways && !slices.Contains(i.always, step) && (i.op.Verb == "" || i.op.Reason == PolicyAlways) {
			i.always = append(i.always, step)
		}
		if i.op.Verb != "" {
			continue
		}
		i.op = step
		ctx := s.ctx
		s.spawn(func() {
			info, present, err := s.fetch(ctx, step)
			s.report(ctx, func(s *state) { s.foldImage(step, info, present, err) })
		})
	}
}

// fetch looks an image up, or pulls it.
func (l *Loop) fetch(ctx context.Context, step Step) (info runtime.ImageInfo, present bool, err error) {
	rt := l.deps.Runtime
	if step.Reason != PolicyAlways {
		switch info, err = rt.Image(ctx, step.Image); {
		case err == nil:
			return info, true, nil
		case !errors.Is(err, runtime.ErrImageNotFound):
			return info, false, err
		case step.Verb == CheckImage:
			return info, false, nil
		}
	}
	begin := time.Now()
	l.deps.Log.Info("pulling image", "pod", step.Pod, "image", step.Image, "reason", string(step.Reason))
	if err := rt.Pull(ctx, step.Image, runtime.Auth{}, l.deps.Progress); err != nil {
		return info, false, err
	}
	l.deps.Log.Info("image pulled", "image", step.Image, "took", time.Since(begin).Round(time.Millisecond))
	info, err = rt.Image(ctx, step.Image)
	return info, err == nil, err
}

func (s *state) foldImage(step Step, info runtime.ImageInfo, present bool, err error) {
	i := s.image(step.Image)
	i.op = Step{}
	switch {
	case s.ctx.Err() != nil:
		return
	case err != nil:
		s.imageFailed(i, step, err)
	case present:
		i.known, i.away, i.Image = true, false, Image{Present: true, Info: info, Recheck: time.Now().Add(imageRecheck)}
		for _, waiting := range i.always {
			if e := s.pods[waiting.Pod]; e != nil {
				e.pulled[waiting.Container] = Pull{waiting.UID, waiting.Image, waiting.Attempt}
			}
		}
		i.always = nil
	default:
		i.absent()
		if step.Reason == PolicyNever {
			s.deps.Log.Warn("image is not present and its pull policy is Never", "pod", step.Pod, "image", step.Image, "retry", imageDelay(i.Missed))
		}
	}
	for key := range i.users {
		s.mark(key)
	}
	if i.Present {
		clear(i.users) // until then, whoever gets it serves all
	}
}

func (s *state) imageFailed(i *image, step Step, err error) {
	i.known = true
	i.always = nil
	i.Failed++
	delay := imageDelay(i.Failed)
	i.Retry = time.Now().Add(delay)
	i.away = unavailable(err)
	i.Message = err.Error()
	s.deps.Log.Warn("image cannot be had", "pod", step.Pod, "image", step.Image, "err", i.Message, "retry", delay)
}
