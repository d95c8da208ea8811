package sim

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// podSpec is a pod as the driver wants it. Its YAML is all that the agent sees.
type podSpec struct {
	name        string
	hostname    int // pod-level
	hostNetwork bool
	port        int // a host port, 0 for none
	restart     string
	grace       int
	volume      bool
	label       int // live
	containers  []containerSpec
}

type containerSpec struct {
	name   string
	image  string
	words  []string // the program, see fake.ParseProgram
	env    int
	memory int // MiB, changed in place
}

// Images of the simulated world. The last two cannot be had.
var images = []string{"app:1", "app:2", "far:1", "far:2", "fresh", "missing:1", "secret:1"}

func obtainable(image string) bool { return image != "missing:1" && image != "secret:1" }

var programs = [][]string{
	{"run"}, {"run"}, {"run"}, {"run"}, {"run"}, {"run"},
	{"ignore-term"},
	{"exit=0", "after=4m"}, {"exit=1", "after=20s"}, {"exit=0", "after=1s"}, {"oom", "after=2m"},
	{"exit=0", "after=80ms"}, {"exit=1", "after=10ms"},
	{"fail-start"},
}

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

func newPod(r *rand.Rand, name string) *podSpec {
	p := &podSpec{name: name, restart: pick(r, []string{"Always", "Always", "Always", "OnFailure", "Never"}), grace: 1 + r.IntN(20), volume: r.IntN(2) == 0}
	if r.IntN(5) == 0 {
		p.port = 8080 + r.IntN(2)
	}
	p.hostNetwork = p.port == 0 && r.IntN(8) == 0
	for i := range 1 + r.IntN(3) {
		p.containers = append(p.containers, newContainer(r, fmt.Sprintf("c%d", i)))
	}
	return p
}

func newContainer(r *rand.Rand, name string) containerSpec {
	c := containerSpec{name: name, image: "app:1", words: pick(r, programs)}
	if r.IntN(3) == 0 {
		c.image = pick(r, images)
	}
	if r.IntN(3) == 0 {
		c.memory = 64
	}
	return c
}

// yaml returns the manifest, as a document of a file.
func (p *podSpec) yaml() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("apiVersion: v1")
	line("kind: Pod")
	line("metadata:")
	line("  name: %s", p.name)
	line("  labels: {rev: r%d}", p.label)
	line("spec:")
	line("  restartPolicy: %s", p.restart)
	line("  terminationGracePeriodSeconds: %d", p.grace)
	line("  hostname: h%d", p.hostname)
	line("  hostNetwork: %t", p.hostNetwork)
	if p.volume {
		line("  volumes:")
		line("  - name: scratch")
		line("    emptyDir: {}")
	}
	line("  containers:")
	for i, c := range p.containers {
		line("  - name: %s", c.name)
		line("    image: %s", c.image)
		line("    command: [%s]", strings.Join(c.words, ", "))
		line("    env:")
		line("    - {name: REV, value: \"%d\"}", c.env)
		if p.volume {
			line("    volumeMounts:")
			line("    - {name: scratch, mountPath: /scratch}")
		}
		if c.memory > 0 {
			line("    resources: {limits: {memory: %dMi}, requests: {memory: 16Mi}}", c.memory)
		}
		if p.port > 0 && i == 0 {
			line("    ports:")
			line("    - {containerPort: 80, hostPort: %d}", p.port)
		}
	}
	return b.String()
}

// yamlOf returns the file of those pods.
func yamlOf(pods []*podSpec) string {
	docs := make([]string, len(pods))
	for i, p := range pods {
		docs[i] = p.yaml()
	}
	return strings.Join(docs, "---\n")
}

// bodyOf returns the page of those pods: none at all is an explicit empty list.
func bodyOf(pods []*podSpec) string {
	if len(pods) == 0 {
		return `{"apiVersion": "v1", "kind": "PodList", "items": []}`
	}
	return yamlOf(pods)
}

// broken spoils a file in one of the ways in which people do.
func broken(r *rand.Rand, text string) string {
	switch r.IntN(5) {
	case 0:
		return ""
	case 1:
		return text[:r.IntN(len(text))+1] // a disk that filled up
	case 2:
		return strings.Replace(text, "spec:", "spec", 1)
	case 3:
		return strings.Replace(text, "containers:", "containerz:", 1)
	default:
		return strings.Replace(text, "restartPolicy: ", "restartPolicy: [oops] ", 1)
	}
}
