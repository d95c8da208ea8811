package reconcile

import "time"

// Since has when each condition of the node came to be as it is, on the clock of
// [Config.Wall]; what never changed has when the loop began.
type Since struct{ Ready, Memory, Disk, PIDs time.Time }

// standing is how the node stands. Two that are equal differ in no condition.
type standing struct{ ready, looked, memory, disk, pids bool }

func (s *state) standing() standing {
	y := s.pressure
	return standing{
		ready: s.online && s.shutdown == nil, looked: y.Looked,
		memory: y.Memory.Message != "", disk: y.Disk.Message != "", pids: y.PIDs.Message != "",
	}
}

// after returns since when each condition is as it is now.
func (t Since) after(was, now standing, at time.Time) Since {
	turn := func(since *time.Time, turned bool) {
		if turned {
			*since = at
		}
	}
	first := was.looked != now.looked
	turn(&t.Ready, was.ready != now.ready)
	turn(&t.Memory, first || was.memory != now.memory)
	turn(&t.Disk, first || was.disk != now.disk)
	turn(&t.PIDs, first || was.pids != now.pids)
	return t
}
