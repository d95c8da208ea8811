package runtime_test

import (
	"testing"

	"github.com/podkeeper/podkeeper/runtime"
)

func TestReferences(t *testing.T) {
	const (
		d = "sha256:0123456789012345678901234567890123456789012345678901234567890123"
		e = "sha256:9123456789012345678901234567890123456789012345678901234567890123"
	)
	image := runtime.StoredImage{
		ID: "sha256:abcdef0123456789", Names: []string{"busybox:latest", "r.example/a/b:1"}, Digests: []string{"busybox@" + d},
	}
	for ref, want := range map[string]bool{
		"busybox":                         true,
		"busybox:latest":                  true,
		"docker.io/library/busybox":       true,
		"index.docker.io/library/busybox": true,
		"r.example/a/b:1":                 true,
		"busybox@" + d:                    true,
		"r.example/copy@" + d:             true, // the same content
		"busybox:2@" + d:                  true, // an engine goes by the digest
		"sha256:abcdef0123456789":         true,
		"abcdef01":                        true,
		"sha256:abcd":                     true,
		"busybox:stable":                  false,
		"a/b:1":                           false,
		"busybox:latest@" + e:             false,
		"bcdef0":                          false,
		"":                                false,
		"sha256:":                         false,
		"Busybox":                         false,
		"r.example:5000/library/busybox":  false,
		"r.example/a/b":                   false,
	} {
		if got := runtime.NewReferences("other:1", ref).Mean(image); got != want {
			t.Errorf("%q means it: %v, want %v", ref, got, want)
		}
	}
	if (runtime.References{}).Mean(image) {
		t.Error("the empty set means it")
	}
	if runtime.NewReferences("app").Mean(runtime.StoredImage{ID: "sha256:abcdef0123456789"}) {
		t.Error("a name means an image without one")
	}
}
