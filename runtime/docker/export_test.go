package docker

// Pure parts, for tests.
var (
	OOMFloor  = oomFloor
	Observe   = observe
	PullStall = pullStall
)

// Resolvers returns what a pod is told about DNS, given the text of both files.
func Resolvers(etc, behind string) (servers, search, options []string, broken bool) {
	got := chooseResolvers(parseResolvConf(etc), parseResolvConf(behind))
	return got.servers, got.search, got.options, got.broken
}
