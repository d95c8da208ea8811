package reconcile

import "strings"

// expand replaces each $(NAME) that lookup knows. $$ is a literal dollar sign,
// so $$(NAME) stays; unknown names and unfinished references stay as written.
// The rules are those of the Kubernetes API for command, args and env.
func expand(s string, lookup func(string) (string, bool)) string {
	var b strings.Builder
	for {
		head, tail, found := strings.Cut(s, "$")
		b.WriteString(head)
		if !found {
			return b.String()
		}
		switch {
		case strings.HasPrefix(tail, "$"):
			b.WriteByte('$')
			s = tail[1:]
			continue
		case strings.HasPrefix(tail, "("):
			if name, rest, closed := strings.Cut(tail[1:], ")"); closed {
				if value, ok := lookup(name); ok {
					b.WriteString(value)
				} else {
					b.WriteString("$(" + name + ")")
				}
				s = rest
				continue
			}
		}
		b.WriteByte('$')
		s = tail
	}
}
