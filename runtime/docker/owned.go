package docker

import "sync"

// ownedIDs remembers which ids were seen to be ours, so that acting on one
// costs no inspect. An id never changes its owner; the set is cut back to what
// exists at each listing.
type ownedIDs struct {
	mu  sync.Mutex
	age int            // of the listing that began last
	ids map[string]int // the age at which each was seen last
}

func (o *ownedIDs) add(id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ids == nil {
		o.ids = map[string]int{}
	}
	o.ids[id] = o.age
}

func (o *ownedIDs) has(id string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, ok := o.ids[id]
	return ok
}

func (o *ownedIDs) remove(id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.ids, id)
}

// begin is called before a listing; what was added since then is kept by keep.
func (o *ownedIDs) begin() (age int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.age++
	return o.age
}

func (o *ownedIDs) keep(age int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for id, seen := range o.ids {
		if seen < age {
			delete(o.ids, id)
		}
	}
}
