package gc

import (
	"github.com/podkeeper/podkeeper/node/volume"
	"github.com/podkeeper/podkeeper/pod"
)

// SelectClaims returns which folders of claims are to be removed, and which claims
// say something else now than is remembered of their folder.
//
// A folder goes where its claim asked for that, nothing supplies the claim any more
// and whoever supplied it has spoken (law 1), and no pod that is here has it.
func SelectClaims(stored []volume.Stored, supplied map[pod.ObjectKey]*pod.Object, set pod.Set) (remove []volume.Stored, update []*pod.Object) {
	for _, s := range stored {
		if now := supplied[s.Key]; now != nil {
			was := pod.Object{Key: s.Key, Claim: &s.Claim}
			if now.Origin != s.Origin || !was.SameContent(now) {
				update = append(update, now)
			}
			continue
		}
		if s.Used || s.Claim.Reclaim != pod.Delete {
			continue
		}
		if ok, _ := set.MayRemove(s.Origin.Source.Kind, &s.Origin); ok {
			remove = append(remove, s)
		}
	}
	return remove, update
}
