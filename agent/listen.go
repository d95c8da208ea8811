package agent

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/podkeeper/podkeeper/agent/doctor"
	"github.com/podkeeper/podkeeper/server"
	"github.com/podkeeper/podkeeper/server/kubeletapi"
)

// APIConfig is how others than the command line come to the agent. Its zero value
// lets nobody.
type APIConfig struct {
	// Port is that of the kubelet API over TLS, at Address; 0 is none. Where nobody has
	// credentials it is on the loopback device alone.
	Address string
	Port    int
	Callers Callers
	// TLSCert and TLSKey are files; "" is a certificate of the agent's own making.
	TLSCert, TLSKey string
	// ReadOnlyPort is on the loopback device: plain HTTP, for everybody. 0 is none.
	ReadOnlyPort int
	// HealthzPort serves /healthz alone, at HealthzAddress; 0 is none.
	HealthzAddress string
	HealthzPort    int
	// NoDebugging leaves out of the ports what acts on containers or reads in them,
	// NoLogFolder the machine's log folder; Profiling adds profiles of the agent.
	NoDebugging, NoLogFolder, Profiling bool
	// StreamIdle is how long a stream may be silent; 0 is 4 hours. Streams is how many
	// requests may hold their connection at once; 0 is 1000.
	StreamIdle time.Duration
	Streams    int
	// SocketGroup may use the local socket, too; 0 is none.
	SocketGroup int
	// Effective is the configuration as a KubeletConfiguration, without secrets; nil
	// tells none.
	Effective map[string]any
}

// Callers says who may come to the secure port.
type Callers = server.Callers

// Bounds that hold where nothing else was set.
const (
	defaultStreams    = 1000
	defaultStreamIdle = 4 * time.Hour
	// others is how many connections a port takes beside those of streams.
	others = 256
)

// complete fills in what is 0.
func (a APIConfig) complete() APIConfig {
	a.Streams = cmp.Or(a.Streams, defaultStreams)
	a.StreamIdle = cmp.Or(a.StreamIdle, defaultStreamIdle)
	a.Address = cmp.Or(a.Address, "127.0.0.1")
	a.HealthzAddress = cmp.Or(a.HealthzAddress, "127.0.0.1")
	return a
}

// face is one way in.
type face struct {
	listener net.Listener
	handler  http.Handler
}

// serve opens all ways in, or none, and has the group serve them.
func (p *parts) serve(ctx context.Context, group *errgroup.Group) error {
	faces, err := p.faces()
	if err != nil {
		for _, f := range faces {
			err = errors.Join(err, f.listener.Close())
		}
		return err
	}
	for _, f := range faces {
		group.Go(func() error { return server.Serve(ctx, f.listener, f.handler, p.log) })
	}
	return nil
}

// faces are the ways in that are configured, those that were opened also with an error.
func (p *parts) faces() (list []face, err error) {
	api, log := p.cfg.API, p.log
	// Who holds all streams of the ports does not keep root from the socket.
	answers, streams, ofSocket := p.kubelet(), kubeletapi.NewStreams(api.Streams), kubeletapi.NewStreams(api.Streams)
	if p.cfg.Socket != "" {
		l, err := server.Listen(p.cfg.Socket, api.SocketGroup)
		if err != nil {
			return list, err
		}
		list = append(list, face{l, server.Handler(server.Answers{
			State: p.state, Events: p.happened, Restart: p.restart, Stop: p.stop, Start: p.start, Inventory: p.inventory(),
			Kubelet: kubeletapi.Handler(answers, ofSocket, kubeletapi.Everybody(kubeletapi.Full), log),
		})})
	}
	answers.NoDebugging = api.NoDebugging
	open := func(what, address string, port int, h http.Handler, secure *tls.Config) error {
		l, err := listen(what, address, port, api.Streams+others)
		if err != nil {
			return err
		}
		log.Info("listening", "for", what, "address", l.Addr().String())
		if secure != nil {
			l = tls.NewListener(l, secure)
		}
		list = append(list, face{l, h})
		return nil
	}
	if api.Port != 0 {
		secure, who, err := p.secure()
		if err != nil {
			return list, err
		}
		if err := open("the kubelet API", api.secureAddress(log), api.Port, kubeletapi.Handler(answers, streams, who, log), secure); err != nil {
			return list, err
		}
	}
	if api.ReadOnlyPort != 0 {
		h := kubeletapi.Handler(answers, streams, kubeletapi.AnybodyHere(p.cfg.NodeName), log)
		if err := open("the read-only port", loopbackFor(api.Address), api.ReadOnlyPort, h, nil); err != nil {
			return list, err
		}
	}
	if api.HealthzPort != 0 {
		err = open("healthz", api.HealthzAddress, api.HealthzPort, kubeletapi.Healthz(answers, log), nil)
	}
	return list, err
}

// secure returns how the secure port speaks, and to whom.
func (p *parts) secure() (*tls.Config, kubeletapi.Who, error) {
	api := p.cfg.API
	who, err := api.Callers.Who(p.log)
	if err != nil {
		return nil, nil, err
	}
	names := append([]string{p.cfg.NodeName, "localhost", "127.0.0.1", "::1"}, p.cfg.NodeIPs...)
	secure, err := server.Certificate{File: api.TLSCert, Key: api.TLSKey, Store: p.dir, Names: names}.TLS(api.Callers.ClientCA != "", p.log)
	return secure, who, err
}

// secureAddress is where the secure port listens.
func (a APIConfig) secureAddress(log *slog.Logger) string {
	loopback := loopbackFor(a.Address)
	if !a.Callers.None() || a.Address == loopback {
		return a.Address
	}
	log.Info("the kubelet API is on the loopback device only: nobody has credentials for it; give --client-ca-file or --token-auth-file", "instead", a.Address)
	return loopback
}

// loopbackFor returns the loopback address of an address's family; one that is of the
// loopback device itself is left as it is.
func loopbackFor(address string) string {
	switch ip, err := netip.ParseAddr(address); {
	case err == nil && ip.IsLoopback():
		return address
	case err == nil && ip.Is6() && !ip.Is4In6():
		return "::1"
	default:
		return "127.0.0.1"
	}
}

// listen opens a port. An error says who has it, where the machine tells.
func listen(what, address string, port, connections int) (net.Listener, error) {
	at := net.JoinHostPort(address, strconv.Itoa(port))
	// A client that is sent nothing and has vanished is found out within a minute.
	c := net.ListenConfig{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 15 * time.Second, Count: 3}}
	l, err := c.Listen(context.Background(), "tcp", at)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("port %d for %s: in use by %s", port, what, doctor.Holder(port))
	case err != nil:
		return nil, fmt.Errorf("port for %s: %w", what, err)
	}
	return server.Limit(l, connections), nil
}
