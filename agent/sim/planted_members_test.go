package sim

import (
	"context"
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/podkeeper/podkeeper/node/volume"
	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/runtime"
)

// This file has the planted bugs that are about init containers, sidecars, probes
// and objects.

// uninitialised takes the init containers out of all pods.
func uninitialised(set pod.Set) pod.Set {
	claims := map[pod.Key][]*pod.Pod{}
	for key, list := range set.Claims {
		for _, p := range list {
			bare := *p
			bare.Object = p.Object.DeepCopy()
			bare.Object.Spec.InitContainers = nil
			claims[key] = append(claims[key], &bare)
		}
	}
	set.Claims = claims
	return set
}

// again starts, after each of the others, the pod's first init container once more.
type again struct{ runtime.Runtime }

func (r again) Start(ctx context.Context, id string) error {
	err := r.Runtime.Start(ctx, id)
	for _, s := range beside(ctx, r.Runtime, id) {
		if s.Name == "i0" && s.State == runtime.Exited {
			_ = r.Runtime.Start(ctx, s.ID)
		}
	}
	return err
}

// beside returns all of the pod of a container, where that is none of those that
// initialise it.
func beside(ctx context.Context, rt runtime.Runtime, id string) []runtime.Summary {
	list, _ := rt.List(ctx)
	i := slices.IndexFunc(list, func(s runtime.Summary) bool { return s.ID == id })
	if i < 0 || !strings.ContainsAny(list[i].Name[:1], "cx") {
		return nil
	}
	key := list[i].Key
	return slices.DeleteFunc(list, func(s runtime.Summary) bool { return s.Key != key })
}

// hasty ends the sidecars of a pod before the first of its others.
type hasty struct{ runtime.Runtime }

func (r hasty) Stop(ctx context.Context, id string, grace time.Duration) error {
	for _, s := range beside(ctx, r.Runtime, id) {
		if strings.HasPrefix(s.Name, "s") {
			_ = r.Runtime.Stop(ctx, s.ID, grace)
		}
	}
	return r.Runtime.Stop(ctx, id, grace)
}

// madeUp supplies every ConfigMap that nobody does.
func madeUp(set pod.Set) pod.Set {
	set.Objects = maps.Clone(set.Objects)
	if set.Objects == nil {
		set.Objects = map[pod.ObjectKey][]*pod.Object{}
	}
	for _, name := range configs {
		key := pod.ObjectKey{Kind: pod.ConfigMap, Namespace: "default", Name: name}
		if len(set.Objects[key]) == 0 {
			set.Objects[key] = []*pod.Object{{Key: key, Data: map[string]pod.Value{"x": pod.PlainValue("0")}}}
		}
	}
	return set
}

// rigid leaves a volume as it was made.
type rigid struct{ volumes }

func (v rigid) Ensure(ctx context.Context, r volume.Request) error {
	if v.shows(r.UID, r.Volume.Name) != "" {
		r.Files = nil
	}
	return v.volumes.Ensure(ctx, r)
}

// unprobed forgets what probes said.
type unprobed struct{ session }

func (s unprobed) WriteFile(name string, data []byte) error {
	var state map[string]any
	if path.Base(name) == "state.json" && json.Unmarshal(data, &state) == nil {
		containers, _ := state["containers"].(map[string]any)
		for _, c := range containers {
			delete(c.(map[string]any), "probed")
		}
		data, _ = json.Marshal(state)
	}
	return s.session.WriteFile(name, data)
}
