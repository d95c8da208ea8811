package logfile

import "time"

// Options say what of a log is wanted.
type Options struct {
	// Tail is how many lines of the end; negative is all.
	Tail int64
	// Since leaves out lines that began before; zero is none. It counts among those of
	// the tail.
	Since time.Time
	// Stream leaves out the other one, before lines of the tail are counted.
	Stream Stream
	// Timestamps puts the time before each line, in UTC with nine digits, and a space.
	Timestamps bool
	// Limit is how many bytes at most; 0 is no limit.
	Limit int64
}
