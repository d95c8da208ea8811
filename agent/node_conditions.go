package agent

import (
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podkeeper/podkeeper/reconcile"
)

// nodeConditions are in the kubelet's words. A heartbeat is when what a condition is
// about was looked at last: what the node is short of at assessed, that it is ready when the
// engine was asked what there is, or came or went since.
func nodeConditions(snap reconcile.Snapshot, assessed time.Time) []v1.NodeCondition {
	since := snap.Since
	pressure := func(kind v1.NodeConditionType, s reconcile.Shortage, from time.Time, has, hasNot, enough string) v1.NodeCondition {
		c := dated(kind, from, assessed)
		c.Status, c.Reason, c.Message = v1.ConditionFalse, "KubeletHasSufficient"+hasNot, "kubelet has sufficient "+enough+" available"
		switch {
		case !snap.Pressure.Looked:
			c.Status, c.Reason, c.Message = v1.ConditionUnknown, "NotLookedYet", "the node was not looked at yet"
		case s.Message != "":
			c.Status, c.Reason, c.Message = v1.ConditionTrue, "KubeletHas"+has, s.Message
		}
		return c
	}
	disk := pressure(v1.NodeDiskPressure, snap.Pressure.Disk, since.Disk, "DiskPressure", "Disk", "disk space")
	if disk.Status == v1.ConditionFalse {
		disk.Reason, disk.Message = "KubeletHasNoDiskPressure", "kubelet has no disk pressure"
	}
	ready := dated(v1.NodeReady, since.Ready, snap.Looked)
	ready.Status, ready.Reason, ready.Message = truth(snap.Online), "KubeletReady", "the container engine answers"
	switch {
	case !snap.Online:
		ready.Reason, ready.Message = "KubeletNotReady", "the container engine does not answer"
	case snap.Shutdown:
		ready.Status, ready.Reason, ready.Message = v1.ConditionFalse, "KubeletNotReady", "node is shutting down"
	}
	return []v1.NodeCondition{
		pressure(v1.NodeMemoryPressure, snap.Pressure.Memory, since.Memory, "InsufficientMemory", "Memory", "memory"),
		disk,
		pressure(v1.NodePIDPressure, snap.Pressure.PIDs, since.PIDs, "InsufficientPID", "PID", "PID"),
		ready,
	}
}

// dated is a condition that is so since then, and was seen to be; a change is seen, too.
func dated(kind v1.NodeConditionType, since, seen time.Time) v1.NodeCondition {
	if seen.Before(since) {
		seen = since
	}
	return v1.NodeCondition{
		Type: kind, LastTransitionTime: metav1.NewTime(since.Truncate(time.Second)), LastHeartbeatTime: metav1.NewTime(seen.Truncate(time.Second)),
	}
}
