package agent

import (
	"context"
	"log/slog"
	"sync"
	"time"

	summary "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/podkeeper/podkeeper/node/stats"
	"github.com/podkeeper/podkeeper/reconcile"
	"github.com/podkeeper/podkeeper/runtime"
	"github.com/podkeeper/podkeeper/server/kubeletapi"
	"github.com/podkeeper/podkeeper/server/metrics"
)

// How much lies between two readings of processor time that make a rate. Nothing is
// read while nobody asks: the reading of the one before is the first of two, unless it
// is too old to tell of now. Then, as for whoever asks first, both are made.
const (
	rateApart = time.Second
	rateStale = 2 * time.Minute
	rateWait  = 200 * time.Millisecond
)

// look makes one look at a time, for whoever asks.
type look struct {
	// turn has one token while somebody looks, waiting one for each who waits or looks.
	turn, waiting chan struct{}
	// base are the readings to compare with, made at baseAt; next are newer ones, which
	// become that as soon as they are far enough away.
	base, next     metrics.Readings
	baseAt, nextAt time.Time

	machine func() stats.Machine // read once, when asked for
}

func newLook(log *slog.Logger) *look {
	return &look{turn: make(chan struct{}, 1), waiting: make(chan struct{}, maxLooks), machine: sync.OnceValue(func() stats.Machine {
		m, err := stats.ReadMachine()
		if err != nil {
			log.Warn("what the machine is made of is not known", "err", err)
		}
		return m
	})}
}

// maxLooks is how many may look or wait for that. Others are told to come again.
const maxLooks = 16

// begin waits for the turn to look, which end gives up.
func (l *look) begin(ctx context.Context) (end func(), err error) {
	select {
	case l.waiting <- struct{}{}:
	default:
		return nil, kubeletapi.Wrong(kubeletapi.ErrTooMany, "too many ask at once what is used; try again later")
	}
	select {
	case l.turn <- struct{}{}:
		return func() { <-l.turn; <-l.waiting }, nil
	case <-ctx.Done():
		<-l.waiting
		return nil, ctx.Err()
	}
}

// facts waits for its turn, and looks.
func (p *parts) facts(ctx context.Context, brief bool) (metrics.Facts, error) {
	end, err := p.look.begin(ctx)
	if err != nil {
		return metrics.Facts{}, err
	}
	defer end()
	return p.lookAround(ctx, brief)
}

// summary answers clients: see kubeletapi.Answers.
func (p *parts) summary(ctx context.Context, brief bool) (summary.Summary, error) {
	l := p.look
	end, err := l.begin(ctx)
	if err != nil {
		return summary.Summary{}, err
	}
	defer end()
	f, err := p.lookAround(ctx, brief)
	if err != nil {
		return summary.Summary{}, err
	}
	if f.Time.Sub(l.nextAt) >= rateApart {
		l.base, l.baseAt = l.next, l.nextAt
	}
	if f.Time.Sub(l.baseAt) > rateStale {
		l.base, l.baseAt = f.Readings(), f.Time
		select {
		case <-time.After(rateWait):
		case <-ctx.Done():
			return summary.Summary{}, ctx.Err()
		}
		if f, err = p.lookAround(ctx, brief); err != nil {
			return summary.Summary{}, err
		}
	}
	now := f.Readings()
	f.Rates = now.Rates(l.base)
	if f.Time.Sub(l.nextAt) >= rateApart {
		l.next, l.nextAt = now, f.Time
	}
	return metrics.Summarize(f, brief), nil
}

// lookAround reads what the node and its pods use; with brief, no files of pods.
func (p *parts) lookAround(ctx context.Context, brief bool) (metrics.Facts, error) {
	snap, err := p.loop.Snapshot(ctx, 0)
	if err != nil {
		return metrics.Facts{}, err
	}
	u := p.usage
	f := metrics.Facts{
		NodeName: p.cfg.NodeName, Time: time.Now(), Host: u.Host(), Groups: make(map[string]stats.Cgroup),
		Node: u.Node(stats.Paths{Root: p.cfg.RootDir, Images: p.imageFolder()}),
	}
	if !brief {
		f.Machine = p.look.machine()
	}
	if c, ok := u.Own(); ok {
		f.Groups[summary.SystemContainerKubelet] = c
	}
	if path := p.cgroups.Path(); path != "" {
		if c, ok := u.Cgroup(path); ok {
			f.Groups[summary.SystemContainerPods] = c
		}
	}
	for _, v := range snap.Pods {
		if pod, ok := p.used(v, brief); ok {
			f.Pods = append(f.Pods, pod)
		}
	}
	return f, nil
}

// imageFolder is on the filesystem of the engine's images; "" where nobody told yet.
func (p *parts) imageFolder() string {
	if p.cfg.Eviction.Images != "" {
		return p.cfg.Eviction.Images
	}
	p.usage.mu.Lock()
	defer p.usage.mu.Unlock()
	return p.usage.root
}

// used returns what a pod uses; ok is false where nothing of it runs.
func (p *parts) used(v reconcile.View, brief bool) (pod metrics.Pod, ok bool) {
	pod = metrics.Pod{Object: v.Object, Use: p.usage.Pod(target(v))}
	if !brief {
		where := p.files(v)
		pod.Claims = claims(v)
		for name := range pod.Claims {
			where.Volumes[name] = p.volumeFolder(v, name)
		}
		p.usage.walker.Fill(&pod.Use, where)
	}
	for _, c := range byName(newest(v)) {
		switch {
		case c.State != runtime.Running:
		case c.IsSandbox():
			pod.Sandbox = c
		default:
			use := metrics.Container{Container: c, Use: pod.Use.Containers[c.Name]}
			if kills, known := p.usage.OOMKills(stats.Process{ID: c.ID, PID: c.PID}); known && !brief {
				use.OOMKills = &kills
			}
			pod.Containers = append(pod.Containers, use)
		}
	}
	return pod, pod.Sandbox.ID != "" || len(pod.Containers) > 0
}
