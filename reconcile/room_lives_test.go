package reconcile_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/reconcile"
	"github.com/podkeeper/podkeeper/runtime"
)

// In random lives of a node with little room, with edits, ends of jobs and restarts of
// the agent, what runs never asks for more than there is; and who was refused runs once
// the others are gone.
func TestLivesWithLittleRoom(t *testing.T) {
	const most = 4
	for seed := range uint64(15) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			withRoom(t, reconcile.Allocatable{CPU: 1000 * most}, func(r *rig) {
				fate := rand.New(rand.NewPCG(seed, 1))
				wanted := map[string]string{}
				asks := map[string]int{}
				want := func() {
					var list []string
					for _, name := range slices.Sorted(maps.Keys(wanted)) {
						list = append(list, wanted[name])
					}
					r.want(list...)
				}
				check := func(when string) {
					t.Helper()
					r.after(time.Duration(fate.IntN(120)) * time.Second)
					sum := 0
					for _, c := range r.engine.Containers() {
						if c.State == runtime.Running && c.Identity.Name == "c" {
							sum += int(c.Resources.CPUShares * 1000 / 1024)
						}
					}
					if sum > most*1000+10 {
						t.Fatalf("%s: %d of %d thousandths run", when, sum, most*1000)
					}
				}
				for step := range 25 {
					name := fmt.Sprintf("p%d", fate.IntN(6))
					switch act := fate.IntN(10); {
					case act < 5:
						asks[name] = 1 + fate.IntN(most)
						text := needing(name, fmt.Sprint(asks[name]))
						if fate.IntN(3) == 0 {
							text += "  restartPolicy: Never\n"
						}
						if fate.IntN(3) == 0 {
							text += fmt.Sprintf("  hostname: h%d\n", fate.IntN(3))
						}
						wanted[name] = text
						want()
					case act < 7:
						delete(wanted, name)
						want()
					case act < 9:
						for _, c := range r.engine.Containers() {
							if c.State == runtime.Running && strings.HasPrefix(c.Identity.Key.Name, name+"-") && c.Identity.Name == "c" {
								r.engine.Kill(c.ID)
							}
						}
					default:
						r.stop()
						r.start(reconcile.Policy{})
						want()
					}
					check(fmt.Sprintf("step %d", step))
				}
				for _, name := range slices.Sorted(maps.Keys(wanted)) {
					alone := wanted[name]
					r.want(alone)
					if got := phases(r.after(10 * time.Minute))[name]; got != v1.PodRunning && got != v1.PodFailed {
						t.Errorf("%s, alone on the node, is %s", name, got)
					}
				}
			})
		})
	}
}
