package sim

import (
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/podkeeper/podkeeper/runtime"
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
	names  int
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
		{10, (*driver).create},
		{12, (*driver).editContainer},
		{3, (*driver).editPod},
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

// some returns a place that has pods, and one of them.
func (d *driver) some() (place string, i int, ok bool) {
	var places []string
	for _, p := range d.paths() {
		if len(d.files[p]) > 0 {
			places = append(places, p)
		}
	}
	if len(places) == 0 {
		return "", 0, false
	}
	place = pick(d.r, places)
	return place, d.r.IntN(len(d.files[place])), true
}

// change replaces a pod by a changed copy, and writes its file.
func (d *driver) change(f func(*podSpec)) bool {
	place, i, ok := d.some()
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

func (d *driver) create() bool {
	total := 0
	for _, pods := range d.files {
		total += len(pods)
	}
	if total >= 5 {
		return false
	}
	place := onPage
	if d.r.IntN(3) > 0 {
		if d.gone {
			return false
		}
		place = path.Join(folder, fmt.Sprintf("f%d.yaml", d.r.IntN(4)))
	}
	// A name that was used before comes back now and then.
	name := fmt.Sprintf("p%d", d.r.IntN(6))
	for _, pods := range d.files {
		if slices.ContainsFunc(pods, func(p *podSpec) bool { return p.name == name }) {
			return false
		}
	}
	d.files[place] = append(slices.Clone(d.files[place]), newPod(d.r, name))
	d.put(place)
	return true
}

func (d *driver) editContainer() bool {
	return d.change(func(p *podSpec) {
		c := &p.containers[d.r.IntN(len(p.containers))]
		switch d.r.IntN(4) {
		case 0:
			c.image = pick(d.r, images)
		case 1:
			c.words = pick(d.r, programs)
		default:
			d.edits++
			c.env = d.edits
		}
	})
}

func (d *driver) editPod() bool {
	return d.change(func(p *podSpec) {
		d.edits++
		p.hostname = d.edits
	})
}

func (d *driver) editLive() bool {
	return d.change(func(p *podSpec) {
		switch c := &p.containers[0]; d.r.IntN(3) {
		case 0:
			p.label++
		case 1:
			p.grace = 1 + d.r.IntN(20)
		default:
			c.memory = 32 + 32*d.r.IntN(3)
		}
	})
}

func (d *driver) addOrDropContainer() bool {
	return d.change(func(p *podSpec) {
		if n := len(p.containers); n > 1 && p.port == 0 && d.r.IntN(2) == 0 {
			p.containers = slices.Delete(p.containers, n-1, n)
		} else {
			d.edits++
			p.containers = append(p.containers, newContainer(d.r, fmt.Sprintf("x%d", d.edits)))
		}
	})
}

// aFile returns one that is there, and says what it is meant to.
func (d *driver) aFile() (string, bool) {
	list := slices.DeleteFunc(d.paths(), func(p string) bool { return p == onPage || d.spoilt[p] })
	if len(list) == 0 {
		return "", false
	}
	return pick(d.r, list), true
}

func (d *driver) renameFile() bool {
	from, ok := d.aFile()
	to := path.Join(folder, fmt.Sprintf("r%d.yaml", d.r.IntN(4)))
	if !ok || d.files[to] != nil {
		return false
	}
	d.fate.Trace("%s is renamed %s", from, to)
	d.files[to] = d.files[from]
	delete(d.files, from)
	d.tree.rename(from, to)
	d.truth.says(fileOrigin(to), yamlOf(d.files[to]))
	d.truth.gone(fileOrigin(from))
	return true
}

// move takes a pod from one place to another: first there, then no longer here,
// or the other way round.
func (d *driver) move() bool {
	from, i, ok := d.some()
	if !ok || d.gone {
		return false
	}
	to := path.Join(folder, fmt.Sprintf("f%d.yaml", d.r.IntN(4)))
	if from != onPage && d.r.IntN(2) == 0 {
		to = onPage
	}
	if to == from {
		return false
	}
	p := d.files[from][i]
	add := func() {
		d.files[to] = append(slices.Clone(d.files[to]), p)
		d.put(to)
	}
	leave := func() {
		d.files[from] = slices.DeleteFunc(slices.Clone(d.files[from]), func(q *podSpec) bool { return q == p })
		d.put(from)
	}
	if d.r.IntN(3) > 0 {
		add()
		d.pass(d.pause())
		leave()
	} else {
		leave()
		d.pass(d.pause())
		add()
	}
	return true
}

// drop removes a pod, or a whole file.
func (d *driver) drop() bool {
	place, i, ok := d.some()
	if !ok {
		return false
	}
	d.files[place] = slices.Delete(slices.Clone(d.files[place]), i, i+1)
	if place == onPage || len(d.files[place]) > 0 || d.r.IntN(3) == 0 {
		d.put(place)
		return true
	}
	d.fate.Trace("%s is removed", place)
	delete(d.files, place)
	delete(d.spoilt, place)
	d.tree.remove(place)
	d.truth.gone(fileOrigin(place))
	return true
}

// spoil breaks what a place says.
func (d *driver) spoil() bool {
	place, _, ok := d.some()
	if !ok || place == onPage && d.down {
		return false
	}
	if place != onPage {
		text := broken(d.r, yamlOf(d.files[place]))
		d.fate.Trace("%s is spoilt", place)
		d.tree.write(place, text)
		d.truth.says(fileOrigin(place), text)
	} else {
		text := broken(d.r, bodyOf(d.files[place]))
		if d.r.IntN(3) == 0 {
			text = "<!DOCTYPE html><html><body>Sign in</body></html>"
		}
		d.fate.Trace("the page is spoilt")
		d.site.serve(200, text, "")
		d.truth.says(page, text)
	}
	d.spoilt[place] = true
	return true
}

func (d *driver) repair() bool {
	var list []string
	for p := range d.spoilt {
		if p == onPage || !d.gone {
			list = append(list, p)
		}
	}
	if len(list) == 0 {
		return false
	}
	slices.Sort(list)
	d.put(pick(d.r, list))
	return true
}

// tear writes a file in two parts.
func (d *driver) tear() bool {
	place, ok := d.aFile()
	if !ok || len(d.files[place]) == 0 {
		return false
	}
	text := yamlOf(d.files[place])
	part := text[:d.r.IntN(len(text))]
	d.fate.Trace("%s is written, the first %d bytes", place, len(part))
	d.tree.write(place, part)
	d.truth.says(fileOrigin(place), part)
	d.pass(time.Duration(d.r.Int64N(int64(2 * time.Second))))
	d.fate.Trace("%s is written, the rest", place)
	d.tree.write(place, text)
	d.truth.says(fileOrigin(place), text)
	return true
}

// toggleFolder makes the folder vanish, or come back as it was.
func (d *driver) toggleFolder() bool {
	d.gone = !d.gone
	if d.gone {
		d.fate.Trace("the folder vanishes")
		d.away = d.tree.removeDir(folder)
		for name := range d.files {
			if name != onPage {
				d.truth.silent(fileOrigin(name))
			}
		}
		return true
	}
	d.fate.Trace("the folder is back")
	d.tree.makeDir(folder)
	names := make([]string, 0, len(d.away))
	for name := range d.away {
		names = append(names, name)
	}
	slices.Sort(names)
	// It is filled one file at a time. The files not yet there are missing, for
	// all that anybody can see.
	for _, name := range names {
		d.truth.gone(fileOrigin(name))
	}
	for _, name := range names {
		text := string(d.away[name].data)
		d.tree.write(name, text)
		d.truth.says(fileOrigin(name), text)
		if d.r.IntN(3) == 0 {
			d.pass(time.Duration(d.r.Int64N(int64(500 * time.Millisecond))))
		}
	}
	d.away = nil
	return true
}

func (d *driver) togglePage() bool {
	d.down = !d.down
	if !d.down {
		d.publish()
		return true
	}
	status := pick(d.r, []int{0, 0, 500, 404})
	d.fate.Trace("the page is away: %d", status)
	d.site.serve(status, "not here", "")
	d.truth.silent(page)
	return true
}

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
	d.engine.Down(d.r.IntN(2) == 0)
	d.pass(d.pause() / 4)
	d.engine.Up()
	return true
}

func (d *driver) breakConnections() bool {
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

func (d *driver) crashNow() bool {
	d.crash()
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
	return true
}

// images takes an image away, or brings it back.
func (d *driver) images() bool {
	d.engine.SetImage(pick(d.r, []string{"app:1", "app:2", "far:1"}), fake.Image{Present: d.r.IntN(2) == 0, Pullable: d.r.IntN(4) > 0})
	return true
}

func (d *driver) fillDisk() bool {
	d.disk.full = !d.disk.full
	return true
}

// play is the whole scenario.
func (d *driver) play(steps int) {
	d.revive()
	for range steps {
		d.act()
		d.pass(d.pause())
		if d.agent == nil && d.r.IntN(3) > 0 {
			d.revive()
		}
	}
}

func (d *driver) revive() {
	if d.agent == nil {
		d.startAgent(-1)
	}
}

// calm ends all faults, and most of what is broken.
func (d *driver) calm() {
	d.fate.Trace("calm")
	d.fate.SetRates(fake.Rates{})
	d.engine.Up()
	d.disk.full = false
	for _, image := range []string{"app:1", "app:2", "far:1"} {
		d.engine.SetImage(image, fake.Image{Present: true, Pullable: true})
	}
	if d.gone {
		d.toggleFolder()
	}
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
