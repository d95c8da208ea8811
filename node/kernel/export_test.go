package kernel

var WatchOOMIn = watchOOM
