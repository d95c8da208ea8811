package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/gc"
	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/reconcile"
	"github.com/podkeeper/podkeeper/runtime"
	"github.com/podkeeper/podkeeper/server"
)

// inventory answers clients: see server.Inventory.
func (p *parts) inventory() server.Inventory {
	return server.Inventory{Objects: p.objects, Images: p.listImages, Node: p.nodeObject, Collect: p.collect, Pull: p.pull}
}

func (p *parts) objects(ctx context.Context, kind pod.ObjectKind, data bool) (server.Objects, error) {
	snap, err := p.loop.Snapshot(ctx, 0)
	if err != nil {
		return server.Objects{}, err
	}
	users := make(map[pod.ObjectKey][]string)
	for _, v := range snap.Pods {
		if v.Plan.Pod == nil {
			continue
		}
		for _, r := range reconcile.References(v.Object) {
			users[r.Object] = append(users[r.Object], v.Object.Namespace+"/"+v.Object.Name)
		}
	}
	list := server.Objects{Items: []server.Object{}}
	for _, key := range slices.SortedFunc(maps.Keys(snap.Objects), pod.ObjectKey.Compare) {
		if kind == "" || key.Kind == kind {
			list.Items = append(list.Items, p.objectView(snap.Objects[key], users[key], data))
		}
	}
	return list, nil
}

// objectView is an object as clients see it: of a Secret, no value.
func (p *parts) objectView(o *pod.Object, users []string, data bool) server.Object {
	view := server.Object{
		Kind: o.Key.Kind, Namespace: o.Key.Namespace, Name: o.Key.Name, Origin: o.Origin, Line: o.Line,
		Type: string(o.Type), Immutable: o.Immutable, Pods: slices.Compact(append([]string{}, users...)),
	}
	for _, values := range []map[string]pod.Value{o.Data, o.BinaryData} {
		for key, value := range values {
			if view.Sizes == nil {
				view.Sizes = make(map[string]int)
			}
			view.Sizes[key] = len(value.Reveal())
		}
	}
	if data && o.Key.Kind == pod.ConfigMap {
		view.Data = make(map[string]string)
		for key, value := range o.Data {
			view.Data[key] = value.String()
		}
		view.BinaryData = make(map[string][]byte)
		for key, value := range o.BinaryData {
			view.BinaryData[key] = []byte(value.String())
		}
	}
	if c := o.Claim; c != nil {
		path := p.volumes.ClaimPath(o.Key)
		_, err := os.Stat(path)
		view.Claim = &server.Claim{
			AccessModes: c.AccessModes, Size: c.Size.String(), StorageClass: c.StorageClass, Reclaim: string(c.Reclaim),
			Path: path, Bound: err == nil,
		}
	}
	return view
}

func (p *parts) listImages(ctx context.Context) (server.Images, error) {
	images, err := p.images.Inventory(ctx)
	if err != nil {
		return server.Images{}, fmt.Errorf("list images: %w", err)
	}
	snap, err := p.loop.Snapshot(ctx, 0)
	if err != nil {
		return server.Images{}, err
	}
	list := server.Images{Items: make([]server.Image, 0, len(images))}
	for _, i := range images {
		view := server.Image{
			ID: i.ID, Names: append([]string{}, i.Names...), Digests: i.Digests, Size: i.Size, Built: i.Built,
			Ours: i.Ours, InUse: i.InUse, Wanted: i.Wanted, Used: i.Used, Pods: []string{},
		}
		for _, v := range snap.Pods {
			if v.Plan.Pod != nil && runtime.NewReferences(reconcile.ImagesOf(v.Object)...).Mean(i.StoredImage) {
				view.Pods = append(view.Pods, v.Object.Namespace+"/"+v.Object.Name)
			}
		}
		list.Items = append(list.Items, view)
	}
	slices.SortFunc(list.Items, func(a, b server.Image) int {
		return strings.Compare(strings.Join(a.Names, " ")+a.ID, strings.Join(b.Names, " ")+b.ID)
	})
	return list, nil
}

// collect takes away what nobody needs, or says what would go.
func (p *parts) collect(ctx context.Context, what server.Collection) (server.Collected, error) {
	found, err := p.preview(ctx, what)
	if err != nil || what.DryRun {
		return found, err
	}
	add := func(freed gc.Freed) {
		found.Removed += freed.Count
		found.Freed += freed.Bytes
	}
	if what.Containers {
		add(p.dead.Collect(ctx, what.All))
	}
	if what.Images {
		add(p.images.Collect(ctx, what.All))
	}
	// What went is what is not there any more.
	left, err := p.preview(ctx, what)
	gone := func(list, left []server.CollectedItem) []server.CollectedItem {
		return slices.DeleteFunc(list, func(i server.CollectedItem) bool {
			still := slices.ContainsFunc(left, func(o server.CollectedItem) bool { return o.ID == i.ID })
			if still {
				found.Failed = append(found.Failed, cmp.Or(i.Name, i.ID))
			}
			return still
		})
	}
	found.Containers, found.Images = gone(found.Containers, left.Containers), gone(found.Images, left.Images)
	return found, err
}

// preview is what a collection would take away.
func (p *parts) preview(ctx context.Context, what server.Collection) (server.Collected, error) {
	found := server.Collected{DryRun: what.DryRun, Containers: []server.CollectedItem{}, Images: []server.CollectedItem{}}
	var errs []error
	if what.Containers {
		list, err := p.dead.Preview(ctx, what.All)
		errs = append(errs, err)
		for _, d := range list {
			found.Containers = append(found.Containers, server.CollectedItem{ID: d.ID, Name: fmt.Sprintf("%s/%d", d.Name, d.Attempt), Why: d.Why})
		}
	}
	if what.Images {
		list, err := p.images.Preview(ctx, what.All)
		errs = append(errs, err)
		for _, i := range list {
			found.Images = append(found.Images, server.CollectedItem{ID: i.ID, Name: strings.Join(i.Names, " "), Size: i.Size, Why: i.Why})
		}
	}
	return found, errors.Join(errs...)
}

// pull fetches an image with the logins that the node has, until one will do: not every
// engine says in its code that a registry wanted another.
func (p *parts) pull(ctx context.Context, image string, progress func(server.Progress)) (string, error) {
	node := credentials(p.cfg.RootDir)
	logins, err := node.Find(ctx, image, nil)
	if err != nil {
		p.log.Warn("logins to registries cannot be read", "image", image, "err", err)
	}
	whose := fmt.Sprintf("with the last of %d logins", len(logins))
	switch len(logins) {
	case 0:
		logins = []runtime.Auth{{}}
		whose = "without a login: there is none for it in " + strings.Join(node.Files, " or ")
	case 1:
		whose = "with the login that there is for it"
	}
	for _, login := range logins {
		err = p.runtime.Pull(ctx, image, login, func(s runtime.PullProgress) {
			progress(server.Progress{Done: s.Done, Layers: s.Layers, Bytes: s.Bytes, Total: s.Total})
		})
		if err == nil || errors.Is(err, runtime.ErrUnavailable) || ctx.Err() != nil {
			break
		}
	}
	if err != nil {
		return "", fmt.Errorf("%w (%s)", err, whose)
	}
	info, err := p.runtime.Image(ctx, image)
	if err != nil {
		return "", err
	}
	p.images.Ran(info.ID)
	return info.ID, nil
}

// truth is a condition's status.
func truth(b bool) v1.ConditionStatus {
	if b {
		return v1.ConditionTrue
	}
	return v1.ConditionFalse
}
