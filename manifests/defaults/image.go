package defaults

import (
	// A digest is only taken for one where its algorithm is linked in.
	_ "crypto/sha256"
	_ "crypto/sha512"

	"github.com/distribution/reference"
	v1 "k8s.io/api/core/v1"
)

// pullPolicy is Always for an image that is named by the tag latest, or by
// neither tag nor digest, and IfNotPresent for all others. A name that cannot be
// parsed is not judged here: it fails at the pull.
func pullPolicy(image string) v1.PullPolicy {
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return v1.PullIfNotPresent
	}
	if reference.IsNameOnly(named) {
		return v1.PullAlways
	}
	if tagged, ok := named.(reference.Tagged); ok && tagged.Tag() == "latest" {
		return v1.PullAlways
	}
	return v1.PullIfNotPresent
}
