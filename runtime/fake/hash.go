package fake

import (
	"hash/fnv"
	"time"
)

// hash mixes the seed and the parts. FNV alone leaves similar strings with
// similar high bits; the finalizer of splitmix64 spreads them.
func hash(seed uint64, parts ...string) uint64 {
	h := fnv.New64a()
	for _, p := range parts {
		h.Write([]byte(p))
		h.Write([]byte{0})
	}
	return mix(h.Sum64() ^ mix(seed))
}

func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// draw is the private stream of one call.
type draw uint64

func (d *draw) next() uint64 {
	*d += 0x9e3779b97f4a7c15
	return mix(uint64(*d))
}

// unit returns a number in [0, 1).
func (d *draw) unit() float64 { return float64(d.next()>>11) / (1 << 53) }

// between returns a duration in [lo, hi), to the nanosecond; lo if there is none.
func (d *draw) between(lo, hi time.Duration) time.Duration {
	n := d.next()
	if hi <= lo {
		return lo
	}
	return lo + time.Duration(n%uint64(hi-lo))
}

// fault is what goes wrong with one call.
type fault int

const (
	none fault = iota
	slow
	hung
	fail
	lostReply
)

func (d *draw) fault(r Rates) fault {
	u := d.unit()
	for _, c := range []struct {
		rate  float64
		fault fault
	}{{r.Slow, slow}, {r.Hung, hung}, {r.Fail, fail}, {r.LostReply, lostReply}} {
		if u < c.rate {
			return c.fault
		}
		u -= c.rate
	}
	return none
}
