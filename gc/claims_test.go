package gc_test

import (
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podkeeper/podkeeper/gc"
	"github.com/podkeeper/podkeeper/node/volume"
	"github.com/podkeeper/podkeeper/pod"
)

var claimOrigin = pod.Origin{Source: pod.SourceID{Kind: pod.FileSource, Name: "/m"}, Name: "/m/claim.yaml"}

func claimOf(reclaim pod.Reclaim) *pod.Object {
	return &pod.Object{
		Key: pod.ObjectKey{Kind: pod.PersistentVolumeClaim, Namespace: "default", Name: "c"}, Origin: claimOrigin,
		Claim: &pod.Claim{AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}, Size: resource.MustParse("1Gi"), Reclaim: reclaim},
	}
}

func storedOf(o *pod.Object) volume.Stored {
	return volume.Stored{Key: o.Key, Claim: *o.Claim, Origin: o.Origin}
}

func spoken(origins ...pod.OriginStatus) pod.Set {
	return pod.Set{Sources: []pod.Source{{ID: claimOrigin.Source, Spoken: true, Present: true, Origins: origins}}}
}

// Law 9: a folder of a claim is data: it goes only where everything says so.
func TestSelectClaims(t *testing.T) {
	failing := pod.OriginStatus{Origin: claimOrigin, Problems: []pod.Problem{{Severity: pod.Error}}}
	moved := claimOf(pod.Delete)
	moved.Origin.Name = "/m/other.yaml"
	bigger := claimOf(pod.Delete)
	bigger.Claim.Size = resource.MustParse("2Gi")
	tests := map[string]struct {
		reclaim        pod.Reclaim
		used           bool
		supplied       *pod.Object
		set            pod.Set
		remove, update bool
	}{
		"delete, and the file is gone":         {reclaim: pod.Delete, set: spoken(), remove: true},
		"retain is the default":                {reclaim: pod.Retain, set: spoken()},
		"law 5: what is remembered was lost":   {set: spoken()},
		"a pod has it":                         {reclaim: pod.Delete, used: true, set: spoken()},
		"it is supplied":                       {reclaim: pod.Delete, supplied: claimOf(pod.Delete), set: spoken()},
		"it is supplied by another file":       {reclaim: pod.Delete, supplied: moved, set: spoken(), update: true},
		"it is supplied and says more":         {reclaim: pod.Delete, supplied: bigger, set: spoken(), update: true},
		"it is to be kept from now on":         {reclaim: pod.Delete, supplied: claimOf(pod.Retain), set: spoken(), update: true},
		"law 1: nothing was looked at":         {reclaim: pod.Delete, set: pod.Set{Sources: []pod.Source{{ID: claimOrigin.Source}}}},
		"law 1: the folder is not there":       {reclaim: pod.Delete, set: pod.Set{Sources: []pod.Source{{ID: claimOrigin.Source, Spoken: true, Problem: "missing"}}}},
		"law 1: its file has an error":         {reclaim: pod.Delete, set: spoken(failing)},
		"law 1: there is no source":            {reclaim: pod.Delete},
		"its source is configured no longer":   {reclaim: pod.Delete, set: pod.Set{Sources: []pod.Source{{ID: pod.SourceID{Kind: pod.FileSource, Name: "/n"}, Spoken: true, Present: true}}}, remove: true},
		"... while another one has not spoken": {reclaim: pod.Delete, set: pod.Set{Sources: []pod.Source{{ID: pod.SourceID{Kind: pod.FileSource, Name: "/n"}, Problem: "missing"}}}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := storedOf(claimOf(tt.reclaim))
			s.Used = tt.used
			supplied := make(map[pod.ObjectKey]*pod.Object)
			if tt.supplied != nil {
				supplied[s.Key] = tt.supplied
			}
			remove, update := gc.SelectClaims([]volume.Stored{s}, supplied, tt.set)
			if got := len(remove) == 1; got != tt.remove {
				t.Errorf("removed: %v", got)
			}
			if got := slices.Equal(update, []*pod.Object{tt.supplied}); got != tt.update {
				t.Errorf("updated: %v", update)
			}
		})
	}
}
