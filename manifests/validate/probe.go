package validate

import (
	"fmt"
	"slices"
	"strconv"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// restartingProbe is for liveness and startup probes: one success is enough to
// leave the container alone.
func restartingProbe(p *v1.Probe, grace *int64, path *field.Path) field.ErrorList {
	if p == nil {
		return nil
	}
	errs := probe(p, grace, path)
	if p.SuccessThreshold != 1 {
		errs = append(errs, field.Invalid(path.Child("successThreshold"), p.SuccessThreshold, "must be 1"))
	}
	return errs
}

func readinessProbe(p *v1.Probe, grace *int64, path *field.Path) field.ErrorList {
	if p == nil {
		return nil
	}
	errs := probe(p, grace, path)
	if p.TerminationGracePeriodSeconds != nil {
		errs = append(errs, field.Invalid(path.Child("terminationGracePeriodSeconds"), *p.TerminationGracePeriodSeconds,
			"must not be set: a readiness probe terminates nothing"))
	}
	return errs
}

func probe(p *v1.Probe, grace *int64, path *field.Path) field.ErrorList {
	errs := handler(action{Exec: p.Exec, HTTPGet: p.HTTPGet, TCPSocket: p.TCPSocket, GRPC: p.GRPC}, grace, path)
	for _, number := range []struct {
		name  string
		value int32
	}{
		{"initialDelaySeconds", p.InitialDelaySeconds},
		{"timeoutSeconds", p.TimeoutSeconds},
		{"periodSeconds", p.PeriodSeconds},
		{"successThreshold", p.SuccessThreshold},
		{"failureThreshold", p.FailureThreshold},
	} {
		if number.value < 0 {
			errs = append(errs, field.Invalid(path.Child(number.name), number.value, "must not be negative"))
		}
	}
	if seconds := p.TerminationGracePeriodSeconds; seconds != nil && *seconds <= 0 {
		errs = append(errs, field.Invalid(path.Child("terminationGracePeriodSeconds"), *seconds, "must be above 0"))
	}
	return errs
}

func lifecycle(l *v1.Lifecycle, grace *int64, os *v1.PodOS, path *field.Path) field.ErrorList {
	if l == nil {
		return nil
	}
	hook := func(name string, h *v1.LifecycleHandler) field.ErrorList {
		if h == nil {
			return nil
		}
		return handler(action{Exec: h.Exec, HTTPGet: h.HTTPGet, TCPSocket: h.TCPSocket, Sleep: h.Sleep}, grace, path.Child(name))
	}
	return slices.Concat(
		hook("postStart", l.PostStart),
		hook("preStop", l.PreStop),
		stopSignal(l.StopSignal, os, path.Child("stopSignal")),
	)
}

// stopSignal checks the signal against the pod's operating system, which has to
// be named for it.
func stopSignal(signal *v1.Signal, os *v1.PodOS, path *field.Path) field.ErrorList {
	switch {
	case signal == nil:
		return nil
	case os == nil:
		return one(field.Forbidden(path, "needs spec.os.name"))
	case os.Name == v1.Windows:
		return choice(path, *signal, v1.SIGKILL, v1.SIGTERM)
	case os.Name == v1.Linux:
		return choice(path, *signal, linuxSignals()...)
	}
	return nil
}

func linuxSignals() []v1.Signal {
	signals := []v1.Signal{
		v1.SIGABRT, v1.SIGALRM, v1.SIGBUS, v1.SIGCHLD, v1.SIGCLD, v1.SIGCONT, v1.SIGFPE, v1.SIGHUP, v1.SIGILL,
		v1.SIGINT, v1.SIGIO, v1.SIGIOT, v1.SIGKILL, v1.SIGPIPE, v1.SIGPOLL, v1.SIGPROF, v1.SIGPWR, v1.SIGQUIT,
		v1.SIGSEGV, v1.SIGSTKFLT, v1.SIGSTOP, v1.SIGSYS, v1.SIGTERM, v1.SIGTRAP, v1.SIGTSTP, v1.SIGTTIN,
		v1.SIGTTOU, v1.SIGURG, v1.SIGUSR1, v1.SIGUSR2, v1.SIGVTALRM, v1.SIGWINCH, v1.SIGXCPU, v1.SIGXFSZ,
		v1.SIGRTMIN, v1.SIGRTMAX,
	}
	for i := 1; i <= 15; i++ {
		signals = append(signals, v1.Signal(fmt.Sprintf("SIGRTMIN+%d", i)))
	}
	for i := 1; i <= 14; i++ {
		signals = append(signals, v1.Signal(fmt.Sprintf("SIGRTMAX-%d", i)))
	}
	return signals
}

// action is what a probe or a hook does: one of these.
type action struct {
	Exec      *v1.ExecAction
	HTTPGet   *v1.HTTPGetAction
	TCPSocket *v1.TCPSocketAction
	GRPC      *v1.GRPCAction
	Sleep     *v1.SleepAction
}

// handler checks the first action that is set and refuses the others.
func handler(a action, grace *int64, path *field.Path) field.ErrorList {
	return oneOf([]kind{
		{"exec", a.Exec != nil, func(at *field.Path) field.ErrorList { return execAction(a.Exec, at) }},
		{"httpGet", a.HTTPGet != nil, func(at *field.Path) field.ErrorList { return httpGet(a.HTTPGet, at) }},
		{"tcpSocket", a.TCPSocket != nil, func(at *field.Path) field.ErrorList { return port(at.Child("port"), a.TCPSocket.Port) }},
		{"grpc", a.GRPC != nil, func(at *field.Path) field.ErrorList { return grpcAction(a.GRPC, at) }},
		{"sleep", a.Sleep != nil, func(at *field.Path) field.ErrorList { return sleepAction(a.Sleep, grace, at) }},
	}, path, "must say what to do, such as exec or httpGet")
}

func execAction(exec *v1.ExecAction, path *field.Path) field.ErrorList {
	if len(exec.Command) == 0 {
		return one(field.Required(path.Child("command"), "must not be empty"))
	}
	return nil
}

func httpGet(get *v1.HTTPGetAction, path *field.Path) field.ErrorList {
	errs := slices.Concat(
		required(path.Child("path"), get.Path),
		port(path.Child("port"), get.Port),
		choice(path.Child("scheme"), get.Scheme, v1.URISchemeHTTP, v1.URISchemeHTTPS),
		optionalChoice(path.Child("protocol"), get.Protocol, v1.HTTPProtocolHTTP1, v1.HTTPProtocolHTTP2),
	)
	for _, header := range get.HTTPHeaders {
		errs = append(errs, malformed(path.Child("httpHeaders"), header.Name, validation.IsHTTPHeaderName(header.Name))...)
	}
	if get.Protocol != nil && *get.Protocol == v1.HTTPProtocolHTTP2 {
		switch {
		case get.Scheme != v1.URISchemeHTTP:
			errs = append(errs, field.Invalid(path.Child("protocol"), *get.Protocol, "needs scheme HTTP (it is h2c)"))
		case get.Host != "":
			errs = append(errs, field.Invalid(path.Child("host"), get.Host, "must not be set where protocol is HTTP2"))
		}
	}
	return errs
}

// port is the number of a port or the name of one of the container's ports,
// which is looked up when it is used. A number in quotes is a number: it cannot
// be a name, and Kubernetes reads it as a number once it gets past its checks.
func port(path *field.Path, value intstr.IntOrString) field.ErrorList {
	if value.Type == intstr.Int {
		return portNumber(path, value.IntVal)
	}
	number, err := strconv.ParseUint(value.StrVal, 10, 16)
	if err == nil && number > 0 && strconv.FormatUint(number, 10) == value.StrVal {
		return nil
	}
	return malformed(path, value.StrVal, validation.IsValidPortName(value.StrVal))
}

func grpcAction(grpc *v1.GRPCAction, path *field.Path) field.ErrorList {
	return slices.Concat(
		portNumber(path.Child("port"), grpc.Port),
		optionalChoice(path.Child("mode"), grpc.Mode, v1.GRPCProbeModePlaintext, v1.GRPCProbeModeTLS),
	)
}

func sleepAction(sleep *v1.SleepAction, grace *int64, path *field.Path) field.ErrorList {
	if grace == nil || 0 <= sleep.Seconds && sleep.Seconds <= *grace {
		return nil
	}
	return one(field.Invalid(path, sleep.Seconds,
		fmt.Sprintf("must be between 0 and terminationGracePeriodSeconds (%d)", *grace)))
}
