package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podkeeper/podkeeper/gc"
	"github.com/podkeeper/podkeeper/runtime"
)

// collect measures what the collectors decide: which of 10,000 dead containers and
// of 5,000 images go, where 1,000 references are named and 20 globs pinned.
func (b *bench) collect(context.Context) ([]Row, error) {
	now := time.Now()
	var dead []gc.Dead
	for i := range 10_000 {
		ended := now.Add(-time.Duration(i) * time.Second)
		dead = append(dead, gc.Dead{
			ID: fmt.Sprint("id", i), UID: types.UID(fmt.Sprint("pod", i/100)), Name: fmt.Sprint("c", i/10%10), Attempt: 9 - i%10,
			Finished: ended, FirstSeen: ended, Over: i%1000 < 100,
		})
	}
	var images []gc.Image
	var named []string
	policy := gc.DefaultImagePolicy()
	for i := range 5_000 {
		name := fmt.Sprintf("registry.example/team%d/app%d", i%50, i)
		used := now.Add(-time.Duration(i) * time.Minute)
		images = append(images, gc.Image{
			StoredImage: runtime.StoredImage{
				ID: fmt.Sprintf("sha256:%064x", i), Names: []string{name + ":1", name + ":2"}, Digests: []string{fmt.Sprintf("%s@sha256:%064x", name, i)},
				Size: 100 << 20, InUse: i%7 == 0,
			},
			ImageHistory: gc.ImageHistory{Ours: i%3 > 0, Seen: used, Used: used, Unused: used},
		})
		if i%5 == 0 {
			named = append(named, name+":1")
		}
		if i < 20 {
			policy.Pinned = append(policy.Pinned, fmt.Sprintf("registry.example/team%d/base*", i))
		}
	}
	var ofContainers, ofImages sample
	var containersGo, imagesGo int
	for range b.opts.n {
		t0 := time.Now()
		containersGo = len(gc.SelectContainers(dead, gc.DefaultPolicy(), now))
		ofContainers.add(time.Since(t0))
		t0 = time.Now()
		references := runtime.NewReferences(named...)
		for i := range images {
			images[i].Wanted = references.Mean(images[i].StoredImage)
		}
		imagesGo = len(gc.SelectImages(images, policy, 100<<30, "", now))
		ofImages.add(time.Since(t0))
	}
	if containersGo == 0 || imagesGo == 0 {
		return nil, fmt.Errorf("%d containers and %d images go: nothing was decided", containersGo, imagesGo)
	}
	return []Row{
		row("GC select over 10,000 dead containers", ofContainers, nil, "", fmt.Sprintf("%d go", containersGo)),
		row("GC select over 5,000 images", ofImages, nil, "", fmt.Sprintf("%d go; names, digests and globs matched", imagesGo)),
	}, nil
}
