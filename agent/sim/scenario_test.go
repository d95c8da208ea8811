package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	"github.com/podkeeper/podkeeper/runtime/fake"
)

// driver is who edits, breaks and repairs things, from one stream of random
// numbers in one goroutine.
type driver struct {
	*world
	r *rand.Rand
	// files has what each file is meant to say, by path; the page is "".
	files map[string][]*podSpec
	// spoilt files do not say it.
	spoilt map[string]bool
	away   map[string]file // of the folder, while it is gone
	gone   bool            // the folder
	down   bool            // the page
	edits  int
}

const onPage = "" // the key of the page in driver.files

func newDriver(w *world, seed uint64) *driver {
	d := &driver{world: w, r: rand.New(rand.NewPCG(seed, 0)), files: map[string][]*podSpec{}, spoilt: map[string]bool{}}
	if d.r.IntN(10) > 0 {
		d.tree.makeDir(folder)
	} else {
		d.gone = true
	}
	if d.r.IntN(2) == 0 {
		d.files[onPage] = nil
		d.publish()
	} else {
		d.down = true
		d.truth.silent(page)
	}
	// Another agent's pod, a container of somebody's, and one made from a commit
	// of ours are here from the start.
	other := d.engine.Client("/var/lib/other")
	if other.Number() != neighbour {
		panic("the other agent is not the first client")
	}
	return d
}

// action is one thing that the driver may do. It returns false where it cannot
// be done now.
type action struct {
	weight int
	do     func(*driver) bool
}

func actions() []action {
	return []action{
		{12, (*driver).create},
		{6, (*driver).createConfig},
		{6, (*driver).editConfig},
		{1, (*driver).editInit},
		{14, (*driver).editContainer},
		{3, (*driver).editPod},
		{2, (*driver).swapPorts},
		{4, (*driver).editLive},
		{3, (*driver).addOrDropContainer},
		{4, (*driver).renameFile},
		{4, (*driver).move},
		{4, (*driver).drop},
		{5, (*driver).spoil},
		{5, (*driver).repair},
		{3, (*driver).tear},
		{3, (*driver).toggleFolder},
		{3, (*driver).togglePage},
		{10, (*driver).somebody},
		{2, (*driver).commit},
		{3, (*driver).restartEngine},
		{2, (*driver).breakConnections},
		{8, (*driver).crashSoon},
		{3, (*driver).crashNow},
		{2, (*driver).jumpClock},
		{4, (*driver).faults},
		{2, (*driver).images},
		{1, (*driver).fillDisk},
		{4, (*driver).press},
		{6, (*driver).handled},
		{3, (*driver).shutDown},
	}
}

// act does one thing at random.
func (d *driver) act() {
	list, total := actions(), 0
	for _, a := range list {
		total += a.weight
	}
	for range 20 {
		n := d.r.IntN(total)
		for _, a := range list {
			if n -= a.weight; n < 0 {
				if a.do(d) {
					return
				}
				break
			}
		}
	}
}

// pause is mostly short, sometimes long enough for everything to settle.
func (d *driver) pause() time.Duration {
	most := []time.Duration{50 * time.Millisecond, time.Second, 10 * time.Second, time.Minute, 5 * time.Minute}
	return time.Duration(d.r.Int64N(int64(pick(d.r, most)))) + 1
}

// paths returns the files, sorted, and the page where it has pods.
func (d *driver) paths() []string {
	var list []string
	for p := range d.files {
		if p == onPage || !d.gone {
			list = append(list, p)
		}
	}
	slices.Sort(list)
	return list
}

// some returns a place that has what is looked for, and one of it.
func (d *driver) some(match func(*podSpec) bool) (place string, i int, ok bool) {
	type spot struct {
		place string
		i     int
	}
	var spots []spot
	for _, p := range d.paths() {
		for i, thing := range d.files[p] {
			if match(thing) {
				spots = append(spots, spot{p, i})
			}
		}
	}
	if len(spots) == 0 {
		return "", 0, false
	}
	s := pick(d.r, spots)
	return s.place, s.i, true
}

func anything(*podSpec) bool { return true }

// change replaces a pod, or a ConfigMap, by a changed copy, and writes its file.
func (d *driver) change(config bool, f func(*podSpec)) bool {
	place, i, ok := d.some(func(p *podSpec) bool { return p.config == config })
	if !ok {
		return false
	}
	c := *d.files[place][i]
	c.containers = slices.Clone(c.containers)
	f(&c)
	d.files[place] = slices.Clone(d.files[place])
	d.files[place][i] = &c
	d.put(place)
	return true
}

// put writes what a place is meant to say.
func (d *driver) put(place string) {
	if place == onPage {
		d.publish()
		return
	}
	text := yamlOf(d.files[place])
	d.fate.Trace("%s is written", place)
	delete(d.spoilt, place)
	if d.r.IntN(2) == 0 {
		d.tree.replace(place, text)
	} else {
		d.tree.write(place, text)
	}
	d.truth.says(fileOrigin(place), text)
}

// publish serves what the page is meant to say.
func (d *driver) publish() {
	d.edits++
	text := bodyOf(d.files[onPage])
	delete(d.spoilt, onPage)
	if d.down {
		return
	}
	d.fate.Trace("the page is published")
	etag := ""
	if d.r.IntN(2) == 0 {
		etag = fmt.Sprintf(`"%d"`, d.edits)
	}
	d.site.serve(200, text, etag)
	d.truth.says(page, text)
}

// play is the whole scenario. It returns false where enough was seen before the
// end.
func (d *driver) play(steps int) bool {
	d.revive()
	for range steps {
		if dead(d.laws.enough) {
			return false
		}
		d.act()
		d.pass(d.pause())
		if d.agent == nil && d.r.IntN(3) > 0 {
			d.revive()
		}
	}
	return true
}

func (d *driver) revive() {
	if d.agent == nil {
		d.startAgent(-1)
		synctest.Wait() // what it asks for at this instant comes before what happens next
	}
}

// calm ends all faults, and most of what is broken.
func (d *driver) calm() {
	d.fate.Trace("calm")
	d.fate.SetRates(fake.Rates{})
	d.laws.isRough(10 * time.Minute)
	d.engine.Up()
	d.disk.full.Store(false)
	d.short.Store(ofNothing)
	for _, image := range []string{"app:1", "app:2", "far:1"} {
		d.engine.SetImage(image, fake.Image{Present: true, Pullable: true})
	}
	if d.gone {
		d.toggleFolder()
	}
	d.standby()
	for d.r.IntN(4) > 0 && d.repair() {
	}
	if d.down && d.r.IntN(4) > 0 {
		d.togglePage()
	}
	if d.agent != nil {
		d.agent.mu.Lock()
		d.agent.fuse = -1
		d.agent.mu.Unlock()
	}
	d.revive()
}

// trace is what two runs of a seed must have in common.
func (d *driver) trace() string { return strings.Join(d.fate.Lines(), "\n") }
