// Package gc holds the side passes that keep the node from filling up. Each is
// a pure select over an inventory, with the time as an argument, and a thin
// apply. They take only what no desired pod claims (law 9), and never speak to
// the loop: what they remove it notices as it notices everything else.
//
// There is one over dead containers: of each container of a pod the newest
// attempts stay, so that the last crash can be read. And one over the folders of
// claims, which are data: they go only where the claim asked for it and is gone.
package gc
