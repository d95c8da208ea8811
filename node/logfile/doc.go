// Package logfile reads the logs that Docker's json-file driver writes, from the
// files themselves.
//
// A log is a chain of files: <path> is being written, <path>.1 is what it was before
// it was rotated, and so on; older ones may be compressed. Each line of a file is one
// entry:
//
//	{"log":"text\n","stream":"stdout","time":"2026-01-02T03:04:05.678Z"}
//
// What a process wrote as one line is several entries where it is longer than the
// engine's buffer: all but the last end without a newline. This package puts them
// together again; a line is dated by its beginning, and takes its place in the log
// when it is complete.
//
// Reading starts at the end: a tail costs what it is long, not what the log is, and
// a time is found by halving. A follower holds the file that it reads, so a rotation
// takes nothing from it: it reads that file to its end and goes on with the next. What
// a crash of the machine leaves (zeros, entries cut off) is passed over.
//
// It knows nothing of containers: its caller says which file, and when nothing more
// will be written.
package logfile
