package agent_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/podkeeper/podkeeper/server"
)

var (
	soakKills = flag.Int("soak.kills", 50, "how often the agent is killed under edits")
	soakSeed  = flag.Uint64("soak.seed", 0, "what decides the edits and the moments; 0 is another one each time")
)

// soakPod is one version of a pod; nil containers are none wanted.
type soakPod struct {
	name, rev, hostname string
	containers          []string
}

func (p soakPod) manifest() string {
	var containers []string
	for _, name := range p.containers {
		command := sleeper
		if name == "stubborn" {
			command = `["sleep", "3600"]` // as process 1 it takes no SIGTERM
		}
		containers = append(containers, of(name, "busybox:stable", "command: "+command, "env: [{name: REV, value: "+p.rev+"}]"))
	}
	return manifest("{name: "+p.name+", labels: {rev: "+p.rev+"}}", containers...) + "  hostname: " + p.hostname + "\n"
}

// edit returns another version of a pod: gone, or with other containers, another
// definition of them, now and then another host name.
func (p soakPod) edit(random *rand.Rand, rev int) soakPod {
	if len(p.containers) > 0 && random.IntN(4) == 0 {
		p.containers = nil
		return p
	}
	p.rev, p.containers = "r"+strconv.Itoa(rev), []string{"a"}
	if random.IntN(2) == 0 {
		p.containers = append(p.containers, "b")
	}
	if random.IntN(5) == 0 {
		p.containers = append(p.containers, "stubborn")
	}
	if random.IntN(3) == 0 {
		p.hostname = "h" + strconv.Itoa(rev)
	}
	return p
}

// Laws 3, 4 and 5: however often the agent is killed, and whenever, what the
// manifests say is what runs in the end, nothing else is left, and at no time
// did two of a kind run.
func TestAgentKilledUnderEdits(t *testing.T) {
	w := newWorld(t)
	seed := *soakSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("seed %d (-soak.seed)", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	h := w.record()
	var pods []soakPod
	for i := range 4 {
		name := fmt.Sprintf("p%d", i)
		pods = append(pods, soakPod{name: name, hostname: name})
	}
	for i := range *soakKills {
		child := w.startProcess()
		if random.IntN(2) == 0 {
			w.await("the agent is ready", func(s server.State) bool { return s.Ready })
		}
		for range 1 + random.IntN(2) {
			p := &pods[random.IntN(len(pods))]
			had := len(p.containers) > 0
			*p = p.edit(random, i)
			if len(p.containers) > 0 {
				w.write(p.name+".yaml", p.manifest())
			} else if had {
				w.remove(p.name + ".yaml")
			}
		}
		<-time.After(time.Duration(random.IntN(400)) * time.Millisecond)
		child.kill()
	}
	w.start()
	w.converged(pods)
	if most := h.most(t); most != 1 {
		t.Errorf("%d containers of one name in one pod ran at a time, want 1", most)
	}
}

// converged waits until the pods run, and checks that nothing else is left.
func (w *world) converged(pods []soakPod) {
	w.t.Helper()
	wanted := make(map[string]bool)
	uids := make(map[string]string)
	for _, p := range pods {
		if len(p.containers) == 0 {
			w.await(p.name+" is gone", gone(p.name))
			continue
		}
		s := w.await(p.name+" runs", labelled(p.name, p.rev), running(p.name), func(s server.State) bool {
			var names []string
			for _, c := range find(s, p.name).Pod.Status.ContainerStatuses {
				names = append(names, c.Name)
			}
			return slices.Equal(names, p.containers)
		})
		uids[p.name+"-node"] = string(find(s, p.name).Pod.UID)
		for _, name := range append([]string{"POD"}, p.containers...) {
			wanted[p.name+"-node/"+name] = true
		}
	}
	for _, c := range w.list() {
		pod, name := c.Labels["io.kubernetes.pod.name"], c.Labels["io.kubernetes.container.name"]
		dead := c.State == "exited" && name != "POD" // an attempt that people may read
		switch {
		case c.Labels["io.kubernetes.pod.uid"] != uids[pod] || !wanted[pod+"/"+name] && !dead:
			w.t.Errorf("%s is left, %s", c.Names, c.State)
		case dead:
		case c.State != "running":
			w.t.Errorf("%s is %s", c.Names, c.State)
		}
		if c.State == "running" {
			delete(wanted, pod+"/"+name)
		}
	}
	for name := range wanted {
		w.t.Errorf("%s does not run", name)
	}
}
