package reconcile

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podkeeper/podkeeper/node/volume"
	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/runtime"
)

// What tests of the pure parts reach for.
var (
	Expand         = expand
	CrashDelay     = crashDelay
	NextLevel      = nextLevel
	HappenedAt     = happenedAt
	Resources      = resources
	PodCgroup      = podCgroup
	Hostname       = hostname
	KernelHostname = kernelHostname
	HostsFile      = hostsFile
	EnvFile        = envFile
	OOMScoreAdj    = oomScoreAdj
	Security       = security
	TakeFreeCPUs   = takeCPUs
	Lacking        = lacking
	Mismatch       = Node.mismatch
	SandboxSpec    = sandboxSpec
	ContainerSpec  = containerSpec
	EncodeState    = encodeState
	DecodeState    = decodeState
	EncodePod      = encodePod
	DecodePod      = decodePod
	VolumeRequest  = volumeRequest
	MountOf        = mountOf
	SubPath        = subPath
	WaitEvents     = waitEvents
	TakenEvents    = takenEvents
	ProbeEvent     = probeEvent
)

// About is what a container may be told.
type About struct {
	Pod     *v1.Pod
	UID     types.UID
	Node    Node
	PodIPs  []string
	Objects map[pod.ObjectKey]*pod.Object
	File    func(volume, path string) (text string, found bool, err error)
}

func (a About) surroundings() surroundings {
	return surroundings{pod: a.Pod, uid: a.UID, node: a.Node, podIPs: a.PodIPs, objects: a.Objects, file: a.File}
}

// Environment returns the environment of a container as an engine is given it.
func Environment(c *v1.Container, a About) ([]string, error) {
	env, err := environment(c, a.surroundings())
	return env.list(), err
}

// What tests of DNS reach for.
var (
	ParseResolvConf = parseResolvConf
	NodeDNS         = nodeDNS
	PodDNS          = podDNS
)

// Content returns what a volume shows.
func Content(v v1.Volume, a About) ([]volume.File, bool, error) {
	return a.surroundings().content(v)
}

// Lacks returns why a volume cannot be had.
func Lacks(v v1.Volume, a About) error { return a.surroundings().missing(v) }

func (s State) Fold(observed []runtime.Container) State { return s.fold(observed) }

func Restarts(p *v1.Pod, name string, code int) bool {
	for _, m := range members(p) {
		if m.Name == name {
			return restarts(p, m, code)
		}
	}
	return false
}

// KnownImages returns the names of the images that something is known of.
func (l *Loop) KnownImages(ctx context.Context) (names []string) {
	done := make(chan struct{})
	l.report(ctx, func(s *state) {
		for key := range s.images {
			names = append(names, key.name)
		}
		close(done)
	})
	<-done
	return names
}

// KnownEvictions returns of how many generations it is known when they were evicted.
func (l *Loop) KnownEvictions(ctx context.Context) int {
	count := make(chan int, 1)
	l.report(ctx, func(s *state) {
		n := 0
		for _, e := range s.pods {
			n += len(e.out) + len(e.emptied)
		}
		count <- n
	})
	return <-count
}
