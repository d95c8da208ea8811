package kubeletapi

import (
	"fmt"
	"net/http"
	"net/http/pprof"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// About is the program that answers.
type About struct {
	Version string
	Started time.Time
}

// statusz answers as Kubernetes' components do.
func (a *Answers) statusz(w http.ResponseWriter, _ *http.Request) error {
	up := time.Since(a.About.Started).Truncate(time.Second)
	var paths []string
	for _, rt := range routes(a) {
		path, _, _ := strings.Cut(rt.pattern, "/{")
		if !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	plainText(w)
	_, err := fmt.Fprintf(w, `podkeeper statusz
Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is for debugging purposes only.

Started: %s
Up: %d hr %02d min %02d sec
Go version: %s
Binary version: %s

Paths: %s
`, a.About.Started.UTC().Format(time.UnixDate), int(up.Hours()), int(up.Minutes())%60, int(up.Seconds())%60,
		goruntime.Version(), a.About.Version, strings.Join(paths, " "))
	return err
}

// configz answers with the effective configuration, as a kubelet's.
func (a *Answers) configz(w http.ResponseWriter, _ *http.Request) error {
	return answer(w, map[string]any{"kubeletconfig": a.Config})
}

// maxProfile bounds how long a profile is taken.
const maxProfile = 5 * time.Minute

// profile answers /debug/pprof/. The command line is not told: headers of manifest
// URLs may stand there.
func profile(w http.ResponseWriter, r *http.Request) error {
	if text := r.FormValue("seconds"); text != "" {
		seconds, err := strconv.ParseFloat(text, 64)
		if err != nil || !(seconds > 0 && seconds <= maxProfile.Seconds()) {
			return Wrong(ErrBadRequest, fmt.Sprintf("seconds: want a number up to %d", int(maxProfile.Seconds())))
		}
	}
	switch r.PathValue("profile") {
	case "cmdline":
		return Wrong(ErrNotFound, "the command line is not told")
	case "profile":
		pprof.Profile(w, r)
	case "symbol":
		pprof.Symbol(w, r)
	case "trace":
		pprof.Trace(w, r)
	default:
		pprof.Index(w, r)
	}
	return nil
}

// disabled is what is answered in place of what reads or acts in containers where that
// is off.
func disabled(http.ResponseWriter, *http.Request) error {
	return Wrong(ErrDisabled, "Debug endpoints are disabled.")
}

// debugging reports whether a route is among those that enableDebuggingHandlers of a
// kubelet turns off.
func debugging(pattern string) bool {
	first, _, _ := strings.Cut(strings.TrimPrefix(pattern, "/"), "/")
	return slices.Contains([]string{"run", "exec", "attach", "portForward", "containerLogs", "runningpods", "logs", "debug"}, first)
}
