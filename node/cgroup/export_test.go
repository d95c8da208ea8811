package cgroup

// Properties is for tests of what systemd is told.
var Properties = Limits.properties
