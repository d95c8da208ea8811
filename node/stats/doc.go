// Package stats reads what the machine and its pods use: the node's memory,
// processes and filesystems, and of each pod CPU, memory, processes, network and
// what its files take.
//
// There are two sorts of reading. What the kernel counts for us (cgroups,
// statfs) is cheap and read when somebody asks. What only walking through folders
// tells is not: see the walker.
//
// It refuses to guess: a number that cannot be told is nil, and everybody who
// decides by one must say what nil means to him. It keeps no history, runs no
// period of its own, and decides nothing.
package stats
