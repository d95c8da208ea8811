package reconcile

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// field returns what a fieldRef says of the pod.
func (s surroundings) field(path string) (string, error) {
	switch path {
	case "metadata.name":
		return s.pod.Name, nil
	case "metadata.namespace":
		return s.pod.Namespace, nil
	case "metadata.uid":
		return string(s.uid), nil
	case "metadata.labels":
		return quoteMap(s.pod.Labels), nil
	case "metadata.annotations":
		return quoteMap(s.pod.Annotations), nil
	case "spec.nodeName", "spec.host":
		return s.pod.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return s.pod.Spec.ServiceAccountName, nil
	case "status.hostIP":
		return first(s.node.Addresses), nil
	case "status.hostIPs":
		return strings.Join(s.node.Addresses, ","), nil
	case "status.podIP":
		return first(s.ips()), nil
	case "status.podIPs":
		return strings.Join(s.ips(), ","), nil
	}
	if inner, ok := strings.CutSuffix(path, "']"); ok {
		switch parent, key, _ := strings.Cut(inner, "['"); parent {
		case "metadata.labels":
			return s.pod.Labels[key], nil
		case "metadata.annotations":
			return s.pod.Annotations[key], nil
		}
	}
	return "", fmt.Errorf("unsupported fieldPath: %s", path)
}

// ips returns the pod's addresses: in the host's network, those of the node.
func (s surroundings) ips() []string {
	if s.pod.Spec.HostNetwork {
		return s.node.Addresses
	}
	return s.podIPs
}

func first(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}

// quoteMap writes labels or annotations as the kubelet does: a line each, sorted,
// values in quotes and escaped.
func quoteMap(m map[string]string) string {
	lines := make([]string, 0, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		lines = append(lines, key+"="+strconv.Quote(m[key]))
	}
	return strings.Join(lines, "\n")
}

// resource returns what a resourceFieldRef says of a container, c where it names
// none: in units of its divisor, rounded up. A limit that is not set is what the
// pod, else the node has.
func (s surroundings) resource(c *v1.Container, ref *v1.ResourceFieldSelector) (string, error) {
	if ref.ContainerName != "" {
		if c = containerOf(s.pod, ref.ContainerName); c == nil {
			return "", fmt.Errorf("container %s not found", ref.ContainerName)
		}
	}
	side, name, _ := strings.Cut(ref.Resource, ".")
	resourceName := v1.ResourceName(name)
	var amount resource.Quantity
	switch side {
	case "requests":
		amount = c.Resources.Requests[resourceName]
	case "limits":
		if amount = c.Resources.Limits[resourceName]; amount.IsZero() {
			amount = s.limit(resourceName)
		}
	default:
		return "", fmt.Errorf("unsupported container resource: %s", ref.Resource)
	}
	divisor := ref.Divisor
	if divisor.IsZero() {
		divisor = resource.MustParse("1")
	}
	if resourceName == v1.ResourceCPU {
		return ceiling(amount.MilliValue(), divisor.MilliValue()), nil
	}
	return ceiling(amount.Value(), divisor.Value()), nil
}

// limit returns what bounds a container that has no limit of its own. Huge pages
// are not among it: there are none that were not asked for.
func (s surroundings) limit(name v1.ResourceName) resource.Quantity {
	if r := s.pod.Spec.Resources; r != nil {
		if q := r.Limits[name]; !q.IsZero() && !strings.HasPrefix(string(name), v1.ResourceHugePagesPrefix) {
			return q
		}
	}
	switch name {
	case v1.ResourceCPU:
		return *resource.NewQuantity(s.node.CPUs, resource.DecimalSI)
	case v1.ResourceMemory:
		return *resource.NewQuantity(s.node.Memory, resource.BinarySI)
	case v1.ResourceEphemeralStorage:
		return *resource.NewQuantity(s.node.Storage, resource.BinarySI)
	}
	return resource.Quantity{}
}

func ceiling(amount, divisor int64) string {
	n := amount / divisor
	if amount%divisor > 0 {
		n++
	}
	return strconv.FormatInt(n, 10)
}
