// Package nsenter runs commands in the namespaces of a container, as nsenter(1) does,
// and unlike that as whom and with what the engine's own exec would: the container's
// user with its groups, its capabilities, its cgroup, a terminal of its own making.
//
//	agent ── order, sizes ──► this program again ── enters, starts ──► the command
//	      ◄── pid, exit code ──                     ◄── waits, kills ──
//
// What enters is a process of its own, this same program under another name: one that
// has entered is at the mercy of the container, which may freeze it or hold its CPU
// back, and shares its memory with the command until that has begun. The agent's is not
// theirs to see. It ends with the agent, and takes the command and what that started
// along; where both are killed at the same instant, these stay.
//
// Whatever is a container's may be a trap. Its files are opened below its root, past no
// link of /proc; a program's path is followed with the container's capabilities alone;
// and of what the process holds meanwhile nothing has the host's files above it.
//
// The namespaces of mounts and processes can be entered by a thread for itself, that of
// users cannot: a container which has one of its own is refused. So is what an engine
// gives a process and tells nobody: the seccomp filter, and profiles of AppArmor and
// SELinux, do not hold for commands that are run like this.
package nsenter
