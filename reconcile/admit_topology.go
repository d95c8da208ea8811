package reconcile

import (
	"slices"

	"k8s.io/utils/cpuset"
)

// TakeCPUs returns count of the CPUs, or all where there are fewer, as they are given
// to containers.
func TakeCPUs(online []CPU, count int) cpuset.CPUSet {
	return takeCPUs(online, idsOf(online), min(count, len(online)))
}

// takeCPUs returns count of the free CPUs, of which there are enough: those that
// have most in common with each other, and break up least for others. Whole sockets
// come first, then whole cores, then single CPUs.
func takeCPUs(online []CPU, free cpuset.CPUSet, count int) cpuset.CPUSet {
	taken := cpuset.New()
	for _, part := range []func(CPU) CPU{
		func(c CPU) CPU { return CPU{ID: -1, Core: -1, Socket: c.Socket} },
		func(c CPU) CPU { return CPU{ID: -1, Core: c.Core, Socket: c.Socket} },
		func(c CPU) CPU { return c },
	} {
		for {
			next := wholePart(online, free.Difference(taken), taken, count-taken.Size(), part)
			if next.IsEmpty() {
				break
			}
			taken = taken.Union(next)
		}
	}
	return taken
}

// wholePart returns the best part of the machine that is free as a whole and not
// too large, empty for none.
func wholePart(online []CPU, free, taken cpuset.CPUSet, most int, part func(CPU) CPU) cpuset.CPUSet {
	parts := make(map[CPU]cpuset.CPUSet)
	for _, c := range online {
		parts[part(c)] = parts[part(c)].Union(cpuset.New(c.ID))
	}
	var best cpuset.CPUSet
	var bestRank []int
	for _, c := range online {
		whole := parts[part(c)]
		if whole.Size() > most || !whole.IsSubsetOf(free) {
			continue
		}
		if rank := rankCPU(online, free, taken, most, c); best.IsEmpty() || slices.Compare(rank, bestRank) < 0 {
			best, bestRank = whole, rank
		}
	}
	return best
}

// rankCPU orders what could be taken next, where most are still to be: first where
// others were taken already, then the socket that has just enough, then the core
// that has least, then by number.
func rankCPU(online []CPU, free, taken cpuset.CPUSet, most int, c CPU) []int {
	var takenBeside, freeOnSocket, freeOnCore int
	for _, o := range online {
		switch {
		case o.Socket != c.Socket:
		case taken.Contains(o.ID):
			takenBeside++
		case free.Contains(o.ID):
			freeOnSocket++
			if o.Core == c.Core {
				freeOnCore++
			}
		}
	}
	if freeOnSocket < most {
		freeOnSocket = len(online)*2 - freeOnSocket // after all that have enough; of these, the fullest
	}
	return []int{-takenBeside, freeOnSocket, freeOnCore, c.ID}
}
