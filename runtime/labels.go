package runtime

import (
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podkeeper/podkeeper/pod"
)

// SandboxName is the container name of a sandbox, as log shippers know it.
const SandboxName = "POD"

// Identity is what a container's labels say, written once, at create (law 5).
type Identity struct {
	Key    pod.Key
	UID    types.UID
	Source pod.SourceKind
	// Name is the container's name in the pod; SandboxName for a sandbox.
	Name    string
	Attempt int
	// PodHash is the pod-level hash, ContainerHash that of the container's
	// definition (zero for a sandbox).
	PodHash, ContainerHash pod.Hash
	// Grace is the pod's termination grace period at create.
	Grace time.Duration
	// Sandbox is the one a container was created in (zero for a sandbox).
	Sandbox SandboxRef
}

// IsSandbox reports whether it is a sandbox.
func (id Identity) IsSandbox() bool { return id.Name == SandboxName }

// The labels. The first group is what log shippers, cAdvisor and people's
// scripts read on a node; the second is our own.
const (
	labelPodName       = "io.kubernetes.pod.name"
	labelPodNamespace  = "io.kubernetes.pod.namespace"
	labelPodUID        = "io.kubernetes.pod.uid"
	labelContainerName = "io.kubernetes.container.name"
	labelSandboxID     = "io.kubernetes.sandbox.id"

	// LabelOwner holds the root dir of the agent that a container belongs to.
	LabelOwner         = "io.podkeeper.root-dir"
	labelSource        = "io.podkeeper.source"
	labelAttempt       = "io.podkeeper.attempt"
	labelPodHash       = "io.podkeeper.pod-hash"
	labelContainerHash = "io.podkeeper.container-hash"
	labelGrace         = "io.podkeeper.grace-period"
	labelSandboxStart  = "io.podkeeper.sandbox-start"
)

// Labels returns the labels of a container of the agent with that root dir.
func (id Identity) Labels(rootDir string) map[string]string {
	labels := map[string]string{
		LabelOwner:         rootDir,
		labelPodName:       id.Key.Name,
		labelPodNamespace:  id.Key.Namespace,
		labelPodUID:        string(id.UID),
		labelContainerName: id.Name,
		labelSource:        string(id.Source),
		labelAttempt:       strconv.Itoa(id.Attempt),
		labelPodHash:       id.PodHash.String(),
		labelGrace:         strconv.FormatInt(int64(id.Grace/time.Second), 10),
	}
	if !id.IsSandbox() {
		labels[labelContainerHash] = id.ContainerHash.String()
		labels[labelSandboxID] = id.Sandbox.ID
		labels[labelSandboxStart] = id.Sandbox.Start
	}
	return labels
}

// ContainerName returns the engine's name for it, without a leading slash:
// k8s_<container>_<pod>_<namespace>_<uid>_<attempt>.
func (id Identity) ContainerName() string {
	return strings.Join([]string{"k8s", id.Name, id.Key.Name, id.Key.Namespace, string(id.UID), strconv.Itoa(id.Attempt)}, "_")
}

// Owned reads the identity of a container from its labels. It is ours only if
// the labels bear our root dir and the name is the one that follows from them,
// or that name with a seventh part (see [Identity.ContainerName]): a container
// made from a commit of one of ours inherits its labels, and is not ours.
func Owned(rootDir, name string, labels map[string]string) (Identity, bool) {
	if labels[LabelOwner] != rootDir || rootDir == "" {
		return Identity{}, false
	}
	attempt, err := strconv.Atoi(labels[labelAttempt])
	if err != nil {
		return Identity{}, false
	}
	// A grace period that cannot be read is not worth losing a container over.
	grace, err := strconv.ParseInt(labels[labelGrace], 10, 64)
	if err != nil {
		grace = 30
	}
	id := Identity{
		Key:           pod.Key{Namespace: labels[labelPodNamespace], Name: labels[labelPodName]},
		UID:           types.UID(labels[labelPodUID]),
		Source:        pod.SourceKind(labels[labelSource]),
		Name:          labels[labelContainerName],
		Attempt:       attempt,
		PodHash:       pod.ParseHash(labels[labelPodHash]),
		ContainerHash: pod.ParseHash(labels[labelContainerHash]),
		Grace:         time.Duration(grace) * time.Second,
		Sandbox:       SandboxRef{ID: labels[labelSandboxID], Start: labels[labelSandboxStart]},
	}
	want := id.ContainerName()
	name = strings.TrimPrefix(name, "/")
	if suffix, ok := strings.CutPrefix(name, want); !ok || suffix != "" && !strings.HasPrefix(suffix, "_") {
		return Identity{}, false
	}
	return id, true
}
