// Package manifests turns the bytes of one origin (a file, the body of a URL)
// into pods that are ready to run, and names everything that is wrong on the
// way.
//
//	bytes → documents (decode) → objects → verdicts (fields) → identity → defaults → validate → hashes
//
// [Parse] is pure: the same bytes give the same result, whatever the time or the
// machine, and it never panics. Each document stands for itself: one that is
// broken takes nothing with it, and as long as its name can be read it says
// which pod it was about, so that the last good version of that pod can be kept
// (law 1). Nothing is ignored in silence (law 8): a field is acted on, or named in
// a problem with file, line, column and path.
//
// The package also says what an edit means: [PodHash] and [ContainerHashes]
// digest explicit, versioned lists of fields, [Changed] compares two versions
// field by field, [MintUID] gives a pod its UID.
//
// It refuses to read files, to know where the desired state is kept, and to
// decide between two origins: that is for package sources. It never quotes the
// value of an environment variable.
package manifests
