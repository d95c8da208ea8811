package reconcile

import (
	"fmt"
	"strings"
)

// envFile looks a key up in a file of NAME='value' lines. The syntax is the part
// of a shell's that Kubernetes takes: values in single quotes, as they are, over
// several lines if need be; comments and blank lines. What comes after the key is
// not looked at, and the first of one name counts. An error names a line and
// never repeats it.
func envFile(text, key string) (value string, found bool, err error) {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		line := strings.TrimLeft(strings.TrimSuffix(lines[i], "\r"), " \t")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		wrong := func(what string) error { return fmt.Errorf("line %d: %s", i+1, what) }
		name, rest, ok := strings.Cut(line, "=")
		switch {
		case !ok:
			return "", false, wrong("has no '='")
		case name == "":
			return "", false, wrong("has no name before '='")
		case strings.TrimRight(name, " \t") != name:
			return "", false, wrong("has a space before '='")
		case strings.HasPrefix(rest, " ") || strings.HasPrefix(rest, "\t"):
			rest = "''" // to a shell, the assignment ends here
		case !strings.HasPrefix(rest, "'"):
			return "", false, wrong("its value is not in single quotes")
		}
		value, after, closed := strings.Cut(rest[1:], "'")
		for begin := i; !closed; {
			if i++; i == len(lines) {
				return "", false, fmt.Errorf("line %d: its quote is not closed", begin+1)
			}
			var more string
			more, after, closed = strings.Cut(strings.TrimSuffix(lines[i], "\r"), "'")
			value += "\n" + more
		}
		if after = strings.TrimLeft(after, " \t"); after != "" && !strings.HasPrefix(after, "#") {
			return "", false, wrong("has something after the closing quote")
		}
		if name == key {
			return value, true, nil
		}
	}
	return "", false, nil
}
