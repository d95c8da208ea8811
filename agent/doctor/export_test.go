package doctor

// For tests.
var (
	ReadOpen  = readOpen
	ReadPorts = readPorts
)

func Instances(o open) int { return o.inotify }
