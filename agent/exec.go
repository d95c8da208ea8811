package agent

import (
	"github.com/podkeeper/podkeeper/runtime/docker"
	"github.com/podkeeper/podkeeper/runtime/nsenter"
)

// ExecHandler is what runs commands in containers: see docker.ExecHandler.
type ExecHandler = docker.ExecHandler

// The handlers that there are.
const (
	NativeExec  = docker.NativeExec
	NsenterExec = docker.NsenterExec
)

// CheckExecHandler says what is wrong with a handler for the engine at an address, ""
// being that of DOCKER_HOST.
func CheckExecHandler(h ExecHandler, host string) error { return docker.CheckExecHandler(h, host) }

// Entered reports whether this process was one that an agent with [NsenterExec] starts
// for each command: then it has done that when this returns, and is to end. A program
// that runs an agent calls it before anything else.
func Entered() bool {
	if !nsenter.Asked() {
		return false
	}
	nsenter.Main()
	return true
}
