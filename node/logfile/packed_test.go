package logfile_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podkeeper/podkeeper/node/logfile"
)

// Compressed files have tails as others do, however many entries lie between what is
// wanted, and over the seams of files.
func TestTailsOfCompressedFiles(t *testing.T) {
	e := newEngine(t)
	e.compress = true
	for n := range 12 {
		e.write(logfile.Stderr, fmt.Sprintf("error %d\n", n))
		for range 9 { // one line of nine entries
			e.write(logfile.Stdout, fmt.Sprintf("part of %d ", n))
		}
		if n == 6 {
			e.rotate() // in the midst of the line
		}
		e.write(logfile.Stdout, "end\n")
	}
	for n := range 1000 {
		e.write(logfile.Stdout, strings.Repeat("x", n%7))
		for range 8 {
			e.write(logfile.Stdout, "p")
		}
		e.write(logfile.Stdout, fmt.Sprintf("long %d\n", n))
	}
	e.rotate()
	for n := range 10_000 {
		e.write(logfile.Stdout, fmt.Sprintf("line %d\n", n))
	}
	e.rotate()
	for name, stream := range map[string]logfile.Stream{"both": logfile.All, "stdout": logfile.Stdout, "stderr": logfile.Stderr} {
		for _, tail := range []int64{1, 2, 3, 6, 11, 12, 13, 900, 9_999, 10_000, 10_001, 10_500, 11_000, 11_001, 11_005, 11_013, 1 << 40} {
			o := logfile.Options{Tail: tail, Stream: stream}
			var got bytes.Buffer
			if err := logfile.Copy(t.Context(), e.path, o, &got); err != nil {
				t.Fatal(err)
			}
			if want := e.want(o); got.String() != want {
				t.Errorf("%s, tail %d: %d lines (-want +got):\n%.400s", name, tail, strings.Count(got.String(), "\n"), cmp.Diff(short(want), short(got.String())))
			}
		}
	}
}
