package stats

import (
	"fmt"

	"github.com/google/cadvisor/lib/fs"
	"github.com/google/cadvisor/lib/machine"
	"github.com/google/cadvisor/lib/utils/sysfs"
)

// Machine is what a machine is made of. "" and 0 are not known.
type Machine struct {
	// Cores are processors as the kernel counts them, PhysicalCores and Sockets what
	// they are on.
	Cores, PhysicalCores, Sockets int
	// Memory and Swap are bytes.
	Memory, Swap int64
	// MachineID is of the installation, SystemUUID of the hardware, BootID of this run.
	MachineID, SystemUUID, BootID string
}

// ReadMachine reads it anew. It takes some milliseconds, and little of it ever
// changes.
func ReadMachine() (Machine, error) {
	mounts, err := fs.NewFsInfo(fs.Context{})
	if err != nil {
		return Machine{}, fmt.Errorf("machine: %w", err)
	}
	info, err := machine.Info(sysfs.NewRealSysFs(), mounts, true)
	if err != nil {
		return Machine{}, fmt.Errorf("machine: %w", err)
	}
	return Machine{
		Cores: info.NumCores, PhysicalCores: info.NumPhysicalCores, Sockets: info.NumSockets,
		Memory: int64(info.MemoryCapacity), Swap: int64(info.SwapCapacity),
		MachineID: info.MachineID, SystemUUID: info.SystemUUID, BootID: info.BootID,
	}, nil
}
