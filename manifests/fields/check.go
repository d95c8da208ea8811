package fields

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// Finding is a field that is set and not, or not wholly, acted on.
type Finding struct {
	// Path is the path of the field, as field.Path prints it.
	Path string
	// Verdict is Accepted or Refused.
	Verdict Verdict
	// Warn: it has no effect, and that may keep the pod from its work.
	Warn bool
	// Reason is a phrase that goes with the path: "this is a Linux machine".
	Reason string
}

// Check returns the fields of a pod, as the manifest has it and before any
// default, that are refused or have no effect. One that asks for nothing (an
// empty securityContext, hostUsers: true) is not among them.
func Check(p *v1.Pod) []Finding {
	c := checker{seen: map[Finding]bool{}}
	c.walk(reflect.ValueOf(p).Elem(), []place{{}})
	c.notes(p)
	if mount := p.Spec.AutomountServiceAccountToken; mount != nil && !*mount {
		for i, f := range c.findings {
			if f.Path == "spec.serviceAccountName" || f.Path == "spec.serviceAccount" {
				c.findings[i].Warn = false // the token is not missed
			}
		}
	}
	return c.findings
}

// place is one step on the way to a value.
type place struct{ path, pattern string }

type checker struct {
	findings []Finding
	seen     map[Finding]bool
}

// walk visits what is set; way has the places from the root to the value.
func (c *checker) walk(v reflect.Value, way []place) {
	here := way[len(way)-1]
	set := false
	for v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return
		}
		v, set = v.Elem(), true
	}
	item := strings.HasSuffix(here.pattern, "[]")
	switch {
	case isLeaf(v.Type()):
		if set || item || !v.IsZero() {
			c.found(v, way)
		}
	case v.Kind() == reflect.Struct:
		if set && rules()[here.pattern].Presence || item && v.IsZero() {
			c.found(v, way)
			return
		}
		for i := range v.NumField() {
			if v.Field(i).IsZero() {
				continue
			}
			name := fieldName(v.Type(), i)
			if name == "" {
				c.walk(v.Field(i), way)
				continue
			}
			next := place{join(here.path, name), join(here.pattern, name)}
			c.walk(v.Field(i), append(slices.Clip(way), next))
		}
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			next := place{here.path + "[" + strconv.Itoa(i) + "]", here.pattern + "[]"}
			c.walk(v.Index(i), append(slices.Clip(way), next))
		}
	case v.Kind() == reflect.Map:
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		for _, k := range keys {
			next := place{here.path + "[" + k.String() + "]", here.pattern + "{" + key(k.String()) + "}"}
			c.found(v.MapIndex(k), append(slices.Clip(way), next))
		}
	}
}

// found judges one value that is set.
func (c *checker) found(v reflect.Value, way []place) {
	rule := Of(way[len(way)-1].pattern)
	text := ""
	if isLeaf(v.Type()) {
		text = literal(v)
	}
	verdict := rule.Verdict
	switch {
	case rule.Path == "" || slices.Contains(rule.Neutral, text):
		return
	case verdict == Acted && len(rule.Only) > 0 && !slices.Contains(rule.Only, text):
		verdict, rule.judged = Refused, rule.Path
	case verdict == Acted || verdict == "":
		return
	}
	f := Finding{Path: where(rule, way), Verdict: verdict, Reason: rule.Reason, Warn: verdict == Accepted && rule.Warn}
	if verdict == Accepted {
		f.Reason = "has no effect here: " + rule.Reason
	}
	if !c.seen[f] {
		c.seen[f] = true
		c.findings = append(c.findings, f)
	}
}

// where returns the path of what a rule is about, on the way to a value.
func where(rule Rule, way []place) string {
	i := slices.IndexFunc(way, func(p place) bool { return p.pattern == rule.judged })
	if i < 0 {
		return way[len(way)-1].path
	}
	if rule.Each && i+1 < len(way) {
		i++
	}
	return way[i].path
}

func literal(v reflect.Value) string {
	if v.CanAddr() {
		if s, ok := v.Addr().Interface().(fmt.Stringer); ok {
			return s.String()
		}
	}
	return fmt.Sprint(v.Interface())
}

// notes adds what hangs on more than one field.
func (c *checker) notes(p *v1.Pod) {
	if class := p.Spec.PriorityClassName; class != "" && !strings.HasPrefix(class, "system-") && p.Spec.Priority == nil {
		c.findings = append(c.findings, Finding{
			Path: "spec.priorityClassName", Verdict: Accepted, Warn: true,
			Reason: "has no effect here: priority classes are an API server's to keep, so without spec.priority it is 0",
		})
	}
	if asksForImageGroups(p) {
		c.findings = append(c.findings, Finding{
			Path: "spec.securityContext.supplementalGroupsPolicy", Verdict: Accepted,
			Reason: "has no effect here on a container with a runAsGroup: " + besideGroup,
		})
	}
}

// asksForImageGroups reports whether a pod asks for the groups that its images have
// users in, and for a group as well, with which the engine does not add them.
func asksForImageGroups(p *v1.Pod) bool {
	sc := p.Spec.SecurityContext
	if sc == nil || sc.SupplementalGroupsPolicy == nil || *sc.SupplementalGroupsPolicy != v1.SupplementalGroupsPolicyMerge {
		return false
	}
	return sc.RunAsGroup != nil || slices.ContainsFunc(slices.Concat(p.Spec.InitContainers, p.Spec.Containers), func(c v1.Container) bool {
		return c.SecurityContext != nil && c.SecurityContext.RunAsGroup != nil
	})
}
