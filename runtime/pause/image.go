package pause

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"
)

//go:embed pause-amd64 pause-arm64
var binaries embed.FS

// repository is in nobody's registry: the image is loaded, never pulled.
const repository = "podkeeper.io/pause"

// Image makes the pause image for one architecture. It takes the name of the
// architecture as Go, OCI and the engine's version call have it (amd64, arm64)
// or as the engine's info call and uname have it (x86_64, aarch64); any other
// is an error.
//
// ref is the image's name with a tag that follows from its content. archive is
// what `docker load` takes, and loading it gives the image that name: an OCI
// image layout for engines that keep images in containerd, which is at the same
// time the older archive format with manifest.json for all others. Both are the
// same bytes at every call, on every machine.
func Image(arch string) (ref string, archive []byte, err error) {
	switch arch {
	case "x86_64":
		arch = "amd64"
	case "aarch64":
		arch = "arm64"
	}
	program, err := binaries.ReadFile("pause-" + arch)
	if err != nil {
		return "", nil, fmt.Errorf("no built-in pause image for architecture %q (there are amd64 and arm64): name one with --pod-infra-container-image", arch)
	}
	layer, err := tarball(file{name: "pause", mode: 0o755, data: program})
	if err != nil {
		return "", nil, fmt.Errorf("make layer of pause image: %w", err)
	}

	config := marshal(imageConfig(arch, layer))
	manifest := marshal(ociManifest{
		SchemaVersion: 2,
		MediaType:     "application/vnd.oci.image.manifest.v1+json",
		Config:        describe("application/vnd.oci.image.config.v1+json", config),
		Layers:        []descriptor{describe("application/vnd.oci.image.layer.v1.tar", layer)},
	})
	tag := digest(config)[:12]
	ref = repository + ":" + tag

	entry := describe("application/vnd.oci.image.manifest.v1+json", manifest)
	entry.Annotations = map[string]string{
		"io.containerd.image.name":          ref,
		"org.opencontainers.image.ref.name": tag,
	}
	entry.Platform = &platform{Architecture: arch, OS: "linux"}
	files := []file{
		{name: "oci-layout", data: marshal(map[string]string{"imageLayoutVersion": "1.0.0"})},
		{name: "index.json", data: marshal(ociIndex{
			SchemaVersion: 2,
			MediaType:     "application/vnd.oci.image.index.v1+json",
			Manifests:     []descriptor{entry},
		})},
		{name: "manifest.json", data: marshal([]dockerManifest{{
			Config:   blobPath(config),
			RepoTags: []string{ref},
			Layers:   []string{blobPath(layer)},
		}})},
		{name: blobPath(config), data: config},
		{name: blobPath(manifest), data: manifest},
		{name: blobPath(layer), data: layer},
	}
	archive, err = tarball(files...)
	if err != nil {
		return "", nil, fmt.Errorf("make archive of pause image: %w", err)
	}
	return ref, archive, nil
}

// imageConfig runs the program as a user without rights: it needs none, and
// containers that share its PID namespace then see nothing in /proc/1/root.
// The creation time is fixed, since it is part of what the name is made from.
func imageConfig(arch string, layer []byte) ociConfig {
	var c ociConfig
	c.Created = epoch
	c.Architecture, c.OS = arch, "linux"
	c.Config.User = "65535:65535"
	c.Config.Entrypoint = []string{"/pause"}
	c.RootFS.Type = "layers"
	c.RootFS.DiffIDs = []string{"sha256:" + digest(layer)}
	c.History = []history{{Created: epoch, CreatedBy: "podkeeper"}}
	return c
}

var epoch = time.Unix(0, 0).UTC()

// digest is the SHA-256 of data in hex.
func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func blobPath(data []byte) string { return "blobs/sha256/" + digest(data) }

func describe(mediaType string, data []byte) descriptor {
	return descriptor{MediaType: mediaType, Digest: "sha256:" + digest(data), Size: len(data)}
}

// file is one entry of an archive; the zero mode means 0644.
type file struct {
	name string
	mode int64
	data []byte
}

// tarball writes plain USTAR without times, owners or folders, so that its
// bytes follow from files alone. Engines make the folders themselves.
func tarball(files ...file) ([]byte, error) {
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, f := range files {
		if f.mode == 0 {
			f.mode = 0o644
		}
		header := &tar.Header{
			Typeflag: tar.TypeReg, Format: tar.FormatUSTAR,
			Name: f.name, Mode: f.mode, Size: int64(len(f.data)), ModTime: epoch,
		}
		if err := w.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("write header of %s: %w", f.name, err)
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, fmt.Errorf("write %s: %w", f.name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

// marshal encodes the plain structs of format.go, which always works.
func marshal(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("pause: encode %T: %v", v, err))
	}
	return data
}
