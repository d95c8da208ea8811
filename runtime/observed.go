package runtime

import "time"

// State is where a container is in its life.
type State string

// The states. A container whose start failed stays Created, with an exit code.
const (
	Created State = "created"
	Running State = "running"
	Exited  State = "exited"
)

// Summary is what a listing says of one container.
type Summary struct {
	ID string
	Identity
	State State
	// Ports of the host that a running sandbox has, as far as the engine lists them;
	// one on every address has no HostIP.
	Ports []Port
}

// Container is one container of ours as the engine reports it, a sandbox
// included.
type Container struct {
	ID string
	Identity
	State State
	// ExitCode is the main process's, or the engine's for a failed start.
	ExitCode  int
	OOMKilled bool
	// Error is the engine's own text about a failed start, for people.
	Error string
	// Wall clock times of the engine; zero where they did not happen yet.
	Created, Started, Finished time.Time
	// Start is the engine's spelling of when the container last started: an
	// opaque string, compared only for equality.
	Start string
	// Image is the name it was created with, ImageID what that resolved to.
	Image, ImageID string
	// LogPath is the engine's log file, "" where its log driver has none.
	LogPath string
	// PID is the main process's as the host knows it, 0 where it does not run or
	// the engine does not tell. It may be another's by the time it is used.
	PID int
	// Writable is the folder on the host that holds what the container wrote to its
	// own filesystem, and that only; "" where the engine's storage has none.
	Writable string
	// IPs of a running sandbox that has a network of its own.
	IPs []string
	// HostNetwork is set on a sandbox that has none.
	HostNetwork bool
	Resources   Resources
	// CgroupParent is the one that it was made with, "" for the engine's own.
	CgroupParent string
	// Drift names the settings of the agent that it was made with and that differ
	// now, each with both values. They hold from the next create.
	Drift []string
}

// FailedStart reports whether the engine tried to start the container and could not.
func (c Container) FailedStart() bool {
	return c.State == Created && (c.ExitCode != 0 || c.Error != "")
}

// Ended reports whether the container had its attempt: it ran and exited, or
// could not be started.
func (c Container) Ended() bool { return c.State == Exited || c.FailedStart() }

// Resources are limits in the engine's units. Zero is the engine's default.
type Resources struct {
	CPUShares int64
	CPUPeriod int64 // µs
	CPUQuota  int64 // µs per period
	Memory    int64 // bytes; memory plus swap gets the same value
	Pids      int64 // processes and threads
	// CPUSet are the CPUs that it may use, as the kernel spells a list, "0-1,3". An
	// update without it leaves those that the container has.
	CPUSet string
}

// SandboxRef is the sandbox a container was created in: its id, and when that
// had been started. If either differs from what the sandbox reports now, the
// container is in a network namespace that is gone.
type SandboxRef struct {
	ID    string `json:"id"`
	Start string `json:"start"`
}

// Ref returns the reference to this sandbox as it runs now.
func (c Container) Ref() SandboxRef { return SandboxRef{ID: c.ID, Start: c.Start} }
