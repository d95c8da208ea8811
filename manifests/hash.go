package manifests

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/podkeeper/podkeeper/pod"
	v1 "k8s.io/api/core/v1"
)

// HashVersion is the version of the two lists below and of how they are encoded.
// Another list, or another encoding, is another version: hashes of different
// versions say nothing about each other, so nothing restarts for it.
const HashVersion = 1

// podFields are the fields of a pod that make another generation of it. Besides
// them count, as they come from several fields: the definitions of init
// containers that are not sidecars, every port with a hostPort, the QoS class.
func podFields() []string {
	return []string{
		"spec.dnsConfig",
		"spec.dnsPolicy",
		"spec.hostAliases",
		"spec.hostIPC",
		"spec.hostNetwork",
		"spec.hostPID",
		"spec.hostUsers",
		"spec.hostname",
		"spec.hostnameOverride",
		"spec.overhead",
		"spec.resourceClaims",
		"spec.runtimeClassName",
		"spec.securityContext",
		"spec.setHostnameAsFQDN",
		"spec.shareProcessNamespace",
		"spec.subdomain",
		"spec.volumes",
	}
}

// containerFields are the fields of a container that it must be restarted for.
// Resources are not among them: they are compared with what the engine reports.
func containerFields() []string {
	return []string{
		"args",
		"command",
		"env",
		"envFrom",
		"image",
		"lifecycle.stopSignal",
		"resources.claims",
		"securityContext",
		"stdin",
		"stdinOnce",
		"terminationMessagePath",
		"tty",
		"volumeDevices",
		"volumeMounts",
		"workingDir",
	}
}

// PodHash returns the hash of the fields whose change replaces the pod, of a
// pod with its defaults.
func PodHash(p *v1.Pod) pod.Hash { return hashOf(podLeaves(p)) }

// ContainerHashes returns the hash of each container's definition by name, init
// containers too.
func ContainerHashes(p *v1.Pod) map[string]pod.Hash {
	out := map[string]pod.Hash{}
	for _, c := range allContainers(p) {
		out[c.Name] = hashOf(containerLeaves(c.Container))
	}
	return out
}

func hashOf(leaves []leaf) pod.Hash {
	return pod.Hash{Version: HashVersion, Digest: digest(leaves)[:16]}
}

// digest returns the hex digest of leaves in their order.
func digest(leaves []leaf) string {
	h := sha256.New()
	for _, l := range leaves {
		// The lengths keep one leaf from looking like two.
		fmt.Fprintf(h, "%d %d ", len(l.path), len(l.value))
		_, _ = io.WriteString(h, l.path)
		_, _ = io.WriteString(h, l.value)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// configHash returns what the annotation kubernetes.io/config.hash says: a
// digest over all of a pod, of the length that people know.
func configHash(p *v1.Pod) string { return digest(flatten(p, ""))[:32] }

// podLeaves returns the leaves that make a generation.
func podLeaves(p *v1.Pod) []leaf {
	out := under(flatten(p, ""), podFields())
	for i, c := range p.Spec.InitContainers {
		if sidecar(c) {
			continue
		}
		path := "spec.initContainers[" + strconv.Itoa(i) + "]."
		out = append(out, leaf{path + "name", strconv.Quote(c.Name)})
		for _, l := range containerLeaves(c) {
			out = append(out, leaf{path + l.path, l.value})
		}
	}
	for _, c := range allContainers(p) {
		for _, port := range c.Ports {
			if port.HostPort != 0 {
				path := "hostPorts[" + strings.TrimSpace(fmt.Sprintf("%s %d/%s", port.HostIP, port.HostPort, port.Protocol)) + "]"
				out = append(out, leaf{path, strconv.Itoa(int(port.ContainerPort))})
			}
		}
	}
	out = append(out, leaf{"qosClass", string(QOSClass(p))})
	if p.Annotations[UpdateAnnotation] == UpdateReplace {
		out = append(out, leaf{"metadata.annotations{" + UpdateAnnotation + "}", p.Annotations[HashAnnotation]})
	}
	sortLeaves(out)
	return out
}

// containerLeaves returns the leaves of a container's definition.
func containerLeaves(c v1.Container) []leaf { return under(flatten(c, ""), containerFields()) }

// located is a container and its place in the pod.
type located struct {
	v1.Container
	path string // spec.containers[0]
}

func allContainers(p *v1.Pod) []located {
	var out []located
	for i, c := range p.Spec.InitContainers {
		out = append(out, located{c, "spec.initContainers[" + strconv.Itoa(i) + "]"})
	}
	for i, c := range p.Spec.Containers {
		out = append(out, located{c, "spec.containers[" + strconv.Itoa(i) + "]"})
	}
	return out
}

// sidecar reports whether an init container goes on running beside the others.
func sidecar(c v1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == v1.ContainerRestartPolicyAlways
}
