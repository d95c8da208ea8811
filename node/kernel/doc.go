// Package kernel reads and sets what the kernel has one of for the whole
// machine, below /proc: the parameters that a kubelet wants, the cgroup
// controllers that are there, the badness of the agent's own process.
//
// It decides nothing about pods. What the machine refuses is said, and costs
// only what it says.
package kernel
