package stream

// HungUp and Vanished are what a connection is asked of which nothing is read.
var (
	HungUp   = hungUp
	Vanished = vanished
)

// MaxForwarded is the cap on the connections of one session.
const MaxForwarded = maxForwarded
