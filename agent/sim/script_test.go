package sim

import (
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podkeeper/podkeeper/runtime"
	"github.com/podkeeper/podkeeper/runtime/fake"
)

var webFile = path.Join(folder, "web.yaml")

func webPod() *podSpec {
	return &podSpec{name: "web", restart: "Always", grace: 5, volume: true, containers: []containerSpec{
		{name: "a", image: "app:1", words: []string{"run"}, memory: 64}, // so that another limit is no other QoS class
		{name: "b", image: "far:1", words: []string{"run"}},
	}}
}

// script is a world in which one thing after the other is done to one file.
type script struct {
	*world
	pod  *podSpec
	made map[string]bool // the names of all that the agent ever made
}

func newScript() *script {
	w := newWorld(1, true, lies{}, nil)
	w.engine.Client("/var/lib/other") // the neighbour's number
	w.tree.makeDir(folder)
	s := &script{world: w, pod: webPod(), made: map[string]bool{}}
	w.site.serve(200, bodyOf(nil), "")
	w.truth.says(page, bodyOf(nil))
	w.engine.Observe = func(c fake.Change) {
		w.laws.observe(c)
		if c.Verb == "create" && ours(c.Container) {
			s.made[c.Container.Name] = true
		}
	}
	return s
}

func (s *script) put() {
	text := s.pod.yaml()
	s.tree.replace(webFile, text)
	s.truth.says(fileOrigin(webFile), text)
}

func (s *script) remove() {
	s.tree.remove(webFile)
	s.truth.gone(fileOrigin(webFile))
}

// wait lets things settle, and brings the agent back should it die.
func (s *script) wait(d time.Duration) {
	end := time.Now().Add(d)
	for time.Now().Before(end) {
		s.pass(time.Until(end))
		if s.agent == nil {
			s.startAgent(-1)
		}
	}
}

// starts returns when each of our running containers was last started, by id.
func (s *script) starts() map[string]string {
	list := map[string]string{}
	for _, c := range s.engine.Containers() {
		if ours(c) && c.State == runtime.Running {
			list[c.Name+" "+c.ID] = c.Start
		}
	}
	return list
}

// Law 3: a crash at any boundary costs that step and no more. Whatever effect
// is the agent's last, its successor makes the same containers, not one more.
func TestCrashAtEveryBoundary(t *testing.T) {
	// A sandbox and two containers twice, and one edited.
	crashEverywhere(t, 7, func(s *script) {
		s.put()
		s.wait(3 * time.Minute)
		s.pod.containers[0].env++
		s.put()
		s.wait(3 * time.Minute)
		s.pod.hostname++
		s.put()
		s.wait(3 * time.Minute)
	})
}

// Law 3, where one container asks for a restart of all.
func TestCrashInARestartOfAll(t *testing.T) {
	const text = `apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 5
  initContainers: [{name: init, image: "app:1", command: [exit=0, after=1s]}]
  containers:
  - {name: app, image: "app:1", command: [exit=88, after=110s], restartPolicy: Never, restartPolicyRules: [{action: RestartAllContainers, exitCodes: {operator: In, values: [88]}}]}
  - {name: side, image: "app:1", command: [run]}
`
	// A sandbox, and three containers twice.
	crashEverywhere(t, 7, func(s *script) {
		s.tree.replace(webFile, text)
		s.truth.says(fileOrigin(webFile), text)
		s.wait(3 * time.Minute)
	})
}

// crashEverywhere lives through what happens to a pod, without a crash and with one
// after each effect of the agent. In the end a sandbox and two containers run, of so
// many that were made; and then the pod goes.
func crashEverywhere(t *testing.T, containers int, happens func(*script)) {
	life := func(fuse int) (made []string, died bool) {
		synctest.Test(t, func(*testing.T) {
			s := newScript()
			s.startAgent(fuse)
			happens(s)
			if n := len(s.starts()); n != 3 {
				t.Errorf("crash at %d: %d run, want a sandbox and two containers", fuse, n)
			}
			s.remove()
			s.wait(3 * time.Minute)
			if left := s.engine.Containers(); len(left) > 0 || len(s.disk.pods()) > 0 {
				t.Errorf("crash at %d: left are%s, folders %v", fuse, names(left), s.disk.pods())
			}
			died = s.lives > 1
			s.crash()
			for _, v := range s.laws.violations {
				t.Errorf("crash at %d: %s", fuse, v)
			}
			made = slices.Sorted(maps.Keys(s.made))
		})
		return made, died
	}
	want, _ := life(-1)
	if len(want) != containers {
		t.Fatalf("without a crash: %q", want)
	}
	fuse := 0
	for died := true; died; fuse++ {
		var made []string
		made, died = life(fuse)
		if diff := cmp.Diff(want, made); diff != "" {
			t.Errorf("crash at %d: other containers are made (-without a crash +with it):\n%s", fuse, diff)
		}
	}
	if fuse < 20 {
		t.Errorf("the agent's life has %d effects only", fuse)
	}
}

// Section 3 and law 5: none of these restarts, or makes anew, a single container.
func TestNothingRestarts(t *testing.T) {
	for name, do := range map[string]func(*script){
		"the file is renamed": func(s *script) {
			s.tree.rename(webFile, path.Join(folder, "other.yaml"))
		},
		"the file is replaced by the same": func(s *script) { s.put() },
		"a comment is added": func(s *script) {
			s.tree.write(webFile, "# web\n"+s.pod.yaml())
		},
		"the pod moves to the URL": func(s *script) {
			s.site.serve(200, s.pod.yaml(), "")
			s.wait(time.Minute)
			s.tree.remove(webFile)
		},
		"labels, grace period and limits change": func(s *script) {
			s.pod.label++
			s.pod.grace++
			s.pod.containers[0].memory = 128
			s.put()
		},
		"the file breaks":     func(s *script) { s.tree.write(webFile, "kind: Pod\n\tspec") },
		"the file is emptied": func(s *script) { s.tree.write(webFile, "") },
		"the file is written in two parts": func(s *script) {
			text := s.pod.yaml()
			s.tree.write(webFile, text[:len(text)/2])
			s.pass(40 * time.Millisecond)
			s.tree.write(webFile, text)
		},
		"the folder vanishes, and comes back": func(s *script) {
			lost := s.tree.removeDir(folder)
			s.wait(10 * time.Minute)
			s.tree.makeDir(folder)
			s.pass(300 * time.Millisecond)
			s.tree.write(webFile, string(lost[webFile].data))
		},
		"the URL is away": func(s *script) { s.site.serve(0, "", "") },
		"the agent crashes, and its folder is gone when it is back": func(s *script) {
			s.crash()
			s.tree.removeDir(folder)
			s.startAgent(-1)
		},
		"the agent crashes, and has lost its files": func(s *script) {
			s.crash()
			clear(s.disk.files)
			s.startAgent(-1)
		},
		"the engine restarts, with live-restore": func(s *script) {
			s.engine.Down(true)
			s.wait(time.Minute)
			s.engine.Up()
		},
		"the clock jumps ahead":        func(s *script) { s.jump(48 * time.Hour) },
		"the clock jumps back":         func(s *script) { s.jump(-48 * time.Hour) },
		"the event streams break":      func(s *script) { s.engine.BreakConnections() },
		"every event is lost, or old":  func(s *script) { s.fate.SetRates(fake.Rates{LostEvent: 0.5, DupEvent: 0.5}); s.wait(time.Hour) },
		"every call is slow, or hangs": func(s *script) { s.fate.SetRates(fake.Rates{Slow: 0.5, Hung: 0.5}); s.wait(time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScript()
				s.startAgent(-1)
				s.put()
				s.wait(2 * time.Minute)
				before := s.starts()
				if len(before) != 3 {
					t.Fatalf("%d run, want a sandbox and two containers", len(before))
				}
				do(s)
				s.wait(10 * time.Minute)
				if diff := cmp.Diff(before, s.starts()); diff != "" {
					t.Errorf("name, id and start (-before +after):\n%s", diff)
				}
				for name := range s.made {
					if !strings.HasSuffix(name, "_0") {
						t.Errorf("%s was made", name)
					}
				}
				s.crash()
			})
		})
	}
}
