// Package metrics says what the node and its pods use and what the agent did, in the
// shapes that monitoring knows from a kubelet: the summary (/stats/summary), and the
// pages for Prometheus (/metrics and what is below it).
//
// What is used is not kept: whoever asks has it read, as [Facts], and gets it said by a
// pure function or a collector that lives for one page. What happened is counted when it
// happens, by [Counters]; a page only writes the counts down. Nothing here runs by itself.
//
// A number that is not known is left out: never a zero that nobody counted. Labels come
// from what is there now; what has gone leaves with the next page.
//
// The names of metrics, their types and labels are the kubelet's and cAdvisor's where
// those have one, and begin with podkeeper_ where not. docs/metrics.md has all of them.
package metrics
