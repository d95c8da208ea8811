package oracle

import (
	"math/rand/v2"
	"reflect"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Generate returns the pod of a seed, always the same one. About half of the
// pods are valid: they are made from plausible values, upstream's errors are
// pruned away, and then some of them are broken again in one to six places. A
// few are left as they came, with errors all over.
func Generate(seed uint64) *v1.Pod {
	r := rand.New(rand.NewPCG(seed, 0x706f646b65657065))
	g := &generator{Rand: r, density: []float64{0.05, 0.1, 0.2, 0.35, 0.6}[r.IntN(5)]}
	if g.IntN(10) == 0 {
		g.wild = []float64{0.02, 0.1, 0.4}[g.IntN(3)]
	}
	p := &v1.Pod{}
	p.Name, p.Namespace = "web", "default"
	g.fill(reflect.ValueOf(&p.ObjectMeta).Elem(), "ObjectMeta")
	g.fill(reflect.ValueOf(&p.Spec).Elem(), "Spec")
	g.link(p)
	if g.wild > 0 {
		return p
	}
	prune(p)
	if g.IntN(10) < 6 {
		for range 1 + g.IntN(6) {
			if g.chance(0.5) {
				g.breakOne(p)
			} else {
				g.reach(reflect.ValueOf(&p.Spec).Elem(), "Spec")
			}
		}
	}
	return p
}

type generator struct {
	*rand.Rand
	density float64 // how likely an optional field is set
	wild    float64 // how likely a value is a strange one
}

func (g *generator) chance(p float64) bool { return g.Float64() < p }

func pick[T any](g *generator, list []T) T { return list[g.IntN(len(list))] }

// fill gives v, which is the field called name, a plausible value.
func (g *generator) fill(v reflect.Value, name string) {
	switch v.Interface().(type) {
	case resource.Quantity:
		v.Set(reflect.ValueOf(resource.MustParse(pick(g, quantities))))
		return
	case v1.ResourceList:
		v.Set(reflect.ValueOf(g.resourceList()))
		return
	case intstr.IntOrString:
		v.Set(reflect.ValueOf(pick(g, ports)))
		return
	case metav1.Time, *metav1.Time, []metav1.ManagedFieldsEntry, *metav1.FieldsV1:
		return
	case v1.VolumeSource, v1.ProbeHandler, v1.LifecycleHandler, v1.EnvVarSource, v1.VolumeProjection:
		g.fillOne(v)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		g.fill(v.Elem(), name)
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if g.wanted(f) {
				g.fill(v.Field(i), f.Name)
			}
		}
	case reflect.Slice:
		n := 1 + g.IntN(3)
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			g.fill(v.Index(i), name)
		}
	case reflect.Map:
		m := reflect.MakeMap(v.Type())
		for range 1 + g.IntN(2) {
			m.SetMapIndex(reflect.ValueOf(pick(g, goodKeys)), reflect.ValueOf(pick(g, goodLabelValues)))
		}
		v.Set(m)
	case reflect.String:
		v.SetString(g.word(v, name, false))
	case reflect.Int32, reflect.Int64:
		if g.chance(g.wild) {
			v.SetInt(pick(g, strangeNumbers))
			return
		}
		v.SetInt(pick(g, goodNumbers(name)))
	case reflect.Bool:
		v.SetBool(g.chance(0.5))
	}
}

// wanted says whether an optional field is to be set. What every such object
// has in practice is set nearly always.
func (g *generator) wanted(f reflect.StructField) bool {
	if strings.Contains(often, " "+f.Name+" ") || !strings.Contains(f.Tag.Get("json"), "omitempty") {
		return g.chance(0.97)
	}
	switch f.Name {
	case "EphemeralContainers", "WindowsOptions", "OS", "SchedulingGates", "GenerateName":
		return g.chance(g.density / 4)
	case "Status", "DeletionTimestamp", "CreationTimestamp":
		return false
	}
	return g.chance(g.density)
}

const often = " Containers Image Name Command Path Port ContainerPort Key MountPath Type Resource ContainerName FieldPath "

// fillOne sets one field of a struct of which one is to be set; the local ones
// more often than those that nobody uses here.
func (g *generator) fillOne(v reflect.Value) {
	i := g.IntN(v.NumField())
	if g.chance(0.4) {
		i = g.IntN(min(3, v.NumField()))
	}
	g.fill(v.Field(i), v.Type().Field(i).Name)
}

func (g *generator) resourceList() v1.ResourceList {
	list := v1.ResourceList{}
	for range 1 + g.IntN(3) {
		list[v1.ResourceName(pick(g, resourceNames))] = resource.MustParse(pick(g, quantities))
	}
	return list
}

// word is a value for a string: of its closed set, of those that fit the field's
// name, or any.
func (g *generator) word(v reflect.Value, name string, broken bool) string {
	if broken && g.chance(0.7) || g.chance(g.wild) {
		return g.strange(name)
	}
	if set, ok := enums[v.Type().Name()]; ok {
		return pick(g, set)
	}
	if set, ok := words[name]; ok {
		return pick(g, set)
	}
	return pick(g, goodNames)
}

// strange is a value that is likely to be wrong for a field in a way that somebody
// has thought of.
func (g *generator) strange(name string) string {
	look := "plain"
	switch {
	case g.chance(0.3):
		look = pick(g, looksOfAll)
	case looks[name] != "":
		look = looks[name]
	case name == "Name":
		look = pick(g, []string{"plain", "plain", "plain", "sysctl", "signer", "net"})
	}
	return pick(g, strange[look])
}

// link makes names refer to each other, which chance alone would not.
func (g *generator) link(p *v1.Pod) {
	var volumes, claims []string
	for i := range p.Spec.Volumes {
		p.Spec.Volumes[i].Name = goodNames[i%len(goodNames)]
		volumes = append(volumes, p.Spec.Volumes[i].Name)
	}
	for i := range p.Spec.ResourceClaims {
		claims = append(claims, p.Spec.ResourceClaims[i].Name)
	}
	n := 0
	each(&p.Spec, func(c *v1.Container) {
		if g.chance(0.9) {
			c.Name = goodNames[n%len(goodNames)]
			n++
		}
		for i := range c.VolumeMounts {
			if len(volumes) > 0 {
				c.VolumeMounts[i].Name = pick(g, volumes)
			}
		}
		for i := range c.VolumeDevices {
			if len(volumes) > 0 {
				c.VolumeDevices[i].Name = pick(g, volumes)
			}
		}
		for i := range c.Resources.Claims {
			if len(claims) > 0 {
				c.Resources.Claims[i].Name = pick(g, claims)
			}
		}
		for i := range c.Env {
			if from := c.Env[i].ValueFrom; from != nil && g.chance(0.9) {
				c.Env[i].Value = ""
				if from.FileKeyRef != nil && len(volumes) > 0 {
					from.FileKeyRef.VolumeName = pick(g, volumes)
				}
			}
		}
		if c.Resources.Limits != nil && g.chance(0.7) {
			c.Resources.Requests = c.Resources.Limits.DeepCopy()
		}
		g.annotate(p, c)
	})
}

// annotate gives a container profiles in the old annotations.
func (g *generator) annotate(p *v1.Pod, c *v1.Container) {
	if !g.chance(g.density / 6) {
		return
	}
	if p.Annotations == nil {
		p.Annotations = map[string]string{}
	}
	prefix := pick(g, []string{v1.SeccompContainerAnnotationKeyPrefix, v1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix})
	p.Annotations[prefix+c.Name] = pick(g, profiles)
	if g.chance(0.3) {
		p.Annotations[pick(g, specialAnnotations)] = pick(g, annotationValues)
	}
}

func each(spec *v1.PodSpec, visit func(*v1.Container)) {
	for i := range spec.Containers {
		visit(&spec.Containers[i])
	}
	for i := range spec.InitContainers {
		visit(&spec.InitContainers[i])
	}
	for i := range spec.EphemeralContainers {
		visit((*v1.Container)(&spec.EphemeralContainers[i].EphemeralContainerCommon))
	}
}
