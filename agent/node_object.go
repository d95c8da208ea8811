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

// nodeObject is the machine as Kubernetes shows one. When a condition came to be so is
// not remembered.
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
	node.Status.Conditions = nodeConditions(snap, time.Now())
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

// nodeConditions are in the kubelet's words.
func nodeConditions(snap reconcile.Snapshot, now time.Time) []v1.NodeCondition {
	pressure := func(kind v1.NodeConditionType, s reconcile.Shortage, has, hasNot, enough string) v1.NodeCondition {
		c := v1.NodeCondition{Type: kind, Status: v1.ConditionFalse, Reason: "KubeletHasSufficient" + hasNot, Message: "kubelet has sufficient " + enough + " available"}
		switch {
		case !snap.Pressure.Looked:
			c.Status, c.Reason, c.Message = v1.ConditionUnknown, "NotLookedYet", "the node was not looked at yet"
		case s.Message != "":
			c.Status, c.Reason, c.Message = v1.ConditionTrue, "KubeletHas"+has, s.Message
		}
		return c
	}
	ready := v1.NodeCondition{Type: v1.NodeReady, Status: truth(snap.Online), Reason: "KubeletReady", Message: "the container engine answers"}
	switch {
	case !snap.Online:
		ready.Reason, ready.Message = "KubeletNotReady", "the container engine does not answer"
	case snap.Shutdown:
		ready.Status, ready.Reason, ready.Message = v1.ConditionFalse, "KubeletNotReady", "node is shutting down"
	}
	list := []v1.NodeCondition{
		pressure(v1.NodeMemoryPressure, snap.Pressure.Memory, "InsufficientMemory", "Memory", "memory"),
		pressure(v1.NodeDiskPressure, snap.Pressure.Disk, "DiskPressure", "Disk", "disk space"),
		pressure(v1.NodePIDPressure, snap.Pressure.PIDs, "InsufficientPID", "PID", "PID"),
		ready,
	}
	if list[1].Status == v1.ConditionFalse {
		list[1].Reason, list[1].Message = "KubeletHasNoDiskPressure", "kubelet has no disk pressure"
	}
	for i := range list {
		list[i].LastHeartbeatTime = metav1.NewTime(now.Truncate(time.Second))
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
