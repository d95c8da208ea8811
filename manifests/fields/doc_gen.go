package fields

import (
	"bytes"
	"fmt"
	"strings"
)

// Doc returns the table for people, in Markdown.
func Doc() []byte {
	var b bytes.Buffer
	b.WriteString(`# What becomes of each field of a pod

<!-- Generated from manifests/fields by go generate; edit the table there. -->

A field stands for all that is below it, unless that has a line of its own. ` + "`[]`" + ` is any item of a list, ` + "`{}`" + `
any value of a map.

- **acted on**: what it asks for is done; the remark says where that is less than in Kubernetes, or otherwise.
- **accepted**: it has no effect here; ` + "`podkeeper validate`" + ` says so.
- **refused**: the pod does not run while the field asks for something. Absent, empty and the values in parentheses ask for nothing.
- **request-checked**: acted on, but it needs something that the machines lack on which the tests run. They hold the exact
  request to the engine or the kernel, and that a machine without it refuses the pod before anything is made for it. Where a
  test of ` + "`agent`" + ` is named, it runs the pod on a machine that has it: CONTRIBUTING.md says how.

The fourth column says what an edit of the field restarts: the **pod**, the **container**, nothing (**live**), nothing
unless its resizePolicy says so (**in place**); **none** is for identity and for what has no effect. A port with a hostPort
counts for the pod as a whole. The last column names the tests that show it, by folder and name.

| field | verdict | remark | an edit | shown by |
|---|---|---|---|---|
`)
	for _, r := range Table() {
		if strings.HasPrefix(r.Path, "spec.initContainers[]") || strings.HasPrefix(r.Path, "spec.ephemeralContainers[]") {
			continue
		}
		full := Of(r.Path)
		full.But = r.But
		if full.Verdict == "" {
			continue // only its children have one
		}
		fmt.Fprintf(&b, "| `%s` | %s%s | %s | %s | %s |\n", r.Path, verdict(full), values(full), reason(full), full.Class, shown(full))
	}
	return b.Bytes()
}

func values(r Rule) string {
	switch {
	case len(r.Neutral) > 0:
		return " (" + strings.Join(r.Neutral, ", ") + ")"
	case len(r.Only) > 0:
		return ": " + strings.Join(r.Only, ", ") + "; else refused"
	}
	return ""
}

func verdict(r Rule) string {
	if r.Verdict == Acted && r.Needs != "" {
		return "request-checked"
	}
	return string(r.Verdict)
}

func reason(r Rule) string {
	var text []string
	if r.Verdict != Acted || len(r.Only) > 0 {
		text = append(text, r.Reason)
	}
	if r.Verdict == Acted && r.Needs != "" {
		text = append(text, "needs "+r.Needs)
	}
	if r.But != "" {
		text = append(text, r.But)
	}
	return strings.Join(text, "; ")
}

func shown(r Rule) string {
	if r.Verdict != Acted {
		return ""
	}
	return "`" + strings.Join(r.Tests, "`, `") + "`"
}
