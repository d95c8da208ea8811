package reconcile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/runtime"
)

// imageKey is an image as pods with the same pull secrets get it. Those with
// others have pulls and a back-off of their own (law 7).
type imageKey struct {
	name string
	// secrets are the namespace and the names, "" for none.
	secrets string
}

func imageKeyOf(p *pod.Pod, name string) imageKey {
	key := imageKey{name: name}
	for _, secret := range pullSecrets(p) {
		key.secrets += secret.String() + "\n"
	}
	return key
}

func pullSecrets(p *pod.Pod) []pod.ObjectKey {
	var keys []pod.ObjectKey
	for _, s := range p.Object.Spec.ImagePullSecrets {
		keys = append(keys, pod.ObjectKey{Kind: pod.Secret, Namespace: p.Object.Namespace, Name: s.Name})
	}
	return keys
}

// image is one image of the node. Pods share it: one look-up or pull at a time.
type image struct {
	Image
	secrets []pod.ObjectKey
	known   bool
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
		i.forget()
	}
}

// forget lets it be looked at anew.
func (i *image) forget() { i.known, i.away, i.Image = false, false, Image{} }

// image returns what is known of an image as a pod gets it.
func (s *state) image(p *pod.Pod, name string) *image {
	key := imageKeyOf(p, name)
	i := s.images[key]
	if i == nil {
		i = &image{users: make(map[pod.Key]bool), secrets: pullSecrets(p)}
		s.images[key] = i
	}
	return i
}

// forgetPulls lets pulls that failed be tried at once where one of their secrets is
// another now.
func (s *state) forgetPulls(changed map[pod.ObjectKey]bool) {
	for _, i := range s.images {
		if i.Failed > 0 && slices.ContainsFunc(i.secrets, func(k pod.ObjectKey) bool { return changed[k] }) {
			i.forget()
		}
	}
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
		i := s.image(e.plan.Pod, step.Image)
		i.users[e.key] = true
		if s.isGoing(step.Image) {
			continue
		}
		if step.Reason == PolicyAlways && !slices.Contains(i.always, step) && (i.op.Verb == "" || i.op.Reason == PolicyAlways) {
			i.always = append(i.always, step)
		}
		if i.op.Verb != "" {
			continue
		}
		i.op = step
		secrets, missing := s.findSecrets(i.secrets)
		ctx := s.ctx
		s.spawn(func() {
			info, present, err := s.fetch(ctx, step, secrets)
			if err != nil && len(missing) > 0 {
				err = fmt.Errorf("%w (imagePullSecrets: %s)", err, strings.Join(missing, ", "))
			}
			s.report(ctx, func(s *state) { s.foldImage(i, step, info, present, err) })
		})
	}
}

// findSecrets returns the secrets that there are, and says which there are not.
// Without those a pull is tried all the same.
func (s *state) findSecrets(keys []pod.ObjectKey) (found []*pod.Object, missing []string) {
	for _, key := range keys {
		if object := s.objects[key]; object != nil {
			found = append(found, object)
		} else {
			missing = append(missing, fmt.Sprintf("secret %q not found", key.Name))
		}
	}
	return found, missing
}

// fetch looks an image up, or pulls it.
func (l *Loop) fetch(ctx context.Context, step Step, secrets []*pod.Object) (info runtime.ImageInfo, present bool, err error) {
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
	l.deps.tell(pullEvent(step, 0))
	if err := l.pull(ctx, step.Image, secrets); err != nil {
		return info, false, err
	}
	took := max(time.Since(begin), 1)
	l.deps.Log.Info("image pulled", "image", step.Image, "took", took.Round(time.Millisecond))
	l.deps.tell(pullEvent(step, took))
	info, err = rt.Image(ctx, step.Image)
	return info, err == nil, err
}

// pull tries every login that may be meant for the image, until one is let in.
func (l *Loop) pull(ctx context.Context, image string, secrets []*pod.Object) error {
	var logins []runtime.Auth
	if l.deps.Credentials != nil {
		var err error
		if logins, err = l.deps.Credentials.Find(ctx, image, secrets); err != nil {
			l.deps.Log.Warn("not all credentials can be had; the image is pulled without them", "image", image, "err", err)
		}
	}
	if len(logins) == 0 {
		logins = []runtime.Auth{{}}
	}
	var err error
	for _, login := range logins {
		if err = l.deps.Runtime.Pull(ctx, image, login, l.deps.Progress); err == nil || unavailable(err) || ctx.Err() != nil {
			return err
		}
	}
	if len(logins) > 1 {
		return fmt.Errorf("%w (the last of %d logins)", err, len(logins))
	}
	return err
}

func (s *state) foldImage(i *image, step Step, info runtime.ImageInfo, present bool, err error) {
	i.op = Step{}
	switch {
	case s.ctx.Err() != nil:
		return
	case err != nil:
		s.imageFailed(i, step, err)
	case present:
		i.known, i.away, i.Image = true, false, Image{Present: true, Info: info, Recheck: time.Now().Add(imageRecheck)}
		if step.Verb == PullImage {
			s.deps.Ran(info.ID)
			if e := s.pods[step.Pod]; e != nil {
				e.fresh[step.Image] = true
			}
		}
		for _, waiting := range i.always {
			if e := s.pods[waiting.Pod]; e != nil {
				e.forgetPulls(func(p Pull) bool { return p.Container == waiting.Container && p.Image == waiting.Image })
				e.pulled[Pull{waiting.Container, waiting.UID, waiting.Image, waiting.Attempt}] = true
			}
		}
		i.always = nil
		s.shareImage(step.Image)
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

// usePull reports whether an image was pulled for the pod, and no container made from it
// since.
func (e *entry) usePull(image string) bool {
	fresh := e.fresh[image]
	delete(e.fresh, image)
	return fresh
}

func (e *entry) forgetPulls(which func(Pull) bool) {
	maps.DeleteFunc(e.pulled, func(p Pull, _ bool) bool { return which(p) })
}

// shareImage has those look again who could not get it with other secrets.
func (s *state) shareImage(name string) {
	for key, other := range s.images {
		if key.name != name || other.Present || other.op.Verb != "" {
			continue
		}
		other.forget()
		for user := range other.users {
			s.mark(user)
		}
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
