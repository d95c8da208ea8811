package main

import (
	"context"
	"fmt"
	"strings"
	"time"
)

const many = 50

// plain is a pod of one container, with the volumes that the benchmark needs.
func (b *bench) plain(pod string) string { return b.manifest(pod, 1, "") }

// mounting is such a pod that mounts a volume of each kind, and parts of two. Its
// objects are its own, in the same file.
func (b *bench) mounting(pod string) string {
	text := strings.NewReplacer(
		"mountPath: /out}]", "mountPath: /out}, {name: disk, mountPath: /disk}, {name: memory, mountPath: /memory}, "+
			"{name: conf, mountPath: /conf}, {name: key, mountPath: /key}, {name: all, mountPath: /all}, {name: about, mountPath: /about}, "+
			"{name: claim, mountPath: /claim}, {name: own, mountPath: /own}, "+
			"{name: disk, mountPath: /part, subPath: part}, {name: conf, mountPath: /etc/conf, subPath: k}]",
		"  volumes:\n", `  volumes:
  - {name: disk, emptyDir: {}}
  - {name: memory, emptyDir: {medium: Memory, sizeLimit: 1Mi}}
  - {name: conf, configMap: {name: $pod}}
  - {name: key, secret: {secretName: $pod}}
  - {name: all, projected: {sources: [{configMap: {name: $pod}}, {secret: {name: $pod}}, {downwardAPI: {items: [{path: me, fieldRef: {fieldPath: metadata.name}}]}}]}}
  - {name: about, downwardAPI: {items: [{path: me, fieldRef: {fieldPath: metadata.name}}]}}
  - {name: claim, persistentVolumeClaim: {claimName: $pod}}
  - {name: own, ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}}}}
`,
	).Replace(b.plain(pod))
	return strings.ReplaceAll(`apiVersion: v1
kind: ConfigMap
metadata: {name: $pod}
data: {k: value}
---
apiVersion: v1
kind: Secret
metadata: {name: $pod}
stringData: {password: hidden}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: $pod, annotations: {podkeeper.io/reclaim: delete}}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
---
`+text, "$pod", pod)
}

// putMany puts that many manifests in place, and returns since when and the names of the
// stamps.
func (b *bench) putMany(pods int, manifest func(pod string) string) (time.Time, []string, error) {
	var renames []func() (time.Time, error)
	var names []string
	for i := range pods {
		pod := fmt.Sprintf("m%02d", i)
		rename, err := b.put(pod, manifest(pod))
		if err != nil {
			return time.Time{}, nil, err
		}
		renames = append(renames, rename)
		names = append(names, stamped(pod, 1)...)
	}
	t0 := time.Now()
	for _, rename := range renames {
		if _, err := rename(); err != nil {
			return t0, nil, err
		}
	}
	return t0, names, nil
}

func (b *bench) takeMany(ctx context.Context) error {
	for i := range many {
		if _, err := b.unput(fmt.Sprintf("m%02d", i)); err != nil {
			return err
		}
	}
	return b.await(ctx, "all pods are gone", settled(0))
}

// bringMany returns how long 50 pods took to run, and the names of their stamps.
// They are gone afterwards.
func (b *bench) bringMany(ctx context.Context, manifest func(pod string) string) (time.Duration, []string, error) {
	t0, names, err := b.putMany(many, manifest)
	if err != nil {
		return 0, nil, err
	}
	last, err := b.awaitStamps(ctx, t0, names...)
	if err != nil {
		return 0, nil, err
	}
	if err := b.await(ctx, "all pods have settled", settled(many)); err != nil {
		return 0, nil, err
	}
	return last.Sub(t0), names, b.takeMany(ctx)
}

// floorMany returns how long the same took by bare calls, that many pods at a time.
func (b *bench) floorMany(ctx context.Context, calls []podCalls, names []string, parallel int) (time.Duration, error) {
	t0 := time.Now()
	ids, err := upAll(ctx, b.engine, calls, parallel)
	if err != nil {
		return 0, err
	}
	last, err := b.awaitStamps(ctx, t0, names...)
	if err != nil {
		return 0, err
	}
	return last.Sub(t0), downAll(ctx, b.engine, calls, ids, 8)
}

// manyPods measures from the renames of 50 manifests to the last process, n times.
func (b *bench) manyPods(ctx context.Context, name string, manifest func(pod string) string, n int) ([]Row, error) {
	var names []string
	rec, err := b.record(ctx, func() (err error) {
		_, names, err = b.bringMany(ctx, manifest)
		return err
	})
	if err != nil {
		return nil, err
	}
	calls := rec.pods()
	best, note := 0, "floor by concurrency:"
	var fastest time.Duration
	for _, parallel := range []int{16, 8, 4, 2, 1} {
		if best > 4*parallel {
			break // it gets slower from here on
		}
		d, err := b.floorMany(ctx, calls, names, parallel)
		if err != nil {
			return nil, err
		}
		note += fmt.Sprintf(" %d: %.1f s", parallel, d.Seconds())
		if best == 0 || d < fastest {
			best, fastest = parallel, d
		}
	}
	var agent, floor sample
	err = b.byTurns(ctx, n, func() error {
		d, _, err := b.bringMany(ctx, manifest)
		agent.add(d)
		return err
	}, func() error {
		d, err := b.floorMany(ctx, calls, names, best)
		floor.add(d)
		return err
	})
	if err != nil {
		return nil, err
	}
	return []Row{row(name, agent, floor, "≤ 1.05 × floor", note)}, nil
}
