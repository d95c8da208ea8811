package logfile_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podkeeper/podkeeper/node/logfile"
)

func TestCopyReadsWhatIsNotAsUsual(t *testing.T) {
	const tail = `","stream":"stdout","time":"2026-03-01T12:00:00.5Z"}` + "\n"
	for name, test := range map[string]struct{ file, want string }{
		"an entry":                               {`{"log":"a\n` + tail, "a\n"},
		"attributes":                             {`{"log":"a\n","stream":"stdout","attrs":{"stream":"stderr","time":"x"},"time":"2026-03-01T12:00:00Z"}` + "\n", "a\n"},
		"another order":                          {`{"time":"2026-03-01T12:00:00Z","stream":"stderr","log":"a\n"}` + "\n", "a\n"},
		"a time with an offset":                  {`{"log":"a\n","stream":"stdout","time":"2026-03-01T14:00:00.5+02:00"}` + "\n", "a\n"},
		"every escape":                           {`{"log":"\"\\\/\b\f\n\r\t\u00e9\ud83d\udc33\ud83dx` + tail, "\"\\/\b\f\n\r\té🐳\ufffdx"},
		"an escape that is none":                 {`{"log":"\q\u12` + tail, `\q\u12`},
		"a backslash and an n, not a newline":    {`{"log":"a\\n` + tail + `{"log":"b\n` + tail, "a\\nb\n"},
		"a backslash before the newline":         {`{"log":"a\\\n` + tail + `{"log":"b\n` + tail, "a\\\nb\n"},
		"what looks like an entry in a text":     {`{"log":"{\"log\":\"x\",\"stream\":\"stderr\",\"time\":\"y\"}\n` + tail, `{"log":"x","stream":"stderr","time":"y"}` + "\n"},
		"zeros of a crash (moby#40584)":          {strings.Repeat("\x00", 3<<20) + `{"log":"a\n` + tail, "a\n"},
		"an entry cut off before another":        {`{"log":"lo` + `{"log":"a\n` + tail, "a\n"},
		"an entry cut off at the end":            {`{"log":"a\n` + tail + `{"log":"lo`, "a\n"},
		"a last entry without its newline":       {strings.TrimSuffix(`{"log":"a\n`+tail, "\n"), "a\n"},
		"no entry at all":                        {"hello\n{}\n[]\n{\"log\":1}\n\n", ""},
		"nothing":                                {"", ""},
		"a line longer than any entry":           {`{"log":"a\n` + tail + strings.Repeat("x", 3<<20) + "\n" + `{"log":"b\n` + tail, "a\nb\n"},
		"a line that the other stream is behind": {`{"log":"a` + tail + `{"log":"b\n","stream":"stderr","time":"2026-03-01T12:00:00Z"}` + "\n" + `{"log":"c\n` + tail, "b\nac\n"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x-json.log")
			if err := os.WriteFile(path, []byte(test.file), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, lines := range []int64{-1, 1000} {
				var got bytes.Buffer
				err := logfile.Copy(t.Context(), path, logfile.Options{Tail: lines}, &got)
				if got.String() != test.want || err != nil {
					t.Errorf("tail %d: got %q, %v, want %q", lines, short(got.String()), err, test.want)
				}
			}
		})
	}
}

func TestTimestampsHaveNineDigits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x-json.log")
	var file strings.Builder
	for _, at := range []string{"2026-03-01T12:00:00Z", "2026-03-01T12:00:00.5Z", "2026-03-01T12:00:00.123456789Z", "2026-03-01T14:00:00.25+02:00", "junk"} {
		fmt.Fprintf(&file, `{"log":"a\n","stream":"stdout","time":%q}`+"\n", at)
	}
	if err := os.WriteFile(path, []byte(file.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if err := logfile.Copy(t.Context(), path, logfile.Options{Tail: -1, Timestamps: true}, &got); err != nil {
		t.Fatal(err)
	}
	want := "2026-03-01T12:00:00.000000000Z a\n2026-03-01T12:00:00.500000000Z a\n2026-03-01T12:00:00.123456789Z a\n" +
		strings.Repeat("2026-03-01T12:00:00.250000000Z a\n", 2) // the last one has no time of its own
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestThereIsNoLog(t *testing.T) {
	err := logfile.Copy(t.Context(), filepath.Join(t.TempDir(), "none"), logfile.Options{Tail: -1}, new(bytes.Buffer))
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want fs.ErrNotExist", err)
	}
}

// A log of a gigabyte, mostly a hole: what is read of it is what is asked for.
func TestATailOfAHugeLogDoesNotReadIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x-json.log")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(1 << 30); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Seek(0, io.SeekEnd); err != nil {
		t.Fatal(err)
	}
	writeLines(t, f, 1000)
	for name, test := range map[string]struct {
		o    logfile.Options
		want string
	}{
		"some lines":      {logfile.Options{Tail: 2}, "line 998\nline 999\n"},
		"none, to follow": {logfile.Options{Tail: 0}, ""},
		"one of a time":   {logfile.Options{Tail: 500, Since: began.Add(999 * time.Second)}, "line 999\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var got bytes.Buffer
			before := bytesRead(t)
			if err := logfile.Copy(t.Context(), path, test.o, &got); err != nil {
				t.Fatal(err)
			}
			if read := bytesRead(t) - before; read > 1<<20 {
				t.Errorf("%d bytes were read", read)
			}
			if got.String() != test.want {
				t.Errorf("got %q, want %q", got.String(), test.want)
			}
		})
	}
}

// A time is found by halving.
func TestSinceDoesNotReadWhatWasBefore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x-json.log")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const lines = 100_000
	writeLines(t, f, lines)
	for _, ago := range []int{0, 1, 100, lines / 2, lines - 1} {
		var got bytes.Buffer
		before := bytesRead(t)
		o := logfile.Options{Tail: -1, Since: began.Add(time.Duration(lines-ago) * time.Second)}
		if err := logfile.Copy(t.Context(), path, o, &got); err != nil {
			t.Fatal(err)
		}
		if read := bytesRead(t) - before; read > 1<<20+int64(ago)*100 {
			t.Errorf("%d bytes were read for %d lines", read, ago)
		}
		if n := strings.Count(got.String(), "\n"); n != ago {
			t.Errorf("got %d lines, want %d", n, ago)
		}
	}
}

var began = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// writeLines writes one entry a second.
func writeLines(t *testing.T, f *os.File, lines int) {
	t.Helper()
	w := bufio.NewWriter(f)
	for n := range lines {
		fmt.Fprintf(w, `{"log":"line %d\n","stream":"stdout","time":%q}`+"\n", n, began.Add(time.Duration(n)*time.Second).Format(time.RFC3339Nano))
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
}

// bytesRead is what this process has read from files so far.
func bytesRead(t *testing.T) int64 {
	t.Helper()
	f, err := os.Open("/proc/self/io")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "rchar: "); ok {
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatal("no rchar")
	return 0
}
