package reconcile

import (
	v1 "k8s.io/api/core/v1"
)

// surroundings are what the plan knows of a pod's: enough to see what is missing.
func (g *generationPlan) surroundings() surroundings {
	return surroundings{pod: g.pod.Object, uid: g.uid, node: g.in.Node, objects: g.in.Objects}
}

// configured returns what a container's environment waits for; zero where it can
// be evaluated. What it reads from files is seen only when the container is made.
func (g *generationPlan) configured(spec *v1.Container) Waiting {
	if _, err := environment(spec, g.surroundings()); err != nil {
		return Waiting{CreateContainerConfigError, err.Error()}
	}
	return Waiting{}
}

// furnished returns what the pod's sandbox waits for: all volumes are set up
// before it. A pod that runs goes on without an object that is gone.
func (g *generationPlan) furnished() Waiting {
	about := g.surroundings()
	for _, v := range g.pod.Object.Spec.Volumes {
		if err := about.missing(v); err != nil {
			return Waiting{FailedMount, err.Error()}
		}
	}
	if _, err := kernelHostname(g.pod.Object, g.in.Node.ClusterDNS.Domain); err != nil {
		return Waiting{FailedCreatePodSandBox, err.Error()}
	}
	return Waiting{}
}

// updateVolumes gives the volumes of a pod that runs the content that they are to
// have now. Nothing restarts for it.
func (g *generationPlan) updateVolumes() {
	about := g.surroundings()
	for _, v := range g.pod.Object.Spec.Volumes {
		files, shown, err := about.content(v)
		if !shown || err != nil {
			continue
		}
		has, known := g.in.Written[VolumeKey{g.uid, v.Name}]
		if known && sameFiles(has, files) {
			continue
		}
		s := Step{Verb: UpdateVolume, Volume: v.Name, Reason: ContentUnknown}
		if known {
			s.Reason = ContentChanged
		}
		if f, held := g.in.Failures[s.failureKey()]; held && g.in.Now.Before(f.Retry) {
			g.wakeAt(f.Retry)
			continue
		}
		g.add(s)
	}
}
