package sources_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/podkeeper/podkeeper/sources"
	"github.com/podkeeper/podkeeper/sources/sourcestest"
)

func TestTornWritesAreSeenByNobody(t *testing.T) {
	// A file that is being written in place, in steps.
	type step struct {
		after   time.Duration
		content string
	}
	for name, steps := range map[string][]step{
		"cut off and then whole":                {{0, "web ap"}, {30 * time.Millisecond, "web app:2\nn x:1"}},
		"emptied and then whole":                {{0, ""}, {900 * time.Millisecond, "web app:2\nn x:1"}},
		"whole documents, one after the other":  {{0, "n x:1"}, {40 * time.Millisecond, "n x:1\nweb app:2"}},
		"broken in a new way each half second":  {{0, "b"}, {500 * time.Millisecond, "ba"}, {500 * time.Millisecond, "bad"}, {500 * time.Millisecond, "web app:2\nn x:1"}},
		"emptied, then one document at a time":  {{0, ""}, {time.Millisecond, "n x:1"}, {49 * time.Millisecond, "n x:1\nweb app:2"}},
		"a name that comes and goes beside it":  {{0, "web ap"}, {700 * time.Millisecond, "web app:2\nn x:1"}},
		"longer than a periodic look is away":   {{19 * time.Second, "web ap"}, {980 * time.Millisecond, "web app:2\nn x:1"}},
		"without a hint, over a periodic look":  {{19*time.Second + 990*time.Millisecond, "n x:1"}, {30 * time.Millisecond, "n x:1\nweb app:2"}},
		"without a hint, broken at a look":      {{19*time.Second + 990*time.Millisecond, "web ap"}, {600 * time.Millisecond, "n x:1\nweb app:2"}},
		"without a hint, growing all the time":  {{19*time.Second + 990*time.Millisecond, "n x:1"}, {40 * time.Millisecond, "n x:1\n#"}, {40 * time.Millisecond, "n x:1\n##"}, {40 * time.Millisecond, "n x:1\nweb app:2"}},
		"removed and made again in small steps": {{0, "-"}, {2 * time.Millisecond, ""}, {10 * time.Millisecond, "web app:2"}, {40 * time.Millisecond, "web app:2\nn x:1"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := files(t, world(map[string]string{"/m/web.yaml": "web app:1", "/m/o.yaml": "o x:1"}), nil, nil)
				r.tree.Deaf(strings.HasPrefix(name, "without a hint"))
				for _, s := range steps {
					time.Sleep(s.after)
					if s.content == "-" {
						r.tree.Remove("/m/web.yaml")
						continue
					}
					r.tree.Write("/m/web.yaml", s.content)
					if strings.HasPrefix(name, "a name that comes") {
						r.tree.Write("/m/.swap", "")
						r.tree.Remove("/m/.swap")
					}
				}
				r.pass(100 * time.Millisecond)
				if strings.HasPrefix(name, "without a hint") {
					r.pass(20 * time.Second)
				}
				r.want("n=x:1 (web.yaml), o=x:1 (o.yaml), web=app:2 (web.yaml)", "present, spoken")
				r.always(0, "with web", supplies("web"))
				r.always(0, "healthy", healthy)
			})
		})
	}
}

func TestOneFileBeingWrittenDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := files(t, world(map[string]string{"/m/web.yaml": "web app:1"}), nil, nil)
		for range 20 {
			r.tree.Write("/m/web.yaml", "web ap")
			time.Sleep(10 * time.Millisecond)
		}
		r.within(soon, func() { r.tree.WriteAtomic("/m/o.yaml", "o x:1") })
		r.want("o=x:1 (o.yaml), web=app:1 (web.yaml)", "present, spoken")
	})
}

func TestFileWrittenWithoutEndIsReadMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := files(t, world(map[string]string{"/m/web.yaml": "web app:1"}), nil, nil)
		for range 110 {
			r.tree.Write("/m/web.yaml", "web app:2")
			time.Sleep(10 * time.Millisecond)
		}
		synctest.Wait()
		r.want("web=app:2 (web.yaml)", "present, spoken")
	})
}

func TestBrokenFileKeepsItsPods(t *testing.T) {
	// Law 1, C045, C040: what each kind of bad content does to a file of two pods.
	for name, test := range map[string]struct{ content, pods, state string }{
		"a typo anywhere": {"b?ad", "o=x:1 (o.yaml), two=x:2 (web.yaml), web=app:1 (web.yaml)", "present, spoken, web.yaml stale error"},
		"0 bytes":         {"", "o=x:1 (o.yaml), two=x:2 (web.yaml), web=app:1 (web.yaml)", "present, spoken, web.yaml stale error"},
		"a good document beside a broken one applies": {"web app:2\nbad two", "o=x:1 (o.yaml), two=x:2 (web.yaml), web=app:2 (web.yaml)", "present, spoken, web.yaml stale error"},
		"a document that is new beside a broken one":  {"bad\nthree x:3", "o=x:1 (o.yaml), three=x:3 (web.yaml), two=x:2 (web.yaml), web=app:1 (web.yaml)", "present, spoken, web.yaml stale error"},
		"one taken out while another is broken":       {"bad web", "o=x:1 (o.yaml), two=x:2 (web.yaml), web=app:1 (web.yaml)", "present, spoken, web.yaml stale error"},
		"all good beside one that never was":          {"web app:1\ntwo x:2\nbad x", "o=x:1 (o.yaml), two=x:2 (web.yaml), web=app:1 (web.yaml)", "present, spoken, web.yaml error"},
		"only a comment removes":                      {"# web app:1", "o=x:1 (o.yaml)", "present, spoken"},
		"one taken out of a good file":                {"web app:1", "o=x:1 (o.yaml), web=app:1 (web.yaml)", "present, spoken"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tree := world(map[string]string{"/m/web.yaml": "web app:1\ntwo x:2", "/m/o.yaml": "o x:1"})
				r := files(t, tree, nil, nil)
				other := r.last().Pods[0]
				tree.WriteAtomic("/m/web.yaml", test.content)
				r.pass(20 * time.Second)
				r.want(test.pods, test.state)
				r.pass(time.Minute) // three more polls
				r.want(test.pods, test.state)
				if r.last().Pods[0] != other {
					t.Error("the pod of another file is not the same as before")
				}
				if n := strings.Count(r.log.String(), "error: "); strings.Contains(test.state, "error") && n != 1 {
					t.Errorf("the error is in the log %d times, want once", n)
				}

				// The agent starts again and finds it so.
				r.stop()
				r = files(t, tree, r.store, nil)
				r.want(test.pods, test.state)
				r.pass(time.Minute)
				r.want(test.pods, test.state)

				tree.WriteAtomic("/m/web.yaml", "web app:3")
				r.pass(soon)
				r.want("o=x:1 (o.yaml), web=app:3 (web.yaml)", "present, spoken")
			})
		})
	}
}

// Law 1 for objects beside pods: what each kind of bad content does to a file of a
// pod and two Secrets, also over a restart of the agent.
func TestBrokenFileKeepsItsObjects(t *testing.T) {
	const stale = "present, spoken, web.yaml stale error"
	for name, test := range map[string]struct{ content, supplied, state string }{
		"a typo anywhere": {"b?ad", "key=1 (web.yaml), pw=1 (web.yaml), web=app:1 (web.yaml)", stale},
		"0 bytes":         {"", "key=1 (web.yaml), pw=1 (web.yaml), web=app:1 (web.yaml)", stale},
		"a good document beside a broken one applies": {"secret key=2\nbad secret pw\nweb app:2", "key=2 (web.yaml), pw=1 (web.yaml), web=app:2 (web.yaml)", stale},
		"one taken out while another is broken":       {"web app:1\nbad secret pw", "key=1 (web.yaml), pw=1 (web.yaml), web=app:1 (web.yaml)", stale},
		"a pod of the name of a Secret is another":    {"bad key", "key=1 (web.yaml), pw=1 (web.yaml), web=app:1 (web.yaml)", stale},
		"one taken out of a good file":                {"web app:1\nsecret pw=2", "pw=2 (web.yaml), web=app:1 (web.yaml)", "present, spoken"},
		"only a comment removes":                      {"# x", "", "present, spoken"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tree := world(map[string]string{"/m/web.yaml": "secret key=1\nweb app:1\nsecret pw=1"})
				r := files(t, tree, nil, nil)
				r.want("key=1 (web.yaml), pw=1 (web.yaml), web=app:1 (web.yaml)", "present, spoken")
				if got := r.last().Source.Origins[0].Objects; len(got) != 2 {
					t.Errorf("objects of the origin = %v", got)
				}
				tree.WriteAtomic("/m/web.yaml", test.content)
				r.pass(20 * time.Second)
				r.want(test.supplied, test.state)
				r.stop()
				r = files(t, tree, r.store, nil)
				r.want(test.supplied, test.state)
				r.pass(time.Minute)
				r.want(test.supplied, test.state)
				tree.Remove("/m/web.yaml")
				r.pass(time.Minute)
				r.want("", "present, spoken")
			})
		})
	}
}

// An immutable object stays as it was until it is removed, as with an API server.
func TestImmutableObject(t *testing.T) {
	const refused = "present, spoken, web.yaml stale error"
	for name, test := range map[string]struct{ content, supplied, state string }{
		"another value is refused, and the rest applies": {"sealed key=2\nweb app:2", "key=1 (web.yaml), web=app:2 (web.yaml)", refused},
		"it cannot be unsealed":                          {"web app:1\nsecret key=1", "key=1 (web.yaml), web=app:1 (web.yaml)", refused},
		"it may move within its file":                    {"web app:1\nsealed key=1", "key=1 (web.yaml), web=app:1 (web.yaml)", "present, spoken"},
		"it may go":                                      {"web app:1", "web=app:1 (web.yaml)", "present, spoken"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tree := world(map[string]string{"/m/web.yaml": "sealed key=1\nweb app:1"})
				r := files(t, tree, nil, nil)
				tree.WriteAtomic("/m/web.yaml", test.content)
				r.pass(20 * time.Second)
				r.want(test.supplied, test.state)
				if problems := r.last().Source.Origins[0].Problems; test.state == refused && (len(problems) != 1 ||
					!strings.Contains(problems[0].String(), "Secret default/key differs from the immutable version that was on line 1") || problems[0].File != "/m/web.yaml" || problems[0].Line == 0) {
					t.Errorf("problems = %v", problems)
				}
				r.stop()
				r = files(t, tree, r.store, nil)
				r.pass(time.Minute)
				r.want(test.supplied, test.state)

				tree.WriteAtomic("/m/web.yaml", "web app:3")
				r.pass(time.Minute)
				tree.WriteAtomic("/m/web.yaml", "sealed key=3")
				r.pass(time.Minute)
				r.want("key=3 (web.yaml)", "present, spoken")
			})
		})
	}
}

// What is not immutable yet may become it, with another value.
func TestObjectThatIsSealed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := files(t, world(map[string]string{"/m/web.yaml": "secret key=1"}), nil, nil)
		r.tree.WriteAtomic("/m/web.yaml", "sealed key=2")
		r.pass(time.Minute)
		r.want("key=2 (web.yaml)", "present, spoken")
	})
}

func TestErrorIsShownWithinAPollAndStays(t *testing.T) {
	// C045: a broken file shows its error, with file and line.
	synctest.Test(t, func(t *testing.T) {
		r := files(t, world(map[string]string{"/m/web.yaml": "web app:1"}), nil, nil)
		r.tree.Write("/m/web.yaml", "web app:1\n  bad")
		r.pass(1100 * time.Millisecond)
		r.want("web=app:1 (web.yaml)", "present, spoken, web.yaml error")
		p := r.last().Source.Origins[0].Problems
		if len(p) != 1 || p[0].File != "/m/web.yaml" || p[0].Line != 2 {
			t.Errorf("problems = %v, want one at /m/web.yaml:2", p)
		}
	})
}

func TestBrokenFileAtStart(t *testing.T) {
	// One that was broken for long is told at once. One that may be being written
	// holds back what the source says of absence, and shows no error for a second.
	synctest.Test(t, func(t *testing.T) {
		tree := world(map[string]string{"/m/old.yaml": "bad", "/m/o.yaml": "o x:1"})
		r := files(t, tree, nil, nil)
		r.want("o=x:1 (o.yaml)", "present, spoken, old.yaml error")
		r.stop()

		tree.Write("/m/new.yaml", "bad")
		r = files(t, tree, nil, nil)
		r.want("o=x:1 (o.yaml)", "present, new.yaml stale, old.yaml error")
		r.pass(time.Second)
		r.want("o=x:1 (o.yaml)", "present, spoken, new.yaml error, old.yaml error")
	})
	t.Run("its record outlives a crash before it is believed", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			tree := world(map[string]string{"/m/web.yaml": "web app:1"})
			r := files(t, tree, nil, nil)
			r.stop()
			for range 3 {
				tree.Write("/m/web.yaml", "bad")
				r = files(t, tree, r.store, nil)
				r.want("web=app:1 (web.yaml)", "present, web.yaml stale")
				r.pass(100 * time.Millisecond)
				r.stop()
			}
		})
	})
}

func TestUnreadableFileKeepsItsPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := files(t, world(map[string]string{"/m/web.yaml": "web app:1", "/m/o.yaml": "o x:1"}), nil, nil)
		r.tree.Fail("/m/web.yaml", errExhausted)
		r.pass(time.Minute)
		r.want("o=x:1 (o.yaml), web=app:1 (web.yaml)", "present, spoken, web.yaml stale error")
		r.tree.Fail("/m/web.yaml", nil)
		r.pass(21 * time.Second)
		r.want("o=x:1 (o.yaml), web=app:1 (web.yaml)", "present, spoken")
	})
}

func TestLastGoodSurvivesARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tree := world(map[string]string{"/m/web.yaml": "# a\nweb app:1", "/m/gone.yaml": "gone x:1", "/m/o.yaml": "o x:1"})
		r := files(t, tree, nil, nil)
		line := r.last().Pods[2].Line
		r.stop()
		if n := len(r.store.Files()); n != 3 {
			t.Errorf("%d records, want 3", n)
		}
		tree.Write("/m/web.yaml", "bad")
		tree.Remove("/m/gone.yaml") // while the agent is away
		time.Sleep(time.Hour)

		r = files(t, tree, r.store, nil)
		r.want("o=x:1 (o.yaml), web=app:1 (web.yaml)", "present, spoken, web.yaml stale error")
		if got := r.last().Pods[1].Line; got != line || line != 2 {
			t.Errorf("line %d of the last good version, want %d", got, line)
		}
		if n := len(r.store.Files()); n != 2 {
			t.Errorf("%d records after a file went, want 2: %v", n, r.store.Files())
		}
		tree.Remove("/m/o.yaml")
		r.pass(soon)
		if n := len(r.store.Files()); n != 1 {
			t.Errorf("%d records after another went, want 1: %v", n, r.store.Files())
		}
	})
}

func TestBrokenStoreDelaysNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &sourcestest.Store{}
		store.Fail(errExhausted)
		r := files(t, world(map[string]string{"/m/web.yaml": "web app:1"}), store, nil)
		r.want("web=app:1 (web.yaml)", "present, spoken")
		r.tree.WriteAtomic("/m/web.yaml", "web app:2")
		r.pass(soon)
		r.want("web=app:2 (web.yaml)", "present, spoken")
		r.pass(time.Minute)
		if n := strings.Count(r.log.String(), "cannot be kept"); n != 1 {
			t.Errorf("said %d times, want once", n)
		}
		store.Fail(nil)
		r.tree.WriteAtomic("/m/b.yaml", "b x:1")
		r.pass(soon)
		if n := len(store.Files()); n != 2 {
			t.Errorf("%d records once the store works again, want both: %v", n, store.Files())
		}
	})
}

// A record that could not be removed would bring its pod back after a restart.
// It is tried again by itself, and what was written meanwhile stays.
func TestRecordThatCannotBeRemovedIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := files(t, world(map[string]string{"/m/web.yaml": "web app:1"}), nil, nil)
		r.pass(soon)
		r.store.Fail(errExhausted)
		r.tree.Remove("/m/web.yaml")
		r.pass(soon)
		r.store.Fail(nil)
		r.pass(11 * time.Second)
		if n := len(r.store.Files()); n != 0 {
			t.Errorf("%d records once the store works again, want none: %v", n, r.store.Files())
		}
		r.tree.WriteAtomic("/m/b.yaml", "b x:1")
		r.pass(soon)
		r.store.Fail(errExhausted)
		r.tree.Remove("/m/b.yaml")
		r.pass(soon)
		r.tree.WriteAtomic("/m/c.yaml", "c x:1")
		r.pass(soon)
		r.store.Fail(nil)
		r.pass(time.Minute)
		if n := len(r.store.Files()); n != 1 {
			t.Errorf("%d records, want that of c.yaml alone: %v", n, r.store.Files())
		}
	})
}

func TestUnusableRecordIsNoRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tree := world(map[string]string{"/m/web.yaml": "web app:1"})
		r := files(t, tree, nil, nil)
		r.stop()
		name := r.store.Files()[0]
		if err := r.store.WriteFile(name, []byte(`{"version":1,"origin"`)); err != nil {
			t.Fatal(err)
		}
		tree.Write("/m/web.yaml", "bad")
		time.Sleep(time.Hour)
		r = files(t, tree, r.store, nil)
		r.want("", "present, spoken, web.yaml error")
		if !strings.Contains(r.log.String(), "unusable") {
			t.Error("nothing is said of it")
		}
	})
}

func TestNewFileThatIsHalfThereAtALook(t *testing.T) {
	// No hint came: what was never seen before may still be being written, and
	// half of it may read as a whole.
	synctest.Test(t, func(t *testing.T) {
		r := files(t, world(nil), nil, nil)
		r.tree.Deaf(true)
		time.Sleep(20*time.Second - 10*time.Millisecond)
		r.tree.Write("/m/web.yaml", "web app:1")
		time.Sleep(30 * time.Millisecond)
		r.tree.Write("/m/web.yaml", "web app:12")
		r.pass(time.Second)
		r.want("web=app:12 (web.yaml)", "present, spoken")
		r.always(0, "without half a name", func(s sources.Supply) bool { return !strings.Contains(pods(s), "app:1 ") })
	})
}

func TestWriteInPlaceTakesOneQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := files(t, world(map[string]string{"/m/web.yaml": "web app:1"}), nil, nil)
		r.pass(time.Second)
		r.within(55*time.Millisecond, func() { r.tree.Write("/m/web.yaml", "web app:2") })
		r.want("web=app:2 (web.yaml)", "present, spoken")
	})
}

func TestPodThatMovesToAFileBeingWrittenIsNeverMissing(t *testing.T) {
	for name, torn := range map[string]string{"whole at once": "web app:1", "in two steps": "web ap", "empty at first": ""} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := files(t, world(map[string]string{"/m/web.yaml": "web app:1"}), nil, nil)
				r.pass(time.Second)
				r.tree.Write("/m/moved.yaml", torn)
				time.Sleep(time.Millisecond)
				r.tree.Remove("/m/web.yaml")
				time.Sleep(30 * time.Millisecond)
				r.tree.Write("/m/moved.yaml", "web app:1")
				r.pass(100 * time.Millisecond)
				r.want("web=app:1 (moved.yaml)", "present, spoken")
				r.always(0, "with web", supplies("web"))
			})
		})
	}
}

func TestRemovalWaitsForNoBrokenFileForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := files(t, world(map[string]string{"/m/web.yaml": "web app:1"}), nil, nil)
		for i := range 30 {
			r.tree.Write("/m/log.yaml", strings.Repeat("x", i))
			if i == 10 {
				r.tree.Remove("/m/web.yaml")
			}
			r.pass(70 * time.Millisecond)
		}
		if got := pods(r.last()); got != "" {
			t.Errorf("supplies %q more than a second after the file went", got)
		}
	})
}
