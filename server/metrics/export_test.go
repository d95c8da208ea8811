package metrics

import "github.com/podkeeper/podkeeper/runtime"

// Pulling has a pull be as far as that.
func (c *Counters) Pulling(p runtime.PullProgress) {
	c.pulling.images = map[string]runtime.PullProgress{p.Image: p}
}
