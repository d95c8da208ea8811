package kernel

var (
	WatchOOMIn   = watchOOM
	MemoryCgroup = memoryCgroup
)
