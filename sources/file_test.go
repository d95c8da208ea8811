package sources_test

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/sources"
	"github.com/podkeeper/podkeeper/sources/sourcestest"
)

const soon = 5 * time.Millisecond // from a hint to what is sent for it

func TestFirstLook(t *testing.T) {
	// C021, C029, law 8 and the names of section 3: what is no manifest is listed, with
	// the reason, and never opened.
	synctest.Test(t, func(t *testing.T) {
		tree := world(map[string]string{
			"/m/web.yaml": "web app:1", "/m/two.json": "b x:1\nc x:2", "/m/d.yml": "d x:1", "/m/e.manifest": "e x:1",
			"/m/web.yaml.backup": "web app:0", "/m/.hidden.yaml": "h x:1", "/m/#web.yaml": "h x:1", "/m/web.yaml~": "h x:1",
			"/m/.web.yaml.swp": "h", "/m/a.swp": "h", "/m/a.bak": "h", "/m/a.orig": "h", "/m/a.tmp": "h", "/m/4913": "", "/m/README": "h",
		})
		tree.MkdirAll("/m/sub")
		tree.Write("/m/sub/s.yaml", "s x:1")
		tree.Special("/m/pipe.yaml", fs.ModeNamedPipe)
		tree.Special("/m/socket.yaml", fs.ModeSocket)
		tree.Special("/m/disk.yaml", fs.ModeDevice)
		tree.Symlink("/m/sub", "/m/dir.yaml")
		tree.Symlink("/nonexistent", "/m/dangling.yaml")
		r := files(t, tree, nil, nil)
		r.want("b=x:1 (two.json), c=x:2 (two.json), d=x:1 (d.yml), e=x:1 (e.manifest), web=app:1 (web.yaml)", "present, spoken")
		got := map[string]string{}
		for _, s := range r.last().Source.Skipped {
			got[strings.TrimPrefix(s.Path, "/m/")] = s.Reason
			if tree.Reads(s.Path) > 0 {
				t.Errorf("%s was opened", s.Path)
			}
		}
		want := map[string]string{
			"web.yaml.backup": "extension .backup is none of .yaml .yml .json .manifest",
			".hidden.yaml":    "the name begins with .", ".web.yaml.swp": "the name begins with .", "#web.yaml": "the name begins with #",
			"web.yaml~": "the name ends in ~", "a.swp": "the name ends in .swp", "a.bak": "the name ends in .bak",
			"a.orig": "the name ends in .orig", "a.tmp": "the name ends in .tmp", "4913": "an editor's temporary file",
			"README": "no extension, want one of .yaml .yml .json .manifest",
			"sub":    "a folder", "dir.yaml": "a folder", "pipe.yaml": "a named pipe", "socket.yaml": "a socket",
			"disk.yaml": "a device", "dangling.yaml": "a link that leads nowhere",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("skipped (-want +got):\n%s", diff)
		}
		if n := strings.Count(r.log.String(), "dangling.yaml"); n != 1 {
			t.Errorf("the dangling link is named %d times in the log, want once", n)
		}
	})
}

func TestHints(t *testing.T) {
	web := map[string]string{"/m/web.yaml": "web app:1", "/m/b.yaml": "b x:1"}
	tests := map[string]struct {
		act  func(tree *sourcestest.Tree)
		want string
	}{
		"a file renamed over another is sent at once": {
			func(tree *sourcestest.Tree) { tree.WriteAtomic("/m/web.yaml", "web app:2") }, "b=x:1 (b.yaml), web=app:2 (web.yaml)"},
		"a new file renamed into the folder is sent at once": {
			func(tree *sourcestest.Tree) { tree.WriteAtomic("/m/n.yaml", "n x:1") }, "b=x:1 (b.yaml), n=x:1 (n.yaml), web=app:1 (web.yaml)"},
		"C041: a removed file is sent at once": {
			func(tree *sourcestest.Tree) { tree.Remove("/m/web.yaml") }, "b=x:1 (b.yaml)"},
		"a file renamed within the folder moves its pods": {
			func(tree *sourcestest.Tree) { tree.Rename("/m/web.yaml", "/m/z.yaml") }, "b=x:1 (b.yaml), web=app:1 (z.yaml)"},
		"C033: a pod renamed in its file takes the place of the old name": {
			func(tree *sourcestest.Tree) { tree.WriteAtomic("/m/web.yaml", "new app:1") }, "b=x:1 (b.yaml), new=app:1 (web.yaml)"},
		"C040: a document taken out removes its pod": {
			func(tree *sourcestest.Tree) { tree.WriteAtomic("/m/b.yaml", "# b x:1") }, "web=app:1 (web.yaml)"},
		"a link that is swapped swaps what lies behind it": {
			func(tree *sourcestest.Tree) {
				tree.MkdirAll("/m/..2")
				tree.Write("/m/..2/web.yaml", "web app:2")
				tree.Symlink("/m/..2/web.yaml", "/m/web.yaml")
			}, "b=x:1 (b.yaml), web=app:2 (web.yaml)"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := files(t, world(web), nil, nil)
				r.within(soon, func() { test.act(r.tree) })
				r.want(test.want, "present, spoken")
				n := r.count()
				r.pass(2 * time.Minute)
				if r.count() != n {
					t.Errorf("%d more supplies without a change", r.count()-n)
				}
			})
		})
	}
}

func TestBurstIsSentOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := files(t, world(nil), nil, nil)
		n := r.count()
		for i := range 50 {
			r.tree.WriteAtomic(fmt.Sprintf("/m/%02d.yaml", i), fmt.Sprintf("p%02d x:1", i))
			time.Sleep(200 * time.Microsecond)
		}
		r.pass(soon)
		if got := len(r.last().Pods); got != 50 {
			t.Errorf("%d pods, want 50", got)
		}
		if got := r.count() - n; got > 1 {
			t.Errorf("%d supplies for a burst of 10 ms, want 1", got)
		}
	})
}

func TestBurstWithoutEndIsSentMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := files(t, world(nil), nil, nil)
		for i := range 100 {
			r.tree.WriteAtomic(fmt.Sprintf("/m/%02d.yaml", i), fmt.Sprintf("p%02d x:1", i))
			time.Sleep(time.Millisecond)
		}
		synctest.Wait()
		if got := len(r.last().Pods); got < 75 {
			t.Errorf("%d of 100 pods while the burst goes on, want all but those of the last 20 ms", got)
		}
	})
}

func TestFileReplacedInTwoStepsIsNeverMissing(t *testing.T) {
	// C031: editors and version control remove a file and make it again.
	synctest.Test(t, func(t *testing.T) {
		r := files(t, world(map[string]string{"/m/web.yaml": "web app:1"}), nil, nil)
		r.tree.Remove("/m/web.yaml")
		time.Sleep(2 * time.Millisecond)
		r.tree.Write("/m/web.yaml", "")
		time.Sleep(20 * time.Millisecond)
		r.tree.Write("/m/web.yaml", "web app:2")
		r.pass(100 * time.Millisecond)
		r.want("web=app:2 (web.yaml)", "present, spoken")
		r.always(0, "with web", supplies("web"))
		r.always(0, "healthy", healthy)
	})
}

func TestIdleLooksReadNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := files(t, world(map[string]string{"/m/web.yaml": "web app:1"}), &sourcestest.Store{}, nil)
		r.pass(time.Minute)
		reads, parsed, writes := r.tree.Reads("/m/web.yaml"), r.parses(), r.store.Writes()
		r.pass(time.Hour)
		if got := r.tree.Reads("/m/web.yaml") - reads; got != 0 {
			t.Errorf("an unchanged file was read %d times in an hour", got)
		}
		if r.parses() != parsed || parsed != 1 {
			t.Errorf("decoded %d times, then %d, want once", parsed, r.parses())
		}
		if r.store.Writes() != writes || writes != 1 {
			t.Errorf("%d records written, then %d, want one", writes, r.store.Writes())
		}
		if r.count() != 1 {
			t.Errorf("%d supplies, want 1", r.count())
		}
	})
}

func TestSameContentIsNoChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := files(t, world(map[string]string{"/m/web.yaml": "web app:1"}), nil, nil)
		r.tree.WriteAtomic("/m/web.yaml", "web app:1")
		r.pass(time.Second)
		r.tree.Write("/m/web.yaml", "web app:1")
		r.pass(time.Minute)
		if r.parses() != 1 || r.count() != 1 {
			t.Errorf("decoded %d times, sent %d times, want once each", r.parses(), r.count())
		}
	})
}

func TestWriteWithinOneTickOfTheFileSystemIsFound(t *testing.T) {
	// Times that count in steps, and a write of the same length in the same step.
	synctest.Test(t, func(t *testing.T) {
		tree := sourcestest.New(func() time.Time { return time.Now().Truncate(time.Second) })
		tree.MkdirAll("/m")
		tree.Deaf(true)
		tree.Write("/m/web.yaml", "web app:1")
		r := files(t, tree, nil, nil)
		r.want("web=app:1 (web.yaml)", "present, spoken")
		tree.Deaf(false)
		tree.WriteAtomic("/m/other.txt", "") // brings on a look that reads it again
		r.pass(20 * time.Millisecond)
		tree.Deaf(true)
		tree.Write("/m/web.yaml", "web app:2")
		r.pass(21 * time.Second)
		r.want("web=app:2 (web.yaml)", "present, spoken")
	})
}

func TestLostHintsCostOnePeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := files(t, world(map[string]string{"/m/web.yaml": "web app:1", "/m/b.yaml": "b x:1"}), nil, nil)
		r.tree.Deaf(true)
		r.tree.WriteAtomic("/m/web.yaml", "web app:2")
		r.tree.Remove("/m/b.yaml")
		r.tree.Write("/m/c.yaml", "c x:1")
		r.within(20*time.Second+100*time.Millisecond, func() {})
		r.want("c=x:1 (c.yaml), web=app:2 (web.yaml)", "present, spoken")
	})
}

func TestWithoutInotifyThereIsPolling(t *testing.T) {
	// Exhausted inotify is said once and is never fatal.
	for name, setUp := range map[string]func(*sourcestest.Tree, *sources.FileConfig){
		"no watch can be had":  func(tree *sourcestest.Tree, _ *sources.FileConfig) { tree.RefuseWatch(errExhausted) },
		"there are no hints":   func(_ *sourcestest.Tree, cfg *sources.FileConfig) { cfg.Watcher = nil },
		"hints stop coming in": func(tree *sourcestest.Tree, _ *sources.FileConfig) { tree.Deaf(true) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tree := world(map[string]string{"/m/web.yaml": "web app:1"})
				r := files(t, tree, nil, func(cfg *sources.FileConfig) { setUp(tree, cfg) })
				r.want("web=app:1 (web.yaml)", "present, spoken")
				r.pass(time.Minute)
				tree.Write("/m/web.yaml", "web app:2")
				r.pass(20*time.Second + 100*time.Millisecond)
				r.want("web=app:2 (web.yaml)", "present, spoken")
				if n := strings.Count(r.log.String(), "not all watched"); n > 1 || n == 0 && name == "no watch can be had" {
					t.Errorf("said %d times that files are not watched, want once", n)
				}
				tree.RefuseWatch(nil)
				r.pass(20 * time.Second)
				if name == "no watch can be had" {
					r.within(soon, func() { tree.WriteAtomic("/m/web.yaml", "web app:3") })
				}
			})
		})
	}
}

var errExhausted = fmt.Errorf("watch files: %w", fs.ErrPermission)

func TestLargeFileIsNotRead(t *testing.T) {
	// C018: the limit is 10 MiB; a file that is larger is refused by its size.
	synctest.Test(t, func(t *testing.T) {
		comment := "\n#" + strings.Repeat("x", 9<<20)
		r := files(t, world(map[string]string{
			"/m/ok.yaml": "ok x:1", "/m/nearly.yaml": "nearly x:1" + comment, "/m/big.yaml": "big x:1" + comment + comment,
		}), nil, nil)
		r.pass(time.Minute)
		r.want("nearly=x:1 (nearly.yaml), ok=x:1 (ok.yaml)", "present, spoken, big.yaml error")
		if r.tree.Reads("/m/big.yaml") > 0 {
			t.Error("big.yaml was opened")
		}
		want := []pod.Problem{{Severity: pod.Error, File: "/m/big.yaml", Message: "larger than the limit of 10 MiB"}}
		if diff := cmp.Diff(want, r.last().Source.Origins[0].Problems); diff != "" {
			t.Error(diff)
		}
		if n := strings.Count(r.log.String(), "larger than"); n != 1 {
			t.Errorf("said %d times, want once", n)
		}
	})
}

func TestFirstDocumentOfAKeyIsKept(t *testing.T) {
	// C031, within one file; and a typo in the first does not bring the second up.
	synctest.Test(t, func(t *testing.T) {
		r := files(t, world(map[string]string{"/m/a.yaml": "twin app:2\ntwin app:3", "/m/b.yaml": "bad other\nother x:1"}), nil, nil)
		r.pass(time.Minute)
		r.want("twin=app:2 (a.yaml)", "present, spoken, b.yaml error")
		r.tree.WriteAtomic("/m/a.yaml", "twin app:3")
		r.pass(soon)
		r.want("twin=app:3 (a.yaml)", "present, spoken, b.yaml error")
	})
}

func TestExtensions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tree := world(map[string]string{"/m/a": "a x:1", "/m/b.pod": "b x:1", "/m/c.yaml": "c x:1"})
		r := files(t, tree, nil, func(c *sources.FileConfig) { c.Extensions = []string{"pod", ""} })
		r.want("a=x:1 (a), b=x:1 (b.pod)", "present, spoken")
	})
}

func TestNewFileRefuses(t *testing.T) {
	good := sources.FileConfig{Path: "/m", Parse: parse, FS: sources.OSFiles{}, Log: discard}
	if _, err := sources.NewFile(good); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*sources.FileConfig){
		"a relative path":   func(c *sources.FileConfig) { c.Path = "m" },
		"no parser":         func(c *sources.FileConfig) { c.Parse = nil },
		"no tree":           func(c *sources.FileConfig) { c.FS = nil },
		"no log":            func(c *sources.FileConfig) { c.Log = nil },
		"a negative period": func(c *sources.FileConfig) { c.Period = -1 },
	} {
		cfg := good
		spoil(&cfg)
		if _, err := sources.NewFile(cfg); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}
