package reconcile

import (
	"context"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/runtime"
)

// WantedImages returns the references to images of every pod that is desired,
// running or not, or that goes on from before; whole says that every source has said
// all that it has to say (law 1). Its error is the context's.
func (l *Loop) WantedImages(ctx context.Context) (names []string, whole bool, err error) {
	type answer struct {
		names []string
		whole bool
	}
	reply := make(chan answer, 1)
	l.report(ctx, func(s *state) {
		heard, _ := s.set.Heard()
		reply <- answer{s.wantedImages(), s.haveSet && s.listed && heard}
	})
	select {
	case a := <-reply:
		return a.names, a.whole, nil
	case <-ctx.Done():
		return nil, false, ctx.Err()
	}
}

// RemoveImage removes an image of the engine, unless a pod wants it by now, or may:
// then it reports false. A pod that comes while it goes waits, and pulls it anew.
func (l *Loop) RemoveImage(ctx context.Context, stored runtime.StoredImage) (removed bool, err error) {
	var free bool
	var running context.Context // ends with the loop
	decided := make(chan struct{})
	select {
	case l.reports <- func(s *state) {
		free, running = s.letGo(stored), s.ctx
		close(decided)
	}:
		<-decided
	case <-ctx.Done():
		return false, ctx.Err()
	}
	if !free {
		return false, nil
	}
	err = l.deps.Runtime.RemoveImage(ctx, stored.ID)
	l.report(running, func(s *state) { s.gone(stored) })
	return err == nil, err
}

// wantedImages are sorted, each once.
func (s *state) wantedImages() []string {
	var names []string
	add := func(p *pod.Pod) {
		if p != nil {
			names = append(names, ImagesOf(p.Object)...)
		}
	}
	for _, claims := range s.set.Claims {
		for _, p := range claims {
			add(p)
		}
	}
	for _, e := range s.pods {
		add(e.desired)
		add(e.plan.Pod)
		for _, rec := range e.records {
			add(rec.Pod)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// ImagesOf returns every reference to an image in a pod.
func ImagesOf(p *v1.Pod) []string {
	var names []string
	for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
		names = append(names, c.Image)
	}
	for _, v := range p.Spec.Volumes {
		if v.Image != nil {
			names = append(names, v.Image.Reference)
		}
	}
	return names
}

// letGo reports whether an image may go. Until gone is called, nothing is known of it
// and nobody looks it up.
func (s *state) letGo(stored runtime.StoredImage) bool {
	if !s.haveSet || !s.listed || runtime.NewReferences(s.wantedImages()...).Mean(stored) {
		return false
	}
	known := s.imagesLike(stored)
	if slices.ContainsFunc(known, func(i *image) bool { return i.op.Verb != "" }) {
		return false
	}
	for _, i := range known {
		if i.Present {
			i.forget()
		}
	}
	s.going = append(s.going, stored)
	return true
}

// gone lets those have it again that want it since.
func (s *state) gone(stored runtime.StoredImage) {
	s.going = slices.DeleteFunc(s.going, func(i runtime.StoredImage) bool { return i.ID == stored.ID })
	for _, i := range s.imagesLike(stored) {
		for key := range i.users {
			s.mark(key)
		}
	}
}

// isGoing reports whether an image that a reference may stand for is being removed.
func (s *state) isGoing(name string) bool {
	return len(s.going) > 0 && slices.ContainsFunc(s.going, runtime.NewReferences(name).Mean)
}

// imagesLike returns what is known of an image under all of its names.
func (s *state) imagesLike(stored runtime.StoredImage) (list []*image) {
	for key, i := range s.images {
		if i.Info.ID == stored.ID || runtime.NewReferences(key.name).Mean(stored) {
			list = append(list, i)
		}
	}
	return list
}

// pruneImages forgets the images that no pod names any more.
func (s *state) pruneImages() {
	named := make(map[imageKey]bool)
	add := func(p *pod.Pod) {
		if p != nil {
			for _, name := range ImagesOf(p.Object) {
				named[imageKeyOf(p, name)] = true
			}
		}
	}
	for _, e := range s.pods {
		add(e.desired)
		add(e.plan.Pod)
		for _, rec := range e.records {
			add(rec.Pod)
		}
	}
	for key, i := range s.images {
		if !named[key] && i.op.Verb == "" {
			delete(s.images, key)
		}
	}
}
