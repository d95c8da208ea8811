package main

import (
	"slices"
	"time"
)

// sample is what was measured of one row, in milliseconds.
type sample []float64

func (s *sample) add(d time.Duration) { *s = append(*s, float64(d)/float64(time.Millisecond)) }

func (s sample) median() float64 {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	mid := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[mid]
	}
	return (sorted[mid-1] + sorted[mid]) / 2
}

// row makes a line of the table of what the agent took and what the floor took.
func row(name string, agent, floor sample, target, note string) Row {
	r := Row{Name: name, Unit: "ms", N: len(agent), Median: agent.median(), Min: slices.Min(agent), Max: slices.Max(agent), Target: target, Note: note}
	if len(floor) > 0 {
		r.Floor = floor.median()
		r.Ratio = r.Median / r.Floor
	}
	return r
}
