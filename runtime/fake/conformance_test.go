package fake_test

import (
	"fmt"
	"testing"

	"github.com/podkeeper/podkeeper/runtime"
	"github.com/podkeeper/podkeeper/runtime/fake"
	"github.com/podkeeper/podkeeper/runtime/runtimetest"
)

func TestConformance(t *testing.T) {
	runtimetest.Run(t, func(t *testing.T) runtimetest.Env {
		engine := fake.New(fake.Config{Fate: fake.Immediate()})
		engine.SetImage("busybox:stable", fake.Image{Present: true})
		return runtimetest.Env{
			Runtime:      engine.Client("/var/lib/ours"),
			RootDir:      "/var/lib/ours",
			Other:        engine.Client("/var/lib/theirs"),
			Image:        "busybox:stable",
			Missing:      "registry.invalid/missing:1",
			Forever:      []string{"run"},
			IgnoreTERM:   []string{"ignore-term"},
			Exit:         func(code int) []string { return []string{fmt.Sprintf("exit=%d", code)} },
			FailStart:    []string{"fail-start"},
			Hang:         []string{"hang"},
			Cat:          []string{"cat"},
			Sizes:        []string{"sizes"},
			CgroupParent: "/kubepods/pod1",
			Say: func(lines ...string) []string {
				words := []string{"exit=0"}
				for _, line := range lines {
					words = append(words, "say="+line)
				}
				return words
			},
			Somebody: somebody{engine},
		}
	})
}

// somebody is the fake's hands of people.
type somebody struct{ engine *fake.Engine }

func (s somebody) Run(t *testing.T, name string, labels map[string]string) string {
	t.Helper()
	id, err := s.engine.Run(name, labels)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func (s somebody) Kill(t *testing.T, id string) {
	t.Helper()
	s.engine.Kill(id)
}

func (s somebody) Restart(t *testing.T, id string) {
	t.Helper()
	if !s.engine.Restart(id) {
		t.Fatalf("%s does not restart", id)
	}
}

func (s somebody) Remove(t *testing.T, id string) {
	t.Helper()
	if !s.engine.Destroy(id) {
		t.Fatalf("%s is not there", id)
	}
}

func (s somebody) MakeImage(_ *testing.T, names ...string) {
	for _, name := range names {
		s.engine.SetImage(name, fake.Image{Present: true, ID: "sha256:" + names[0], Size: 1 << 20})
	}
}

func (s somebody) Running(_ *testing.T, id string) (running, there bool) {
	for _, c := range s.engine.Containers() {
		if c.ID == id {
			return c.State == runtime.Running, true
		}
	}
	return false, false
}
