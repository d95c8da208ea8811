package reconcile

import (
	"fmt"
	"maps"

	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/cpuset"

	"github.com/podkeeper/podkeeper/manifests"
	"github.com/podkeeper/podkeeper/pod"
)

// Pinning says how the machine's CPUs are shared out.
type Pinning struct {
	// Static: a container of a Guaranteed pod that asks for whole CPUs has them for
	// itself, and all others share the rest.
	Static bool
	// Online are all that there are, by id. None is unknown: nobody is held to any.
	Online []CPU
	// Reserved are never given to one container alone, so that something is left for
	// the machine and for all others. With Static there is at least one.
	Reserved cpuset.CPUSet
}

// CPU is one processor as the kernel counts them, and what it is part of. Those of
// one core share most of it.
type CPU struct{ ID, Core, Socket int }

// All returns every CPU that there is.
func (p Pinning) All() cpuset.CPUSet { return idsOf(p.Online) }

func idsOf(list []CPU) cpuset.CPUSet {
	ids := make([]int, 0, len(list))
	for _, cpu := range list {
		ids = append(ids, cpu.ID)
	}
	return cpuset.New(ids...)
}

// CPULedger is which container has which CPUs for itself.
type CPULedger struct {
	cpus   Pinning
	left   cpuset.CPUSet                          // that nobody has for himself
	shared string                                 // the same
	claims map[cpuHolder]map[string]cpuset.CPUSet // by container
}

// cpuHolder is a version of a pod: two of one key are never up together, but one can
// still have what the other is to get.
type cpuHolder struct {
	key  pod.Key
	hash pod.Hash
}

func holderOf(p *pod.Pod) cpuHolder { return cpuHolder{p.Key(), p.Hash} }

// NewCPULedger returns a ledger in which every CPU is shared.
func NewCPULedger(cpus Pinning) *CPULedger {
	l := &CPULedger{cpus: cpus, claims: make(map[cpuHolder]map[string]cpuset.CPUSet)}
	l.count()
	return l
}

// Shared returns the CPUs that no container has for itself, as the kernel spells a
// list.
func (l *CPULedger) Shared() string { return l.shared }

// count looks anew at what is left, after claims have changed.
func (l *CPULedger) count() {
	l.left = l.cpus.All()
	for _, own := range l.claims {
		for _, cpus := range own {
			l.left = l.left.Difference(cpus)
		}
	}
	l.shared = l.left.String()
}

// Own returns what the containers of this version of a pod have for themselves; nil
// for nothing.
func (l *CPULedger) Own(p *pod.Pod) map[string]string {
	var own map[string]string
	for name, cpus := range l.claims[holderOf(p)] {
		if own == nil {
			own = make(map[string]string)
		}
		own[name] = cpus.String()
	}
	return own
}

// Claim gives the containers of a pod the CPUs that they are to have for themselves,
// all or none, and reports whether that changed who has what. What one has already
// stays its own as far as it still asks for so many. A pod that is refused keeps
// what it has.
func (l *CPULedger) Claim(p *pod.Pod) (changed bool, refusal Waiting) {
	if !l.cpus.Static {
		return false, Waiting{}
	}
	have := l.claims[holderOf(p)]
	beside, before := pinnable(p.Object)
	if asBefore(have, beside, before) {
		return false, Waiting{}
	}
	free := l.left.Difference(l.cpus.Reserved)
	for _, cpus := range have {
		free = free.Union(cpus)
	}
	own := make(map[string]cpuset.CPUSet)
	for _, m := range beside {
		kept := takeCPUs(l.cpus.Online, have[m.Name], min(m.need, have[m.Name].Size()))
		own[m.Name], free = kept, free.Difference(kept)
	}
	again := cpuset.New() // of what does not run before the pod is initialised
	for _, m := range beside {
		short := m.need - own[m.Name].Size()
		if short > free.Size() {
			return false, notEnoughCPUs(m.need, own[m.Name].Size()+free.Size())
		}
		more := takeCPUs(l.cpus.Online, free, short)
		own[m.Name], free = own[m.Name].Union(more), free.Difference(more)
		if m.kind == primary {
			again = again.Union(own[m.Name])
		}
	}
	for _, m := range before {
		usable := again.Union(free)
		if m.need > usable.Size() {
			return false, notEnoughCPUs(m.need, usable.Size())
		}
		cpus := have[m.Name]
		if cpus.Size() != m.need || !cpus.IsSubsetOf(usable) {
			cpus = takeCPUs(l.cpus.Online, again, min(m.need, again.Size()))
			cpus = cpus.Union(takeCPUs(l.cpus.Online, free, m.need-cpus.Size()))
		}
		own[m.Name], again, free = cpus, again.Union(cpus), free.Difference(cpus)
	}
	if maps.EqualFunc(own, have, cpuset.CPUSet.Equals) {
		return false, Waiting{}
	}
	l.claims[holderOf(p)] = own
	l.count()
	return true, Waiting{}
}

// asBefore reports whether everybody has as many as he asks for, as is mostly so.
func asBefore(have map[string]cpuset.CPUSet, asking ...[]pinnedMember) bool {
	count := 0
	for _, list := range asking {
		for _, m := range list {
			if have[m.Name].Size() != m.need {
				return false
			}
			count++
		}
	}
	return count == len(have)
}

// pinnedMember is a container that is to have CPUs for itself.
type pinnedMember struct {
	member
	need int
}

// pinnable returns those that run beside each other, and those that run before the
// primary ones, one after the other, and so can use what these do not need yet.
func pinnable(p *v1.Pod) (beside, before []pinnedMember) {
	for _, m := range members(p) {
		switch need := wholeCPUs(p, m.Container); {
		case need == 0:
		case m.kind == initial:
			before = append(before, pinnedMember{m, need})
		default:
			beside = append(beside, pinnedMember{m, need})
		}
	}
	return beside, before
}

// notEnoughCPUs is the kubelet's refusal.
func notEnoughCPUs(requested, available int) Waiting {
	return Waiting{UnexpectedAdmissionError, fmt.Sprintf(
		"Allocate failed due to not enough cpus available to satisfy request: requested=%d, available=%d, which is unexpected", requested, available)}
}

// Restore notes what a container was given before the agent ended. What can not be
// its own any more is not restored: the CPU is gone or reserved, or another's.
func (l *CPULedger) Restore(p *pod.Pod, container, cpus string) {
	set, err := cpuset.Parse(cpus)
	holder := holderOf(p)
	mine := cpuset.New()
	for _, own := range l.claims[holder] {
		mine = mine.Union(own) // an init container's may be a primary one's too
	}
	free := l.left.Difference(l.cpus.Reserved).Union(mine)
	if err != nil || !l.cpus.Static || set.IsEmpty() || !set.IsSubsetOf(free) {
		return
	}
	if l.claims[holder] == nil {
		l.claims[holder] = make(map[string]cpuset.CPUSet)
	}
	l.claims[holder][container] = set
	l.count()
}

// Keep takes back what those versions of a pod have that are not to be kept, and
// reports whether they had anything.
func (l *CPULedger) Keep(key pod.Key, keep func(pod.Hash) bool) (freed bool) {
	for holder, own := range l.claims {
		if holder.key == key && !keep(holder.hash) {
			freed = freed || len(own) > 0
			delete(l.claims, holder)
		}
	}
	if freed {
		l.count()
	}
	return freed
}

// wholeCPUs returns how many CPUs a container is to have for itself: those of a
// Guaranteed pod that states a whole number. As in the kubelet, one whose pod states
// resources as a whole has none.
func wholeCPUs(p *v1.Pod, c *v1.Container) int {
	if p.Spec.Resources != nil || manifests.QOSClass(p) != v1.PodQOSGuaranteed {
		return 0
	}
	milli := c.Resources.Limits.Cpu().MilliValue()
	if milli%1000 != 0 {
		return 0
	}
	return int(milli / 1000)
}
