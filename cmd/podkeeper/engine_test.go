package main

import (
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/client"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/podkeeper/podkeeper/runtime"
)

// TestEngineScripts runs the agent in earnest. It needs a Docker Engine at
// DOCKER_HOST or the default socket, with busybox:stable in it.
//
// A script's root dir is r. Its commands are
//
//	await-ready        waits until an agent says that it is ready, as to systemd
//	no-containers      fails where the engine has a container of the root dir
//
// A container of a script tells what it does by writing to a FIFO that is
// mounted from the host, which the script reads: so nobody has to sleep.
func TestEngineScripts(t *testing.T) {
	engine, err := client.NewClientWithOpts(client.FromEnv, client.WithAPIVersionNegotiation())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { engine.Close() })
	containers := func(rootDir string) []container.Summary {
		ours := filters.NewArgs(filters.Arg("label", runtime.LabelOwner+"="+rootDir))
		list, err := engine.ContainerList(t.Context(), container.ListOptions{All: true, Filters: ours})
		if err != nil {
			t.Error(err)
		}
		return list
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/engine", UpdateScripts: *updateScripts, RequireExplicitExec: true, RequireUniqueNames: true,
		Setup: func(env *testscript.Env) error {
			notify := filepath.Join(env.WorkDir, "notify")
			conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: notify, Net: "unixgram"})
			if err != nil {
				return err
			}
			env.Setenv("NOTIFY_SOCKET", notify)
			env.Values[notifyKey{}] = conn
			env.Defer(func() {
				conn.Close()
				for _, c := range containers(filepath.Join(env.WorkDir, "r")) {
					if err := engine.ContainerRemove(t.Context(), c.ID, container.RemoveOptions{Force: true, RemoveVolumes: true}); err != nil {
						t.Error(err)
					}
				}
			})
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"await-ready": awaitReady,
			"no-containers": func(ts *testscript.TestScript, _ bool, _ []string) {
				for _, c := range containers(ts.MkAbs("r")) {
					ts.Fatalf("container %s is left", c.Names)
				}
			},
		},
	})
}

type notifyKey struct{}

func awaitReady(ts *testscript.TestScript, _ bool, _ []string) {
	conn := ts.Value(notifyKey{}).(*net.UnixConn)
	ts.Check(conn.SetReadDeadline(time.Now().Add(time.Minute)))
	buf := make([]byte, 1024)
	for {
		n, err := conn.Read(buf)
		ts.Check(err)
		if string(buf[:n]) == "READY=1" {
			return
		}
	}
}
