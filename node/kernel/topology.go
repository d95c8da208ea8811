package kernel

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"k8s.io/utils/cpuset"
)

// CPU is a processor that is online, by the kernel's number, and what it is part of:
// the core by the lowest number of its CPUs, the socket by its own.
type CPU struct{ ID, Core, Socket int }

// ReadCPUs returns the CPUs that are online, by their numbers. dir is
// /sys/devices/system/cpu. Where the machine does not tell what a CPU is part of, it
// is a core of its own on socket 0.
func ReadCPUs(dir string) ([]CPU, error) {
	data, err := os.ReadFile(filepath.Join(dir, "online"))
	if err != nil {
		return nil, fmt.Errorf("read CPUs: %w", err)
	}
	online, err := cpuset.Parse(strings.TrimSpace(string(data)))
	if err != nil {
		return nil, fmt.Errorf("read CPUs: %w", err)
	}
	var list []CPU
	for _, id := range online.List() {
		cpu := CPU{ID: id, Core: id}
		topology := filepath.Join(dir, "cpu"+strconv.Itoa(id), "topology")
		// The name of before Linux 5.2, then the newer one.
		for _, name := range []string{"thread_siblings_list", "core_cpus_list"} {
			data, err := os.ReadFile(filepath.Join(topology, name))
			if err != nil {
				continue
			}
			if siblings, err := cpuset.Parse(strings.TrimSpace(string(data))); err == nil && siblings.Contains(id) {
				cpu.Core = siblings.List()[0]
			}
		}
		if data, err := os.ReadFile(filepath.Join(topology, "physical_package_id")); err == nil {
			if socket, err := strconv.Atoi(strings.TrimSpace(string(data))); err == nil {
				cpu.Socket = max(socket, 0) // -1 is unknown
			}
		}
		list = append(list, cpu)
	}
	return list, nil
}
