package sim

import (
	"fmt"
	"path"
	"slices"
	"time"
)

// This file is what the driver does to the sources. Whatever a place says, the
// truth is told of it at the same instant.

func (d *driver) create() bool {
	total := 0
	for _, pods := range d.files {
		for _, p := range pods {
			if !p.config {
				total++
			}
		}
	}
	// A name that was used before comes back now and then.
	name := fmt.Sprintf("p%d", d.r.IntN(6))
	return total < 5 && d.add(name, func() *podSpec {
		p := newPod(d.r, name)
		d.requests(p)
		return p
	})
}

func (d *driver) createConfig() bool {
	d.edits++
	c := &podSpec{name: pick(d.r, configs), config: true, label: d.edits}
	return d.add(c.name, func() *podSpec { return c })
}

// add puts something new somewhere, unless its name is in use.
func (d *driver) add(name string, thing func() *podSpec) bool {
	place := onPage
	if d.r.IntN(3) > 0 {
		if d.gone {
			return false
		}
		place = path.Join(folder, fmt.Sprintf("f%d.yaml", d.r.IntN(4)))
	}
	for _, pods := range d.files {
		if slices.ContainsFunc(pods, func(p *podSpec) bool { return p.name == name }) {
			return false
		}
	}
	d.files[place] = append(slices.Clone(d.files[place]), thing())
	d.put(place)
	return true
}

func (d *driver) editConfig() bool {
	return d.change(true, func(c *podSpec) {
		d.edits++
		c.label = d.edits
	})
}

// editInit replaces what initialises a pod.
func (d *driver) editInit() bool {
	return d.change(false, func(p *podSpec) {
		p.inits = nil
		for i := range d.r.IntN(3) {
			p.inits = append(p.inits, newInit(d.r, i))
		}
	})
}

func (d *driver) editContainer() bool {
	return d.change(false, func(p *podSpec) {
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
	return d.change(false, func(p *podSpec) {
		d.edits++
		p.hostname = d.edits
	})
}

// swapPorts gives each of two pods the host port of the other. Where they lie in
// one file, that is one edit.
func (d *driver) swapPorts() bool {
	type spot struct {
		place string
		i     int
	}
	var list []spot
	for _, place := range d.paths() {
		for i, p := range d.files[place] {
			if p.port > 0 && (len(list) == 0 || d.files[list[0].place][list[0].i].port != p.port) {
				list = append(list, spot{place, i})
			}
		}
	}
	if len(list) < 2 {
		return false
	}
	ports := []int{d.files[list[1].place][list[1].i].port, d.files[list[0].place][list[0].i].port}
	for n, s := range list[:2] {
		c := *d.files[s.place][s.i]
		c.port = ports[n]
		d.files[s.place] = slices.Clone(d.files[s.place])
		d.files[s.place][s.i] = &c
	}
	d.put(list[0].place)
	if list[1].place != list[0].place {
		d.pass(d.pause() / 8)
		d.put(list[1].place)
	}
	return true
}

func (d *driver) editLive() bool {
	return d.change(false, func(p *podSpec) {
		switch c := &p.containers[0]; d.r.IntN(5) {
		case 0:
			p.label++
		case 1:
			p.grace = 1 + d.r.IntN(20)
		case 2:
			c.live, c.ready = pick(d.r, []string{"", "exit=0 live"}), pick(d.r, []string{"", "exit=0 ready", "exit=1 ready"})
		case 3:
			c.preStop = pick(d.r, []string{"", "exit=0 after=1s pre"})
			d.requests(p)
		default:
			c.memory = 32 + 32*d.r.IntN(3)
		}
	})
}

func (d *driver) addOrDropContainer() bool {
	return d.change(false, func(p *podSpec) {
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
	from, i, ok := d.some(anything)
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
	place, i, ok := d.some(anything)
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
	place, _, ok := d.some(anything)
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
