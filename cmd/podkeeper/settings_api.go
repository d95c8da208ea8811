package main

import (
	"errors"
	"fmt"
	"os/user"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"github.com/podkeeper/podkeeper/agent"
)

// apiSettings are the flags about who else comes to the agent, and how.
type apiSettings struct {
	address, healthzAddress           string
	port, readOnlyPort, healthzPort   int
	tlsCert, tlsKey, clientCA, tokens string
	anonymous                         bool
	debugging, systemLogs, profiling  bool
	streamIdle                        time.Duration
	streams                           int
	socketGroup                       string
}

// portFlags have a default with the default root dir alone (law 6).
func (a *apiSettings) portFlags() map[string]*int {
	return map[string]*int{"port": &a.port, "read-only-port": &a.readOnlyPort, "healthz-port": &a.healthzPort}
}

func (a *apiSettings) flags(f *pflag.FlagSet) {
	f.StringVar(&a.address, "address", "0.0.0.0", "the `ADDRESS` of --port; the loopback device's while nobody has credentials (--client-ca-file, --token-auth-file)")
	f.IntVar(&a.port, "port", 10250, "the port of the kubelet API over TLS; 0 is none, as with another root dir")
	f.IntVar(&a.readOnlyPort, "read-only-port", 10255, "the port on the loopback device where all users of the machine may read pods and metrics; 0 is none, as with another root dir")
	f.StringVar(&a.healthzAddress, "healthz-bind-address", "127.0.0.1", "the `ADDRESS` of --healthz-port")
	f.IntVar(&a.healthzPort, "healthz-port", 10248, "the port of /healthz; 0 is none, as with another root dir")
	f.StringVar(&a.tlsCert, "tls-cert-file", "", "`FILE` of the certificate of --port (default one of its own making, kept in the root dir)")
	f.StringVar(&a.tlsKey, "tls-private-key-file", "", "`FILE` of its key")
	f.StringVar(&a.clientCA, "client-ca-file", "", "`FILE` of the certificates that client certificates are checked with")
	f.StringVar(&a.tokens, "token-auth-file", "", "`FILE` of hashes of bearer tokens, a line each: sha256:HEX NAME full|read-only")
	f.BoolVar(&a.anonymous, "anonymous-auth", false, "let those without credentials who come to --port over the loopback device do what --read-only-port lets them")
	f.BoolVar(&a.debugging, "enable-debugging-handlers", true, "serve on --port what acts on containers or reads in them: exec, attach, logs and the like")
	f.BoolVar(&a.systemLogs, "enable-system-log-handler", true, "serve the machine's /var/log on --port, at /logs/")
	f.BoolVar(&a.profiling, "profiling", false, "serve profiles of the agent at /debug/pprof/")
	f.DurationVar(&a.streamIdle, "streaming-connection-idle-timeout", 4*time.Hour, "how long a stream (exec, attach, port-forward) may be silent")
	f.IntVar(&a.streams, "max-streams", 1000, "how many requests may hold their connection at a time, such as exec and logs -f")
	f.StringVar(&a.socketGroup, "socket-group", "", "the `GROUP` that may use the local socket, and so do everything, beside the socket's owner")
}

// api returns what the flags say; check takes what is wrong with one.
func (a *apiSettings) api(l location, given func(flag string) bool, check func(flag string, err error)) agent.APIConfig {
	taken := map[int]string{}
	for _, flag := range sorted(a.portFlags()) {
		port := a.portFlags()[flag]
		if !l.isDefault() && !given(flag) {
			*port = 0
		}
		if *port < 0 || *port > 65535 {
			check(flag, fmt.Errorf("%d: want a port, or 0 for none", *port))
		}
		if other := taken[*port]; *port != 0 && other != "" {
			check(flag, fmt.Errorf("%d: --%s has it", *port, other))
		}
		taken[*port] = flag
	}
	check("address", checkAddresses([]string{a.address}))
	check("healthz-bind-address", checkAddresses([]string{a.healthzAddress}))
	if (a.tlsCert == "") != (a.tlsKey == "") {
		check("tls-cert-file", errors.New("it needs --tls-private-key-file, and that needs it"))
	}
	if a.streamIdle == 0 {
		a.streamIdle = 4 * time.Hour
	}
	cfg := agent.APIConfig{
		Address: a.address, Port: a.port, ReadOnlyPort: a.readOnlyPort, HealthzAddress: a.healthzAddress, HealthzPort: a.healthzPort,
		Callers:     agent.Callers{Anonymous: a.anonymous},
		NoDebugging: !a.debugging, NoLogFolder: !a.systemLogs, Profiling: a.profiling,
		StreamIdle: a.streamIdle, Streams: a.streams,
	}
	for flag, file := range map[string]struct {
		text string
		into *string
	}{
		"tls-cert-file": {a.tlsCert, &cfg.TLSCert}, "tls-private-key-file": {a.tlsKey, &cfg.TLSKey},
		"client-ca-file": {a.clientCA, &cfg.Callers.ClientCA}, "token-auth-file": {a.tokens, &cfg.Callers.Tokens},
	} {
		path, err := absolute(file.text)
		check(flag, err)
		*file.into = path
	}
	check("streaming-connection-idle-timeout", notNegative(a.streamIdle))
	if a.streams < 1 {
		check("max-streams", fmt.Errorf("%d: want 1 or more", a.streams))
	}
	var err error
	cfg.SocketGroup, err = groupID(a.socketGroup)
	check("socket-group", err)
	return cfg
}

// groupID returns the number of a group, which may be given as such; 0 is none.
func groupID(name string) (int, error) {
	if name == "" {
		return 0, nil
	}
	if id, err := strconv.Atoi(name); err == nil && id > 0 {
		return id, nil
	}
	group, err := user.LookupGroup(name)
	if err != nil {
		return 0, fmt.Errorf("%q: there is no such group", name)
	}
	return strconv.Atoi(group.Gid)
}
