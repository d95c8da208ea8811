package podkeeper
import (
 _ "k8s.io/api/core/v1"
 _ "k8s.io/apimachinery/pkg/api/resource"
 _ "sigs.k8s.io/yaml"
 _ "sigs.k8s.io/yaml/goyaml.v3"
 _ "github.com/fsnotify/fsnotify"
 _ "github.com/hashicorp/go-retryablehttp"
 _ "github.com/docker/docker/client"
 _ "github.com/spf13/cobra"
 _ "github.com/google/go-cmp/cmp"
 _ "pgregory.net/rapid"
 _ "github.com/rogpeppe/go-internal/testscript"
 _ "golang.org/x/sync/errgroup"
 _ "golang.org/x/sys/unix"
 _ "golang.org/x/term"
 _ "github.com/google/uuid"
)

import (
 _ "github.com/docker/docker/api/types/container"
 _ "github.com/docker/go-connections/nat"
 _ "github.com/docker/go-units"
 _ "github.com/distribution/reference"
 _ "github.com/coreos/go-systemd/v22/daemon"
 _ "github.com/containerd/errdefs"
 _ "github.com/moby/sys/mountinfo"
 _ "github.com/google/go-containerregistry/pkg/registry"
)
