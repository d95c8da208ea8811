package manifests

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/podkeeper/podkeeper/manifests/defaults"
	"github.com/podkeeper/podkeeper/manifests/fields"
	v1 "k8s.io/api/core/v1"
)

// Changes is what an edit changed, as paths of fields for people, by what has to
// restart for it.
type Changes struct {
	// Pod has the changes that replace the pod.
	Pod []string
	// Containers has the changes for which a container restarts, by its name.
	// Containers that are new or gone are not in it.
	Containers map[string][]string
	// InPlace has the resources to be changed while the container runs, by its
	// name; under "" those of the pod as a whole. Where the container's resizePolicy
	// asks for a restart they are in Containers.
	InPlace map[string][]string
	// Live has the changes that take effect by themselves.
	Live []string
}

// Empty reports whether nothing changed that has an effect.
func (c Changes) Empty() bool {
	return len(c.Pod) == 0 && len(c.Containers) == 0 && len(c.InPlace) == 0 && len(c.Live) == 0
}

// Changed compares two versions of a pod field by field. Neither is changed. The
// old one may have been written by another version of the agent: it gets the
// defaults of this one first, so that a new default restarts nothing.
func Changed(old, new *v1.Pod) Changes {
	old = old.DeepCopy()
	defaults.Pod(old)
	c := Changes{Pod: paths(diff(podLeaves(old), podLeaves(new)), "")}
	before := map[string]v1.Container{}
	for _, b := range allContainers(old) {
		before[b.Name] = b.Container
	}
	for _, a := range allContainers(new) {
		b, ok := before[a.Name]
		if !ok {
			continue
		}
		c.container(b, a)
	}
	if whole := paths(diff(podResourceLeaves(old), podResourceLeaves(new)), ""); len(whole) > 0 {
		c.InPlace = put(c.InPlace, "", whole)
	}
	c.Live = append(c.Live, livePaths(old, new)...)
	slices.Sort(c.Live)
	c.Live = slices.Compact(c.Live)
	return c
}

// container adds the changes of one container.
func (c *Changes) container(before v1.Container, after located) {
	if strings.HasPrefix(after.path, "spec.initContainers") && !sidecar(after.Container) {
		return // its definition is the pod's
	}
	restart := paths(diff(containerLeaves(before), containerLeaves(after.Container)), after.path)
	var inPlace []string
	for _, d := range diff(resourceLeaves(before), resourceLeaves(after.Container)) {
		path := after.path + "." + d
		if restartsFor(after.Container, d) {
			restart = append(restart, path)
		} else {
			inPlace = append(inPlace, path)
		}
	}
	if len(restart) > 0 {
		c.Containers = put(c.Containers, after.Name, restart)
	}
	if len(inPlace) > 0 {
		c.InPlace = put(c.InPlace, after.Name, inPlace)
	}
}

func put(m map[string][]string, name string, paths []string) map[string][]string {
	if m == nil {
		m = map[string][]string{}
	}
	m[name] = paths
	return m
}

func resourceLeaves(c v1.Container) []leaf {
	return under(flatten(c, ""), []string{"resources.limits", "resources.requests"})
}

func podResourceLeaves(p *v1.Pod) []leaf {
	return under(flatten(p.Spec.Resources, "spec.resources"), []string{"spec.resources.limits", "spec.resources.requests"})
}

// restartsFor reports whether the container must restart for a change of a
// resource, such as resources.limits[cpu].
func restartsFor(c v1.Container, path string) bool {
	return slices.ContainsFunc(c.ResizePolicy, func(p v1.ContainerResizePolicy) bool {
		return p.RestartPolicy == v1.RestartContainer && strings.HasSuffix(path, fmt.Sprintf("[%s]", p.ResourceName))
	})
}

// livePaths returns the changed fields of class live of the pod and of the
// containers that are in both versions.
func livePaths(old, new *v1.Pod) []string {
	a, b := old.DeepCopy(), new.DeepCopy()
	a.Spec.Containers, b.Spec.Containers = inBoth(a.Spec.Containers, b.Spec.Containers)
	a.Spec.InitContainers, b.Spec.InitContainers = inBoth(a.Spec.InitContainers, b.Spec.InitContainers)
	var out []string
	for _, path := range diff(flatten(a, ""), flatten(b, "")) {
		if fields.Of(pattern(path)).Class == fields.Live {
			out = append(out, short(path))
		}
	}
	return out
}

// inBoth leaves the containers that are in both lists, in the order of the new
// one; in place of the others stand empty ones, so that the index of each is
// that of the new list.
func inBoth(old, new []v1.Container) (a, b []v1.Container) {
	a, b = make([]v1.Container, len(new)), make([]v1.Container, len(new))
	for i, c := range new {
		j := slices.IndexFunc(old, func(o v1.Container) bool { return o.Name == c.Name })
		if j >= 0 {
			a[i], b[i] = old[j], c
		}
	}
	return a, b
}

// pattern turns the path of a leaf into a pattern of the fields table.
func pattern(path string) string {
	for _, labels := range []string{"metadata.labels", "metadata.annotations"} {
		if key, ok := strings.CutPrefix(path, labels+"["); ok {
			return labels + "{" + strings.TrimSuffix(key, "]") + "}"
		}
	}
	return anyItem.ReplaceAllString(path, "[]")
}

var (
	anyItem   = regexp.MustCompile(`\[[^]]*\]`)
	anyIndex  = regexp.MustCompile(`\[\d+\]`)
	container = regexp.MustCompile(`^spec\.(initC|c)ontainers\[\d+\]`)
)

// short cuts a path at the first index of a list, but that of the container: an
// item more shifts all that follow, which tells nobody anything.
func short(path string) string {
	head := container.FindString(path)
	tail := path[len(head):]
	if at := anyIndex.FindStringIndex(tail); at != nil {
		tail = tail[:at[0]]
	}
	return head + tail
}

// diff returns the paths of the leaves that are not the same in both lists, which
// are sorted.
func diff(a, b []leaf) []string {
	var out []string
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(a) == 0 || len(b) > 0 && b[0].path < a[0].path:
			out, b = append(out, b[0].path), b[1:]
		case len(b) == 0 || a[0].path < b[0].path:
			out, a = append(out, a[0].path), a[1:]
		default:
			if a[0].value != b[0].value {
				out = append(out, a[0].path)
			}
			a, b = a[1:], b[1:]
		}
	}
	return out
}

// paths shortens paths for people and puts them below a parent.
func paths(changed []string, parent string) []string {
	var out []string
	for _, p := range changed {
		if p = short(join(parent, p)); !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return out
}

func sortLeaves(leaves []leaf) {
	slices.SortFunc(leaves, func(a, b leaf) int {
		return cmp.Or(strings.Compare(a.path, b.path), strings.Compare(a.value, b.value))
	})
}
