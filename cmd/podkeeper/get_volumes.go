package main

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/server"
)

// volumeObject is the shape of -o json.
type volumeObject struct {
	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`
	// Volume is as the pod has it.
	Volume v1.Volume `json:"volume"`
	// Mounts are where containers have it.
	Mounts []volumeMount `json:"mounts"`
}

type volumeMount struct {
	Container string `json:"container"`
	Path      string `json:"path"`
	ReadOnly  bool   `json:"readOnly"`
}

func volumesKind() *kind {
	return &kind{
		plural: "volumes", singular: "volume", short: []string{"vol"}, namespaced: true, labelled: true,
		about: "List the volumes of pods, and the containers that have them mounted",
		long: `List the volumes of pods, and the containers that have them mounted. A NAME is that of
a volume, or POD/VOLUME. Claims are listed by get pvc.`,
		head: []string{"POD", "NAME", "TYPE", "SOURCE", "MOUNTED BY"}, wide: []string{"PATHS"},
		list: listVolumes,
		means: func(l listing, i item, _, name string) bool {
			o := i.object.(volumeObject)
			if owner, rest, ok := strings.Cut(name, "/"); ok {
				return o.Volume.Name == rest && (o.Pod == owner || o.Pod == owner+"-"+l.node)
			}
			return o.Volume.Name == name
		},
	}
}

func listVolumes(_ *cli, ctx context.Context, client *server.Client, after uint64, _ bool) (listing, error) {
	s, err := client.State(ctx, after)
	l := listing{revision: s.Revision, state: &s, node: s.NodeName}
	for _, p := range podsOf(s, "") {
		for _, v := range p.Pod.Spec.Volumes {
			o := volumeObject{Namespace: p.Pod.Namespace, Pod: p.Pod.Name, Volume: v, Mounts: []volumeMount{}}
			var by, paths []string
			for _, c := range slices.Concat(p.Pod.Spec.InitContainers, p.Pod.Spec.Containers) {
				for _, m := range c.VolumeMounts {
					if m.Name == v.Name {
						o.Mounts = append(o.Mounts, volumeMount{c.Name, m.MountPath, m.ReadOnly})
						by, paths = append(by, c.Name), append(paths, c.Name+":"+m.MountPath)
					}
				}
			}
			kind, source := volumeType(v)
			l.items = append(l.items, item{
				namespace: o.Namespace, name: v.Name, id: string(p.Pod.UID) + "/" + o.Pod, of: o.Pod, labels: p.Pod.Labels, object: o,
				row:  cells(o.Pod, v.Name, kind, orNone(source), orNone(strings.Join(slices.Compact(by), ","))),
				wide: cells(orNone(strings.Join(paths, ","))),
			})
		}
	}
	return l, err
}

// volumeType returns what a volume is, in the manifest's word, and from what.
func volumeType(v v1.Volume) (kind, source string) {
	switch {
	case v.HostPath != nil:
		return "hostPath", v.HostPath.Path
	case v.EmptyDir != nil:
		return "emptyDir", string(v.EmptyDir.Medium)
	case v.ConfigMap != nil:
		return "configMap", v.ConfigMap.Name
	case v.Secret != nil:
		return "secret", v.Secret.SecretName
	case v.PersistentVolumeClaim != nil:
		return "persistentVolumeClaim", v.PersistentVolumeClaim.ClaimName
	case v.NFS != nil:
		return "nfs", v.NFS.Server + ":" + v.NFS.Path
	case v.Image != nil:
		return "image", v.Image.Reference
	}
	// The one field that is set has the name of the type.
	var fields map[string]json.RawMessage
	if data, err := json.Marshal(v.VolumeSource); err == nil && json.Unmarshal(data, &fields) == nil {
		for name := range fields {
			return name, ""
		}
	}
	return "emptyDir", ""
}
