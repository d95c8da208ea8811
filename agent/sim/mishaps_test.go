package sim

import (
	"fmt"
	"time"

	"github.com/podkeeper/podkeeper/runtime"
	"github.com/podkeeper/podkeeper/runtime/fake"
)

// This file is what the driver does to everything but the sources: the engine,
// the agent, the machine.

// somebody uses the engine's command line on one of our containers.
func (d *driver) somebody() bool {
	var list []fake.View
	for _, c := range d.engine.Containers() {
		if ours(c) {
			list = append(list, c)
		}
	}
	if len(list) == 0 {
		return false
	}
	c := pick(d.r, list)
	switch d.r.IntN(4) {
	case 0:
		d.engine.Destroy(c.ID)
	case 1:
		d.engine.Restart(c.ID)
	default:
		if c.State != runtime.Running {
			return false
		}
		d.engine.Kill(c.ID)
	}
	return true
}

// commit runs a container made from a commit of one of ours, or somebody's own
// under a name that we are about to use.
func (d *driver) commit() bool {
	for _, c := range d.engine.Containers() {
		if !ours(c) || d.r.IntN(2) == 0 {
			continue
		}
		if d.r.IntN(2) == 0 {
			d.edits++
			_, err := d.engine.Run(fmt.Sprintf("debug-%d", d.edits), c.Labels)
			return err == nil
		}
		next := c.Identity
		next.Attempt++
		_, err := d.engine.Run(next.ContainerName(), nil)
		return err == nil
	}
	return false
}

func (d *driver) restartEngine() bool {
	d.laws.isRough(10 * time.Minute)
	d.engine.Down(d.r.IntN(2) == 0)
	d.pass(d.pause() / 4)
	d.engine.Up()
	return true
}

func (d *driver) breakConnections() bool {
	d.laws.isRough(10 * time.Minute)
	d.engine.BreakConnections()
	return true
}

// crashSoon lights the agent's fuse: it dies of one of its next effects.
func (d *driver) crashSoon() bool {
	if d.agent == nil {
		return false
	}
	d.agent.mu.Lock()
	d.agent.fuse = d.r.IntN(12)
	d.agent.mu.Unlock()
	return true
}

// crashNow kills the agent, and may take one of its files along.
func (d *driver) crashNow() bool {
	d.crash()
	if names := d.disk.names(); len(names) > 0 && d.r.IntN(6) == 0 {
		name := pick(d.r, names)
		d.disk.lose(name)
		if name == holds {
			for key := range d.laws.hands {
				d.laws.holds(key, false)
			}
		}
	}
	return true
}

func (d *driver) jumpClock() bool {
	by := time.Duration(d.r.Int64N(int64(4*time.Hour))) - 2*time.Hour
	d.jump(by)
	return true
}

func (d *driver) faults() bool {
	rates := fake.Rates{}
	if d.r.IntN(3) > 0 {
		for _, rate := range []*float64{&rates.Slow, &rates.Hung, &rates.Fail, &rates.LostReply, &rates.LostEvent, &rates.DupEvent} {
			if d.r.IntN(2) == 0 {
				*rate = 0.3 * d.r.Float64()
			}
		}
		rates.Hung /= 6
	}
	d.fate.Trace("faults %+v", rates)
	d.fate.SetRates(rates)
	d.laws.isRough(10 * time.Minute)
	if rates != (fake.Rates{}) {
		d.laws.isRough(1000 * time.Hour)
	}
	return true
}

// images takes an image away, or brings it back.
func (d *driver) images() bool {
	d.engine.SetImage(pick(d.r, []string{"app:1", "app:2", "far:1"}), fake.Image{Present: d.r.IntN(2) == 0, Pullable: d.r.IntN(4) > 0})
	return true
}

func (d *driver) fillDisk() bool {
	d.disk.full.Store(!d.disk.full.Load())
	return true
}
