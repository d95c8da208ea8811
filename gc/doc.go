// Package gc holds the side passes that keep the node from filling up. Each is
// a pure select over an inventory, with the time as an argument, and a thin
// apply. They take only what no desired pod claims (law 9).
//
// There is one over dead containers: of each container of a pod the newest
// attempts stay, so that the last crash can be read. The loop is not told: it
// notices what is gone as it notices everything else. One is over the images of the
// engine: it asks the loop to remove each, since nobody else knows what is wanted at
// that instant, and no event tells of it. And one is over the folders of claims,
// which are data: they go only where the claim asked for it and is gone.
//
// Under disk pressure the collectors of containers and of images can be asked to
// reclaim all that may go.
//
// The [Evictor] takes nothing itself. It judges what the node is short of, and
// states which pods have to end for that; the loop is told, and acts.
package gc
