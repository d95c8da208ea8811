package logfile

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

// Stream is where a process wrote to.
type Stream int

// The streams. All is for asking only.
const (
	All Stream = iota
	Stdout
	Stderr
)

// streams bounds arrays that are indexed by Stream.
const streams = 3

// entry is one line of a file.
type entry struct {
	// text is as it lies in the file: the inside of a JSON string.
	text   []byte
	stream Stream
	// time is as it lies in the file.
	time []byte
}

var (
	begin  = []byte(`{"log":"`)
	middle = []byte(`","stream":"`)
	stdout = []byte(`stdout","time":"`)
	stderr = []byte(`stderr","time":"`)
	end    = []byte(`"}`)
)

// parse reads one line of a file, without its newline. What it returns lies in the
// line. Of an entry that was cut off, with another behind it, that other is read.
func parse(line []byte) (entry, bool) {
	for len(line) > 0 { // no text contains a bare quote, so this begins an entry
		next := bytes.Index(line[1:], begin)
		if next < 0 {
			break
		}
		line = line[1+next:]
	}
	cut := bytes.LastIndex(line, middle)
	if cut < len(begin) || !bytes.HasPrefix(line, begin) || !bytes.HasSuffix(line, end) {
		return parseAny(line)
	}
	e := entry{text: line[len(begin):cut], stream: Stdout}
	rest, ok := bytes.CutPrefix(line[cut+len(middle):], stdout)
	if !ok {
		e.stream = Stderr
		if rest, ok = bytes.CutPrefix(rest, stderr); !ok {
			return parseAny(line)
		}
	}
	e.time = rest[:len(rest)-len(end)]
	return e, len(e.time) > 0
}

// parseAny reads an entry that is not spelled as usual: with attributes, or in
// another order.
func parseAny(line []byte) (entry, bool) {
	var found struct {
		Log    json.RawMessage `json:"log"`
		Stream string          `json:"stream"`
		Time   string          `json:"time"`
	}
	if len(line) == 0 || line[0] != '{' || json.Unmarshal(line, &found) != nil || len(found.Log) < 2 || found.Log[0] != '"' {
		return entry{}, false
	}
	e := entry{text: found.Log[1 : len(found.Log)-1], stream: Stdout, time: []byte(found.Time)}
	if found.Stream == "stderr" {
		e.stream = Stderr
	}
	return e, found.Time != ""
}

// ends reports whether the line that the entry belongs to ends with it.
func (e entry) ends() bool {
	text, ok := bytes.CutSuffix(e.text, []byte(`\n`))
	slashes := 0
	for slashes < len(text) && text[len(text)-1-slashes] == '\\' {
		slashes++
	}
	return ok && slashes%2 == 0
}

// appendText appends what the process wrote. Escapes that are none are kept as they
// are.
func appendText(to, text []byte) []byte {
	for {
		i := bytes.IndexByte(text, '\\')
		if i < 0 || i+1 == len(text) {
			return append(to, text...)
		}
		to = append(to, text[:i]...)
		var used int
		to, used = appendEscape(to, text[i:])
		text = text[i+used:]
	}
}

// appendEscape appends what the escape at the beginning of text stands for, and
// returns how many bytes that has.
func appendEscape(to, text []byte) ([]byte, int) {
	switch c := text[1]; c {
	case '"', '\\', '/':
		return append(to, c), 2
	case 'n':
		return append(to, '\n'), 2
	case 't':
		return append(to, '\t'), 2
	case 'r':
		return append(to, '\r'), 2
	case 'b':
		return append(to, '\b'), 2
	case 'f':
		return append(to, '\f'), 2
	}
	r, ok := unicodeEscape(text)
	if !ok {
		return append(to, text[:2]...), 2
	}
	if low, ok := unicodeEscape(text[6:]); ok && utf16.IsSurrogate(r) {
		if both := utf16.DecodeRune(r, low); both != utf8.RuneError {
			return utf8.AppendRune(to, both), 12
		}
	}
	return utf8.AppendRune(to, r), 6
}

func unicodeEscape(text []byte) (rune, bool) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(text[2:6]), 16, 32)
	return rune(n), err == nil
}

// layout is how times are shown: RFC 3339 with all nine digits, as docker and the
// kubelet do.
const layout = "2006-01-02T15:04:05.000000000Z07:00"

// stamp is a time in UTC in that layout. Stamps compare as times do.
type stamp [len("2006-01-02T15:04:05.000000000Z")]byte

// stampOf returns the time of an entry; false where it has none.
func stampOf(text []byte) (s stamp, ok bool) {
	const whole = len("2006-01-02T15:04:05")
	if digits := len(text) - len("2006-01-02T15:04:05.Z"); digits >= 0 && digits <= 9 && text[len(text)-1] == 'Z' && text[whole] == '.' {
		copy(s[:], text[:len(text)-1])
		for i := whole + 1 + digits; i < len(s)-1; i++ {
			s[i] = '0'
		}
		s[len(s)-1] = 'Z'
		return s, true
	}
	t, err := time.Parse(time.RFC3339Nano, string(text))
	if err != nil {
		return s, false
	}
	return newStamp(t), true
}

func newStamp(t time.Time) (s stamp) {
	copy(s[:], t.UTC().AppendFormat(nil, layout))
	return s
}

func (s stamp) before(t stamp) bool { return bytes.Compare(s[:], t[:]) < 0 }
