package pause_test

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podkeeper/podkeeper/runtime/pause"
)

// The names follow from the content. They are written down so that a new image
// (which every engine then loads beside the old one) is always on purpose.
func TestImageNames(t *testing.T) {
	for arch, want := range map[string]string{
		"amd64":   "podkeeper.io/pause:1eb353d0596d",
		"x86_64":  "podkeeper.io/pause:1eb353d0596d",
		"arm64":   "podkeeper.io/pause:bbab070d44f6",
		"aarch64": "podkeeper.io/pause:bbab070d44f6",
	} {
		ref, archive, err := pause.Image(arch)
		if err != nil || ref != want {
			t.Errorf("Image(%q) is named %q (%v), want %q", arch, ref, err, want)
		}
		if _, again, _ := pause.Image(arch); !bytes.Equal(archive, again) {
			t.Errorf("Image(%q) gives other bytes at the second call", arch)
		}
	}
}

func TestImageOfUnknownArchitecture(t *testing.T) {
	for _, arch := range []string{"", "riscv64", "../pause-amd64"} {
		_, _, err := pause.Image(arch)
		if err == nil || !strings.Contains(err.Error(), "--pod-infra-container-image") {
			t.Errorf("Image(%q) gives the error %v, want one that names the way out", arch, err)
		}
	}
}

// An engine reads the archive by manifest.json or by index.json, depending on
// where it keeps images. Both ways must lead to the same image.
func TestArchiveReadsTheSameBothWays(t *testing.T) {
	for arch := range machines {
		t.Run(arch, func(t *testing.T) {
			ref, data, err := pause.Image(arch)
			if err != nil {
				t.Fatal(err)
			}
			a := archive(untar(t, data))

			var layout struct{ ImageLayoutVersion string }
			a.decode(t, "oci-layout", &layout)
			var index struct{ Manifests []descriptor }
			a.decode(t, "index.json", &index)
			var legacy []struct {
				Config           string
				RepoTags, Layers []string
			}
			a.decode(t, "manifest.json", &legacy)
			if layout.ImageLayoutVersion != "1.0.0" || len(index.Manifests) != 1 || len(legacy) != 1 {
				t.Fatalf("layout %q, %d manifests, %d legacy manifests", layout.ImageLayoutVersion, len(index.Manifests), len(legacy))
			}

			var manifest struct {
				Config descriptor
				Layers []descriptor
			}
			unmarshal(t, a.blob(t, index.Manifests[0]), &manifest)
			var config struct {
				Architecture, OS string
				Config           map[string]any
				RootFS           struct {
					DiffIDs []string `json:"diff_ids"`
				}
			}
			unmarshal(t, a.blob(t, manifest.Config), &config)
			layer := a.blob(t, manifest.Layers[0])

			_, tag, _ := strings.Cut(ref, ":")
			got := map[string]any{
				"legacy config":  legacy[0].Config,
				"legacy layers":  legacy[0].Layers,
				"legacy tags":    legacy[0].RepoTags,
				"name":           index.Manifests[0].Annotations,
				"platform":       config.OS + "/" + config.Architecture,
				"index platform": index.Manifests[0].Platform,
				"layer":          config.RootFS.DiffIDs,
				"config":         config.Config,
			}
			want := map[string]any{
				"legacy config": path(manifest.Config),
				"legacy layers": []string{path(manifest.Layers[0])},
				"legacy tags":   []string{ref},
				"name": map[string]string{
					"io.containerd.image.name":          ref,
					"org.opencontainers.image.ref.name": tag,
				},
				"platform":       "linux/" + arch,
				"index platform": map[string]string{"os": "linux", "architecture": arch},
				"layer":          []string{sum(layer)},
				// No healthcheck, no labels (containers would inherit them), no environment.
				"config": map[string]any{"Entrypoint": []any{"/pause"}, "User": "65535:65535"},
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("image (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(map[string][]byte{"pause": read(t, "pause-"+arch)}, untar(t, layer)); diff != "" {
				t.Errorf("layer (-want +got):\n%s", diff)
			}
			if header, err := tar.NewReader(bytes.NewReader(layer)).Next(); err != nil || header.Mode != 0o755 {
				t.Errorf("the program has header %+v (%v), want mode 755", header, err)
			}
		})
	}
}

type descriptor struct {
	Digest      string
	Size        int
	Annotations map[string]string
	Platform    map[string]string
}

// path is where an archive keeps the blob.
func path(d descriptor) string { return "blobs/" + strings.Replace(d.Digest, ":", "/", 1) }

func sum(data []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(data)) }

type archive map[string][]byte

func (a archive) decode(t *testing.T, name string, into any) {
	t.Helper()
	data, ok := a[name]
	if !ok {
		t.Fatalf("the archive has no %s", name)
	}
	unmarshal(t, data, into)
}

// blob is the content of d, checked against its digest and size.
func (a archive) blob(t *testing.T, d descriptor) []byte {
	t.Helper()
	data := a[path(d)]
	if sum(data) != d.Digest || len(data) != d.Size {
		t.Fatalf("blob %s of %d bytes is described as %s of %d", sum(data), len(data), d.Digest, d.Size)
	}
	return data
}

func untar(t *testing.T, data []byte) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for r := tar.NewReader(bytes.NewReader(data)); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatalf("read archive: %v", err)
		}
		if files[header.Name], err = io.ReadAll(r); err != nil {
			t.Fatalf("read %s: %v", header.Name, err)
		}
	}
}

func unmarshal(t *testing.T, data []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatalf("decode %s: %v", data, err)
	}
}
