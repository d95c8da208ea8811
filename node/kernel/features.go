package kernel

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Version returns the version of Linux, 0.0 where it does not tell.
func Version() (major, minor int) {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return 0, 0
	}
	if _, err := fmt.Sscanf(unix.ByteSliceToString(name.Release[:]), "%d.%d", &major, &minor); err != nil {
		return 0, 0
	}
	return major, minor
}

// KnowsSCTP reports whether the kernel has the protocol, or a module of it that it
// loads when it is used. Trying would load it.
func KnowsSCTP() bool {
	has := func(path, text string) bool {
		data, _ := os.ReadFile(path)
		return strings.Contains(string(data), text)
	}
	var name unix.Utsname
	_ = unix.Uname(&name)
	modules := filepath.Join("/lib/modules", unix.ByteSliceToString(name.Release[:]))
	return has("/proc/net/protocols", "\nSCTP ") ||
		has(filepath.Join(modules, "modules.builtin"), "/sctp.ko") ||
		has(filepath.Join(modules, "modules.dep"), "/sctp.ko")
}

// HugePages returns the huge pages that the machine has set aside, in bytes, by
// the resource of their size. dir is /sys/kernel/mm/hugepages.
func HugePages(dir string) map[v1.ResourceName]int64 {
	have := make(map[v1.ResourceName]int64)
	sizes, _ := os.ReadDir(dir)
	for _, size := range sizes {
		digits := strings.TrimSuffix(strings.TrimPrefix(size.Name(), "hugepages-"), "kB")
		kibibytes, err := strconv.ParseInt(digits, 10, 64)
		if err != nil {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, size.Name(), "nr_hugepages"))
		if err != nil {
			continue
		}
		count, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
		if err != nil {
			continue
		}
		bytes := resource.NewQuantity(kibibytes<<10, resource.BinarySI)
		have[v1.ResourceHugePagesPrefix+v1.ResourceName(bytes.String())] = count * bytes.Value()
	}
	return have
}

// MaxPIDs returns how many processes and threads there can be at a time; 0 is unknown.
func MaxPIDs() int64 {
	data, err := os.ReadFile("/proc/sys/kernel/pid_max")
	if err != nil {
		return 0
	}
	n, _ := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
	return n
}
