package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/server"
)

// The annotations of objects that are shown to programs.
const (
	sourceAnnotation = "podkeeper.io/source"
	pathAnnotation   = "podkeeper.io/path"
)

func configMapsKind() *kind {
	return &kind{
		plural: "configmaps", singular: "configmap", short: []string{"cm"}, namespaced: true,
		about: "List the ConfigMaps that manifests supply, and the pods that refer to them",
		long: `List the ConfigMaps that manifests supply, and the pods that refer to them. -o json
and -o yaml print v1.ConfigMap.`,
		head: []string{"NAME", "DATA", "PODS"}, wide: []string{"BYTES", "SOURCE"},
		list: listObjects(pod.ConfigMap, func(o server.Object) []cell { return cells(o.Name, strconv.Itoa(len(o.Sizes)), users(o)) }, configMapObject),
	}
}

func secretsKind() *kind {
	return &kind{
		plural: "secrets", singular: "secret", namespaced: true,
		about: "List the Secrets that manifests supply, and the pods that refer to them",
		long: `List the Secrets that manifests supply, and the pods that refer to them: their keys
and sizes, never a value, in no format.`,
		head: []string{"NAME", "TYPE", "DATA", "PODS"}, wide: []string{"BYTES", "SOURCE"},
		list: listObjects(pod.Secret, func(o server.Object) []cell {
			return cells(o.Name, o.Type, strconv.Itoa(len(o.Sizes)), users(o))
		}, secretObject),
	}
}

func claimsKind() *kind {
	return &kind{
		plural: "persistentvolumeclaims", singular: "persistentvolumeclaim", short: []string{"pvc"}, namespaced: true,
		about: "List the claims that manifests supply, and their folders",
		long: `List the claims that manifests supply, their folders, and the pods that use them. A
claim is Bound once its folder is there.`,
		head: []string{"NAME", "STATUS", "CAPACITY", "ACCESS MODES", "STORAGECLASS", "PODS"}, wide: []string{"RECLAIM", "PATH", "SOURCE"},
		list: listObjects(pod.PersistentVolumeClaim, claimRow, claimObject),
	}
}

// listObjects lists those of one kind.
func listObjects(of pod.ObjectKind, row func(server.Object) []cell, object func(server.Object) any) func(*cli, context.Context, *server.Client, uint64, bool) (listing, error) {
	return func(_ *cli, ctx context.Context, client *server.Client, after uint64, full bool) (listing, error) {
		revision, err := awaitState(ctx, client, after)
		if err != nil {
			return listing{}, err
		}
		found, err := client.Objects(ctx, of, full)
		l := listing{revision: revision}
		for _, o := range found.Items {
			i := item{namespace: o.Namespace, name: o.Name, row: row(o), object: object(o), said: o}
			if o.Claim != nil {
				i.wide = cells(o.Claim.Reclaim, o.Claim.Path, where(o))
			} else {
				i.wide = cells(strconv.Itoa(bytesOf(o)), where(o))
			}
			l.items = append(l.items, i)
		}
		return l, err
	}
}

func users(o server.Object) string {
	var names []string
	for _, p := range o.Pods {
		names = append(names, strings.TrimPrefix(p, o.Namespace+"/"))
	}
	return orNone(strings.Join(names, ","))
}

func bytesOf(o server.Object) (sum int) {
	for _, n := range o.Sizes {
		sum += n
	}
	return sum
}

func where(o server.Object) string {
	if o.Line > 0 {
		return fmt.Sprintf("%s:%d", o.Origin.Name, o.Line)
	}
	return orNone(o.Origin.Name)
}

func objectMeta(o server.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name, Annotations: map[string]string{sourceAnnotation: where(o)}}
}

func immutable(o server.Object) *bool {
	if !o.Immutable {
		return nil
	}
	return &o.Immutable
}

func configMapObject(o server.Object) any {
	return &v1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: objectMeta(o),
		Data: o.Data, BinaryData: o.BinaryData, Immutable: immutable(o),
	}
}

// shownSecret is a Secret for programs: v1.Secret with sizes, in bytes, in place of
// values.
type shownSecret struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Type              string         `json:"type"`
	Immutable         *bool          `json:"immutable,omitempty"`
	Sizes             map[string]int `json:"sizes"`
}

func secretObject(o server.Object) any {
	sizes := maps.Clone(o.Sizes)
	if sizes == nil {
		sizes = map[string]int{}
	}
	return &shownSecret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: objectMeta(o),
		Type: o.Type, Immutable: immutable(o), Sizes: sizes,
	}
}

func claimRow(o server.Object) []cell {
	row := cells(o.Name, string(claimPhase(o)), o.Claim.Size, accessText(o.Claim.AccessModes), orNone(o.Claim.StorageClass), users(o))
	if !o.Claim.Bound {
		row[1].tint = busy
	}
	return row
}

func claimPhase(o server.Object) v1.PersistentVolumeClaimPhase {
	if o.Claim.Bound {
		return v1.ClaimBound
	}
	return v1.ClaimPending
}

// accessText is kubectl's short form.
func accessText(modes []v1.PersistentVolumeAccessMode) string {
	short := map[v1.PersistentVolumeAccessMode]string{v1.ReadWriteOnce: "RWO", v1.ReadOnlyMany: "ROX", v1.ReadWriteMany: "RWX", v1.ReadWriteOncePod: "RWOP"}
	var names []string
	for _, m := range modes {
		names = append(names, short[m])
	}
	return strings.Join(slices.Compact(names), ",")
}

func claimObject(o server.Object) any {
	c := &v1.PersistentVolumeClaim{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"}, ObjectMeta: objectMeta(o)}
	c.Annotations[pathAnnotation], c.Annotations[pod.ReclaimAnnotation] = o.Claim.Path, o.Claim.Reclaim
	c.Spec.AccessModes = o.Claim.AccessModes
	if o.Claim.StorageClass != "" {
		c.Spec.StorageClassName = &o.Claim.StorageClass
	}
	c.Status.Phase = claimPhase(o)
	if size, err := resource.ParseQuantity(o.Claim.Size); err == nil {
		c.Spec.Resources.Requests = v1.ResourceList{v1.ResourceStorage: size}
		if o.Claim.Bound {
			c.Status.AccessModes, c.Status.Capacity = o.Claim.AccessModes, c.Spec.Resources.Requests
		}
	}
	return c
}
