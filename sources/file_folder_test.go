package sources_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/podkeeper/podkeeper/sources"
	"github.com/podkeeper/podkeeper/sources/sourcestest"
)

func TestFolderThatIsMissingAtStart(t *testing.T) {
	// Law 1: a missing folder is silence, said once. What was supplied before the
	// agent stopped is supplied again.
	synctest.Test(t, func(t *testing.T) {
		tree := sourcestest.New(nil)
		r := files(t, tree, nil, func(c *sources.FileConfig) { c.Path = "/etc/kubernetes/manifests" })
		r.pass(5 * time.Minute)
		r.want("", "")
		if got := r.last().Source.Problem; got != "/etc/kubernetes/manifests does not exist" {
			t.Errorf("problem %q", got)
		}
		if n := strings.Count(r.log.String(), "level=WARN"); n != 1 {
			t.Errorf("%d warnings in five minutes, want one:\n%s", n, r.log)
		}
		r.within(50*time.Millisecond, func() {
			tree.MkdirAll("/etc/kubernetes/manifests")
			r.pass(10 * time.Millisecond)
			tree.WriteAtomic("/etc/kubernetes/manifests/web.yaml", "web app:1")
		})
		r.want("web=app:1 (web.yaml)", "present, spoken")
		r.stop()

		tree.Rename("/etc/kubernetes/manifests", "/away")
		r = files(t, tree, r.store, func(c *sources.FileConfig) { c.Path = "/etc/kubernetes/manifests" })
		r.want("web=app:1 (web.yaml)", "web.yaml stale")
		r.within(50*time.Millisecond, func() { tree.Rename("/away", "/etc/kubernetes/manifests") })
		r.want("web=app:1 (web.yaml)", "present, spoken")
	})
}

func TestFolderGoesAwayAndComesBack(t *testing.T) {
	// C041.
	synctest.Test(t, func(t *testing.T) {
		r := files(t, world(map[string]string{"/m/web.yaml": "web app:1", "/m/b.yaml": "b x:1"}), nil, nil)
		before := r.last().Pods
		r.within(soon, func() { r.tree.Rename("/m", "/m.away") })
		r.want("b=x:1 (b.yaml), web=app:1 (web.yaml)", "spoken")
		r.pass(5 * time.Minute)
		if n := strings.Count(r.log.String(), "level=WARN"); n != 1 {
			t.Errorf("%d warnings, want one:\n%s", n, r.log)
		}
		r.within(soon, func() { r.tree.Rename("/m.away", "/m") })
		r.want("b=x:1 (b.yaml), web=app:1 (web.yaml)", "present, spoken")
		for i, p := range r.last().Pods {
			if p != before[i] {
				t.Errorf("%s is not the same pod as before", p.Key())
			}
		}
		r.pass(time.Second)
		r.within(soon, func() { r.tree.Remove("/m/web.yaml") })
		r.want("b=x:1 (b.yaml)", "present, spoken")
	})
}

func TestFolderThatIsMadeAnewAndFilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := files(t, world(map[string]string{"/m/web.yaml": "web app:1", "/m/b.yaml": "b x:1"}), nil, nil)
		r.tree.Remove("/m")
		r.pass(time.Minute)
		r.tree.MkdirAll("/m")
		r.pass(500 * time.Millisecond)
		r.tree.WriteAtomic("/m/web.yaml", "web app:1")
		r.pass(400 * time.Millisecond)
		r.want("b=x:1 (b.yaml), web=app:1 (web.yaml)", "present, spoken, b.yaml stale")
		r.always(0, "with web", supplies("web"))
		r.pass(200 * time.Millisecond)
		r.want("web=app:1 (web.yaml)", "present, spoken")
	})
}

func TestFolderThatCannotBeListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := files(t, world(map[string]string{"/m/web.yaml": "web app:1"}), nil, nil)
		r.tree.Before(func(op, name string) { r.tree.Fail("/m", map[bool]error{true: errExhausted}[op == "readdir"]) })
		r.pass(time.Minute)
		r.want("web=app:1 (web.yaml)", "spoken")
		r.tree.Before(nil)
		r.tree.Fail("/m", nil)
		r.pass(20 * time.Second)
		r.want("web=app:1 (web.yaml)", "present, spoken")
	})
}

func TestRepointedFolder(t *testing.T) {
	// C046 steps 1 and 2: with a hint at once, without one within a poll.
	for name, deaf := range map[string]bool{"with hints": false, "without hints": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tree := sourcestest.New(nil)
				for i := range 3 {
					tree.MkdirAll(fmt.Sprintf("/srv/rel%d", i))
					tree.Write(fmt.Sprintf("/srv/rel%d/web.yaml", i), fmt.Sprintf("web app:%d", i))
				}
				tree.Symlink("/srv/rel0", "/m")
				r := files(t, tree, nil, nil)
				r.want("web=app:0 (web.yaml)", "present, spoken")
				tree.Deaf(deaf)
				wait := soon
				if deaf {
					wait = 20*time.Second + 100*time.Millisecond
				}
				r.within(wait, func() { tree.Symlink("/srv/rel1", "/m") })
				r.want("web=app:1 (web.yaml)", "present, spoken")
				r.within(wait, func() { tree.WriteAtomic("/srv/rel1/web.yaml", "web app:11") })
				r.want("web=app:11 (web.yaml)", "present, spoken")
				r.within(wait, func() { tree.Symlink("/srv/rel2", "/m") })
				r.want("web=app:2 (web.yaml)", "present, spoken")
				r.always(0, "with web", supplies("web"))
			})
		})
	}
}

func TestSwappedDataFolder(t *testing.T) {
	// As Kubernetes writes its volumes: each file a link through ..data.
	synctest.Test(t, func(t *testing.T) {
		tree := sourcestest.New(nil)
		for i := range 2 {
			tree.MkdirAll(fmt.Sprintf("/m/..%d", i))
			tree.Write(fmt.Sprintf("/m/..%d/web.yaml", i), fmt.Sprintf("web app:%d", i))
			tree.Write(fmt.Sprintf("/m/..%d/b.yaml", i), "b x:1")
		}
		tree.Symlink("..0", "/m/..data")
		tree.Symlink("..data/web.yaml", "/m/web.yaml")
		tree.Symlink("..data/b.yaml", "/m/b.yaml")
		r := files(t, tree, nil, nil)
		r.want("b=x:1 (b.yaml), web=app:0 (web.yaml)", "present, spoken")
		r.within(soon, func() { tree.Symlink("..1", "/m/..data") })
		r.want("b=x:1 (b.yaml), web=app:1 (web.yaml)", "present, spoken")
	})
}

func TestLinkedFile(t *testing.T) {
	// C046 step 3 and C021: links are followed; their targets come, change and go.
	for name, deaf := range map[string]bool{"with hints": false, "without hints": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tree := sourcestest.New(nil)
				tree.MkdirAll("/m")
				tree.MkdirAll("/srv/extra")
				tree.Symlink("/srv/extra/x.yaml", "/m/x.yaml")
				r := files(t, tree, nil, nil)
				r.want("", "present, spoken")
				tree.Deaf(deaf)
				poll := 20*time.Second + 100*time.Millisecond
				r.within(poll, func() { tree.WriteAtomic("/srv/extra/x.yaml", "x x:1") })
				r.want("x=x:1 (x.yaml)", "present, spoken")
				r.pass(time.Second)
				wait := soon
				if deaf {
					wait = poll
				}
				r.within(wait, func() { tree.WriteAtomic("/srv/extra/x.yaml", "x x:2") })
				r.want("x=x:2 (x.yaml)", "present, spoken")
				r.within(wait, func() { tree.Remove("/srv/extra/x.yaml") })
				r.want("", "present, spoken")
			})
		})
	}
}

func TestListingThatRacesWithRenames(t *testing.T) {
	t.Run("a listing that lacks a file is not believed", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			tree := world(map[string]string{"/m/web.yaml": "web app:1", "/m/b.yaml": "b x:1"})
			r := files(t, tree, nil, nil)
			listings := 0
			tree.Before(func(op, _ string) {
				if op != "readdir" {
					return
				}
				switch listings++; listings {
				case 1:
					tree.Rename("/m/web.yaml", "/elsewhere")
				case 2:
					tree.Rename("/elsewhere", "/m/web.yaml")
				}
			})
			r.pass(time.Minute)
			r.want("b=x:1 (b.yaml), web=app:1 (web.yaml)", "present, spoken")
			r.always(0, "with web", supplies("web"))
			if listings < 3 {
				t.Errorf("listed %d times, the race did not take place", listings)
			}
		})
	})
	t.Run("a file that is gone when it is read is looked for again", func(t *testing.T) {
		for _, op := range []string{"stat", "open"} {
			synctest.Test(t, func(t *testing.T) {
				tree := world(map[string]string{"/m/web.yaml": "web app:1", "/m/b.yaml": "b x:1"})
				moved := false
				tree.Before(func(o, name string) {
					if o == op && name == "/m/web.yaml" && !moved {
						moved = true
						tree.Rename("/m/web.yaml", "/m/z.yaml")
					}
				})
				r := files(t, tree, nil, nil)
				if !moved || r.last().Source.Spoken {
					t.Errorf("%s: moved %v; the source must not have spoken: %s", op, moved, state(r.last()))
				}
				r.pass(100 * time.Millisecond)
				r.want("b=x:1 (b.yaml), web=app:1 (z.yaml)", "present, spoken")
			})
		}
	})
	t.Run("renames without end hide nothing", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			tree := world(map[string]string{"/m/web.yaml": "web app:1"})
			r := files(t, tree, nil, nil)
			i := 0
			tree.Before(func(op, _ string) {
				if op == "readdir" {
					tree.Deaf(true) // or this would bring on the next look by itself
					i++
					tree.Write(fmt.Sprintf("/m/x%03d.txt", i), "")
				}
			})
			tree.WriteAtomic("/m/b.yaml", "b x:1")
			r.pass(200 * time.Millisecond)
			if i > 100 {
				t.Errorf("%d listings in 200 ms", i)
			}
			tree.Before(nil)
			r.always(0, "with web", supplies("web"))
			r.want("b=x:1 (b.yaml), web=app:1 (web.yaml)", "present, spoken")
		})
	})
}

func TestSingleFile(t *testing.T) {
	single := func(c *sources.FileConfig) { c.Path = "/m/pods.txt" }
	synctest.Test(t, func(t *testing.T) {
		tree := world(map[string]string{"/m/pods.txt": "web app:1", "/m/b.yaml": "b x:1"})
		r := files(t, tree, nil, single)
		r.want("web=app:1 (pods.txt)", "present, spoken")
		r.within(soon, func() { tree.WriteAtomic("/m/pods.txt", "web app:2") })
		r.want("web=app:2 (pods.txt)", "present, spoken")
		r.within(100*time.Millisecond, func() { tree.Write("/m/pods.txt", "web app:3") })
		r.want("web=app:3 (pods.txt)", "present, spoken")
		n := r.count()
		tree.WriteAtomic("/m/b.yaml", "b x:2")
		r.pass(time.Minute)
		if r.count() != n {
			t.Error("another file of the folder matters")
		}
		r.within(soon, func() { tree.Remove("/m/pods.txt") })
		r.want("", "present, spoken")
		r.within(soon, func() { tree.WriteAtomic("/m/pods.txt", "web app:4") })
		r.want("web=app:4 (pods.txt)", "present, spoken")
		r.within(20*time.Second, func() { tree.Rename("/m", "/away") })
		r.want("web=app:4 (pods.txt)", "spoken")
	})
}

func TestSingleFileThatIsMissingAtStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tree := world(nil)
		r := files(t, tree, nil, func(c *sources.FileConfig) { c.Path = "/m/pods.yaml" })
		r.want("", "present, spoken")
		r.within(soon, func() { tree.WriteAtomic("/m/pods.yaml", "web app:1") })
		r.want("web=app:1 (pods.yaml)", "present, spoken")
		r.stop()
		r = files(t, tree, nil, func(c *sources.FileConfig) { c.Path = "/none/pods.yaml" })
		r.want("", "")
	})
}

func TestClockJumpsChangeNothing(t *testing.T) {
	// Only times that are shown come from the wall clock.
	synctest.Test(t, func(t *testing.T) {
		jump := time.Duration(0)
		now := func() time.Time { return time.Now().Add(jump) }
		tree := sourcestest.New(now)
		tree.MkdirAll("/m")
		tree.Write("/m/web.yaml", "web app:1")
		r := files(t, tree, nil, func(c *sources.FileConfig) { c.Now = now })
		for _, jump = range []time.Duration{-time.Hour, 24 * time.Hour, -24 * 365 * time.Hour} {
			tree.Write("/m/web.yaml", "web ap")
			r.pass(500 * time.Millisecond)
			tree.Write("/m/web.yaml", fmt.Sprintf("web app:%d", jump))
			r.within(100*time.Millisecond, func() {})
			r.want(fmt.Sprintf("web=app:%d (web.yaml)", jump), "present, spoken")
		}
		r.always(0, "healthy", healthy)
	})
}

func TestStopEndsEverything(t *testing.T) {
	// Law 10: a goroutine left behind would fail the bubble.
	synctest.Test(t, func(t *testing.T) {
		r := files(t, world(map[string]string{"/m/web.yaml": "web app:1"}), nil, nil)
		if r.tree.Watches() != 1 {
			t.Errorf("%d watches, want 1", r.tree.Watches())
		}
		r.stop()
		if r.tree.Watches() != 0 {
			t.Errorf("%d watches after the end", r.tree.Watches())
		}
	})
}
