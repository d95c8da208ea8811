package sources_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/podkeeper/podkeeper/sources"
	"github.com/podkeeper/podkeeper/sources/sourcestest"
)

// Without a store nothing is kept, and a start has nothing of a URL that is away.
func TestSourcesWithoutACache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &sourcestest.Store{}
		s := &serve{handler: body(200, "secret key=1\np x:1")}
		r := pages(t, s, store, nil)
		r.stop()
		tree := world(map[string]string{"/m/a.yaml": "secret key=1"})
		r = files(t, tree, store, nil)
		r.pass(time.Minute)
		r.stop()
		if n := len(store.Files()); n != 2 {
			t.Fatalf("%d records, want 2", n)
		}
		if err := sources.RemoveCache(store); err != nil || len(store.Files()) > 0 {
			t.Fatalf("left: %v, %v", store.Files(), err)
		}

		r = pages(t, s, store, func(c *sources.HTTPConfig) { c.Store = nil })
		r.want("key=1 (p), p=x:1 (p)", "present, spoken")
		r.stop()
		s.set(nil)
		r = pages(t, s, store, func(c *sources.HTTPConfig) { c.Store = nil })
		r.pass(time.Minute)
		r.want("", "")
		tree.Write("/m/a.yaml", "bad")
		r = files(t, tree, store, func(c *sources.FileConfig) { c.Store = nil })
		r.pass(time.Minute)
		r.want("", "present, spoken, a.yaml error")
		if len(store.Files()) > 0 {
			t.Errorf("written: %v", store.Files())
		}
	})
}
