package oracle

import (
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// prune takes out of p what upstream objects to until it objects to nothing, or
// for a number of rounds. What it cannot find by an error's path it takes out
// with more around it each time.
func prune(p *v1.Pod) {
	for round := range 12 {
		judged, err := Theirs(p)
		if err != nil || len(judged.Errors) == 0 {
			return
		}
		done := map[string]bool{}
		// From the end, so that indexes stay right while items are taken out.
		for _, e := range slices.Backward(judged.Errors) {
			if path := e.Field; !done[path] {
				done[path] = true
				remove(reflect.ValueOf(p).Elem(), steps(path), round/3)
			}
		}
		if len(p.Spec.Containers) == 0 {
			p.Spec.Containers = []v1.Container{{Name: "only", Image: "nginx"}}
		}
		if p.Name == "" {
			p.Name = "web"
		}
		if p.Namespace == "" {
			p.Namespace = "default"
		}
	}
}

var step = regexp.MustCompile(`\[[^\]]*\]|[^.\[\]]+`)

func steps(path string) []string { return step.FindAllString(path, -1) }

// remove zeroes what the steps lead to, or the nearest thing around it which can
// be found, leaving off up further steps.
func remove(v reflect.Value, path []string, up int) {
	trail := []reflect.Value{v}
	for _, s := range path {
		next, ok := follow(v, s)
		if !ok {
			break
		}
		trail = append(trail, next)
		v = next
	}
	last := max(1, len(trail)-1-up)
	if last >= len(trail) || !trail[last].CanSet() {
		return
	}
	parent, target := trail[last-1], trail[last]
	if parent.Kind() == reflect.Slice {
		for i := range parent.Len() {
			if parent.Index(i).Addr().Pointer() == target.Addr().Pointer() {
				parent.Set(reflect.AppendSlice(parent.Slice(0, i), parent.Slice(i+1, parent.Len())))
				return
			}
		}
	}
	target.SetZero()
}

func follow(v reflect.Value, s string) (reflect.Value, bool) {
	for v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return v, false
		}
		v = v.Elem()
	}
	if key, ok := strings.CutPrefix(s, "["); ok {
		i, err := strconv.Atoi(strings.TrimSuffix(key, "]"))
		if err != nil || v.Kind() != reflect.Slice || i >= v.Len() {
			return v, false
		}
		return v.Index(i), true
	}
	if v.Kind() != reflect.Struct {
		return v, false
	}
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		switch {
		case name == "" && v.Type().Field(i).Anonymous:
			if inner, ok := follow(v.Field(i), s); ok {
				return inner, true
			}
		case strings.EqualFold(name, s):
			return v.Field(i), true
		}
	}
	return v, false
}
