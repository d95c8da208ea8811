package docker

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// sandboxOOMScoreAdj is the kubelet's: a pod's network outlives its containers.
const sandboxOOMScoreAdj = -998

// lowestOOMScoreAdj returns the lowest oom_score_adj that the engine can give to
// a container. The kernel lets a process without CAP_SYS_RESOURCE (an engine
// inside a container, or a rootless one) not go below a minimum that it
// inherited, and an engine that tries fails to start the container.
func lowestOOMScoreAdj(enginePID int) int {
	dir := "/proc/self"
	if enginePID > 0 {
		dir = filepath.Join("/proc", strconv.Itoa(enginePID))
	}
	read := func(name string) string {
		data, _ := os.ReadFile(filepath.Join(dir, name))
		return string(data)
	}
	return oomFloor(read("status"), read("uid_map"), read("oom_score_adj"))
}

const noOOMFloor = -1000

// oomFloor decides from three files of a process in /proc. The minimum itself
// cannot be read; the process's own value is never below it.
func oomFloor(status, uidMap, adj string) int {
	if hasCapability(status, unix.CAP_SYS_RESOURCE) && initialUserNamespace(uidMap) {
		return noOOMFloor
	}
	floor, err := strconv.Atoi(strings.TrimSpace(adj))
	if err != nil {
		return 0
	}
	return floor
}

func hasCapability(status string, capability uint) bool {
	for line := range strings.Lines(status) {
		if value, ok := strings.CutPrefix(line, "CapEff:"); ok {
			mask, err := strconv.ParseUint(strings.TrimSpace(value), 16, 64)
			return err == nil && mask&(1<<capability) != 0
		}
	}
	return false
}

// initialUserNamespace reports whether capabilities count for the whole machine.
func initialUserNamespace(uidMap string) bool {
	fields := strings.Fields(uidMap)
	return len(fields) == 3 && fields[0] == "0" && fields[1] == "0" && fields[2] == "4294967295"
}
