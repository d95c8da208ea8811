package docker_test

import (
	"slices"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podkeeper/podkeeper/runtime"
	"github.com/podkeeper/podkeeper/runtime/docker"
	"github.com/podkeeper/podkeeper/runtime/pause"
)

// BenchmarkPod starts a pod of one container, by this package and by the bare
// calls with the same bodies, in turns. It reports both medians in milliseconds
// and their ratio.
func BenchmarkPod(b *testing.B) {
	p := newPods(b, docker.Config{})
	p.warmUp(b)
	image, _, err := pause.Image("amd64")
	if err != nil {
		b.Fatal(err)
	}
	ways := []func() (sandbox, app string){
		func() (string, string) {
			sandbox := p.sandbox(b, nil)
			return sandbox.ID, p.start(b, p.spec(sandbox, "app", busybox, "sleep", "1000"))
		},
		func() (string, string) {
			start := func(config *container.Config, host *container.HostConfig, name string) string {
				created, err := p.raw.ContainerCreate(b.Context(), config, host, nil, nil, name)
				if err == nil {
					err = p.raw.ContainerStart(b.Context(), created.ID, container.StartOptions{})
				}
				if err != nil {
					b.Fatal(err)
				}
				return created.ID
			}
			spec := runtime.SandboxSpec{Identity: p.identity(runtime.SandboxName), Hostname: "web-node"}
			config, host := p.SandboxBody(spec, image)
			sandbox := start(config, host, spec.ContainerName())
			in, err := p.raw.ContainerInspect(b.Context(), sandbox)
			if err != nil {
				b.Fatal(err)
			}
			app := p.spec(runtime.Container{ID: sandbox, Start: in.State.StartedAt}, "app", busybox, "sleep", "1000")
			config, host = p.ContainerBody(app)
			return sandbox, start(config, host, app.ContainerName())
		},
	}
	took := make([][]time.Duration, len(ways))
	for b.Loop() {
		order := []int{0, 1}
		if len(took[0])%2 == 1 {
			slices.Reverse(order)
		}
		for _, i := range order {
			way := ways[i]
			p.uid = types.UID(uuid.NewString())
			began := time.Now()
			sandbox, app := way()
			took[i] = append(took[i], time.Since(began))
			b.StopTimer()
			discard(b, p.raw.Client, app)
			discard(b, p.raw.Client, sandbox)
			b.StartTimer()
		}
	}
	ours, floor := median(took[0]), median(took[1])
	b.ReportMetric(float64(ours)/1e6, "ours-ms")
	b.ReportMetric(float64(floor)/1e6, "floor-ms")
	b.ReportMetric(float64(ours)/float64(floor), "ratio")
}

func median(list []time.Duration) time.Duration {
	slices.Sort(list)
	return list[len(list)/2]
}

// warmUp connects, and gets the pause image into the engine.
func (p pods) warmUp(b *testing.B) {
	sandbox := p.sandbox(b, nil)
	discard(b, p.raw.Client, sandbox.ID)
}
