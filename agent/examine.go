package agent

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/podkeeper/podkeeper/agent/doctor"
	"github.com/podkeeper/podkeeper/runtime/docker"
)

// What is found of a machine: see package doctor.
type (
	Facts   = doctor.Facts
	Finding = doctor.Finding
	Verdict = doctor.Verdict
)

// How well a machine is.
const (
	VerdictOK   = doctor.OK
	VerdictWarn = doctor.Warn
	VerdictFail = doctor.Fail
)

// Diagnosis is what is to be said of a machine.
type Diagnosis struct {
	// Verdict is the worst of all.
	Verdict  Verdict   `json:"verdict"`
	Findings []Finding `json:"findings"`
}

// Diagnose says what the facts mean for pods, and what to do where it is not well.
func Diagnose(facts Facts) Diagnosis {
	found := doctor.Diagnose(facts)
	return Diagnosis{doctor.Worst(found), found}
}

// Examine returns what there is to know of this machine and of the engine, for
// [Diagnose]. It changes nothing and needs no agent.
func Examine(ctx context.Context, cfg DockerConfig) Facts {
	return doctor.Read(askEngine(ctx, cfg), cfg.RootDir)
}

func askEngine(ctx context.Context, cfg DockerConfig) doctor.Engine {
	e := doctor.Engine{Address: cmp.Or(cfg.Host, os.Getenv("DOCKER_HOST"), "unix:///var/run/docker.sock")}
	if path, ok := strings.CutPrefix(e.Address, "unix://"); ok && errors.Is(unix.Access(path, unix.W_OK), unix.EACCES) {
		e.Problem, e.Denied = unix.EACCES.Error(), true
		return e
	}
	engine, err := docker.New(cfg, slog.New(slog.DiscardHandler))
	if err == nil {
		defer engine.Close()
		e.Features, err = engine.Features(ctx)
	}
	if err != nil {
		e.Problem = err.Error()
	}
	return e
}
