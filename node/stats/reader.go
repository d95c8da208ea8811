package stats

import (
	"log/slog"
	"sync"

	"github.com/google/cadvisor/lib/container"
	"github.com/google/cadvisor/lib/container/libcontainer"
)

// counted is what is read of a cgroup. Each kind costs files to read.
var counted = container.MetricSet{
	container.CpuUsageMetrics:     {},
	container.MemoryUsageMetrics:  {},
	container.NetworkUsageMetrics: {},
	container.DiskIOMetrics:       {}, // with version 2: the pressure of I/O
}

// Reader reads what the kernel counts. Its methods may be called from several
// goroutines.
type Reader struct {
	log *slog.Logger

	mu sync.Mutex
	// mounts are where the controllers of cgroups are mounted, or the one unified
	// tree under the name ""; nil until they were found.
	mounts map[string]string
	// said are the complaints that stand.
	said map[string]bool
}

// NewReader returns a reader that complains to log: once of each thing that it
// cannot tell, until it can again.
func NewReader(log *slog.Logger) *Reader {
	return &Reader{log: log, said: make(map[string]bool)}
}

// note says what is wrong with something, once, and forgets it when it is well.
func (r *Reader) note(what string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		delete(r.said, what)
		return
	}
	if !r.said[what] {
		r.log.Warn(what+" is not known", "err", err)
	}
	r.said[what] = true
}

// hierarchies returns where the controllers are mounted.
func (r *Reader) hierarchies() (map[string]string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mounts == nil {
		wanted := container.MetricSet{container.ProcessMetrics: {}}
		for kind := range counted {
			wanted[kind] = struct{}{}
		}
		delete(wanted, container.DiskIOMetrics) // with version 1: a controller with a dozen files for each cgroup
		found, err := libcontainer.GetCgroupSubsystems(wanted)
		if err != nil {
			return nil, err
		}
		r.mounts = found
	}
	return r.mounts, nil
}
