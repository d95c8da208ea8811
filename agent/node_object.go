package agent

import (
	"bufio"
	"context"
	"os"
	goruntime "runtime"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podkeeper/podkeeper/reconcile"
)

// nodeObject is the machine as Kubernetes shows one.
func (p *parts) nodeObject(ctx context.Context) (*v1.Node, error) {
	snap, err := p.loop.Snapshot(ctx, 0)
	if err != nil {
		return nil, err
	}
	node := &v1.Node{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}}
	node.Name, node.Labels = p.cfg.NodeName, p.node.Labels
	for _, a := range p.cfg.NodeIPs {
		node.Status.Addresses = append(node.Status.Addresses, v1.NodeAddress{Type: v1.NodeInternalIP, Address: a})
	}
	node.Status.Addresses = append(node.Status.Addresses, v1.NodeAddress{Type: v1.NodeHostName, Address: p.cfg.NodeName})
	node.Status.Capacity, node.Status.Allocatable = quantities(p.machine.Capacity()), quantities(p.node.Capacity())
	node.Status.Conditions = nodeConditions(snap, time.Unix(p.assessed.Load(), 0))
	node.Status.NodeInfo = v1.NodeSystemInfo{
		MachineID: firstLine("/etc/machine-id"), BootID: firstLine("/proc/sys/kernel/random/boot_id"),
		KernelVersion: firstLine("/proc/sys/kernel/osrelease"), OSImage: osImage(),
		KubeletVersion: p.cfg.Version, OperatingSystem: goruntime.GOOS, Architecture: goruntime.GOARCH,
	}
	if snap.Engine != "" {
		node.Status.NodeInfo.ContainerRuntimeVersion = "docker://" + snap.Engine
	}
	return node, nil
}

// quantities writes amounts as Kubernetes does.
func quantities(d reconcile.Demand) v1.ResourceList {
	list := make(v1.ResourceList, len(d))
	for name, amount := range d {
		switch {
		case name == v1.ResourceCPU:
			list[name] = *resource.NewMilliQuantity(amount, resource.DecimalSI)
		case name == v1.ResourcePods:
			list[name] = *resource.NewQuantity(amount, resource.DecimalSI)
		default:
			list[name] = *resource.NewQuantity(amount, resource.BinarySI)
		}
	}
	return list
}

// osImage is the distribution's name; "" where it does not say.
func osImage() string {
	f, err := os.Open("/etc/os-release")
	if err != nil {
		return ""
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), "PRETTY_NAME="); ok {
			return strings.Trim(value, `"'`)
		}
	}
	return ""
}

// firstLine returns that of a small file; "" where it cannot be read.
func firstLine(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(data), "\n")
	return line
}
