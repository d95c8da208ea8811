package kubeletapi

import "net/http"

// Access is what a caller may do, and what a route asks for at least. Each level
// may do what those below it may.
type Access int

// The levels. Zero is nobody.
const (
	// ReadOnlyPort is whoever reaches the read-only port: any user of the machine.
	ReadOnlyPort Access = iota + 1
	// ReadOnly is a token or certificate of the read-only role.
	ReadOnly
	// Full may do everything.
	Full
)

// route is one line of the table.
type route struct {
	// methods are taken, HEAD where GET is. Others are 405.
	methods []string
	// pattern is that of a path as http.ServeMux has it, without a slash at its end:
	// it matches with one, too.
	pattern string
	// access is who may at least.
	access Access
	// stream: it may hold its connection for long. It counts against the cap on
	// streams, and has no deadline but its own.
	stream bool
	// handle answers; its error becomes the status and a short message where nothing
	// was written yet.
	handle func(w http.ResponseWriter, r *http.Request) error
}

var (
	get       = []string{http.MethodGet}
	post      = []string{http.MethodPost}
	getOrPost = []string{http.MethodGet, http.MethodPost}
)

// routes is all that there is, but for those whose answer is nil.
func routes(a *Answers) []route {
	list := []route{{get, "/healthz", ReadOnlyPort, false, healthz(a.checks()...)}}
	for _, c := range a.checks() {
		list = append(list, route{get, "/healthz/" + c.name, ReadOnlyPort, false, healthz(c)})
	}
	add := func(there bool, r ...route) {
		if there {
			list = append(list, r...)
		}
	}
	add(a.Pods != nil, route{get, "/pods", ReadOnlyPort, false, a.pods})
	for _, path := range []string{"", "/cadvisor", "/resource", "/probes", "/slis"} {
		add(a.Metrics[path] != nil, route{get, "/metrics" + path, ReadOnlyPort, false, page(a.Metrics[path])})
	}
	add(a.Summary != nil, route{get, "/stats/summary", ReadOnlyPort, false, a.summary})
	add(a.Logs != nil, route{get, "/containerLogs/{namespace}/{pod}/{container}", ReadOnly, true, a.containerLogs})
	add(a.RunningPods != nil, route{get, "/runningpods", ReadOnly, false, a.runningPods})
	add(a.Config != nil, route{get, "/configz", Full, false, a.configz})
	add(!a.About.Started.IsZero(), route{get, "/statusz", Full, false, a.statusz})
	add(a.LogFolder != "", route{get, "/logs/{path...}", Full, true, a.logFolder})
	add(a.Profiling, route{getOrPost, "/debug/pprof/{profile...}", Full, true, profile})
	streamed := func(methods []string, path, rest string, s Streamed) {
		for _, pattern := range []string{path + "/{namespace}/{pod}" + rest, path + "/{namespace}/{pod}/{uid}" + rest} {
			add(s != nil, route{methods, pattern, Full, true, s.serve})
		}
	}
	streamed(getOrPost, "/exec", "/{container}", a.Exec)
	streamed(getOrPost, "/attach", "/{container}", a.Attach)
	streamed(getOrPost, "/portForward", "", a.PortForward)
	streamed(post, "/run", "/{container}", a.Run)
	for i := range list {
		if a.NoDebugging && debugging(list[i].pattern) {
			list[i].handle = disabled
		}
	}
	return list
}

// target reads the names in the path of a request: {namespace}, {pod}, {uid} and
// {container}, as far as the pattern has them.
func target(r *http.Request) Target {
	return Target{Namespace: r.PathValue("namespace"), Pod: r.PathValue("pod"), UID: r.PathValue("uid"), Container: r.PathValue("container")}
}
