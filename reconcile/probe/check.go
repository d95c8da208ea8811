package probe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// maxOutput is how much is read of what a command prints or a server answers.
const maxOutput = 10 << 10

// What a kubelet of the API's version calls itself.
const (
	userAgent = "kube-probe/1.37"
	hookAgent = "kube-lifecycle/1.37"
)

// Execer runs commands in containers.
type Execer interface {
	// Exec runs a command and returns its exit code and the beginning of what it
	// printed to either stream, at most so many bytes. When ctx ends the command is
	// killed and ctx's error returned; no other error wraps that.
	Exec(ctx context.Context, containerID string, command []string, most int) (code int, output []byte, err error)
}

// Checker makes checks. It keeps no connection open.
type Checker struct {
	exec        Execer
	http, http2 http.RoundTripper
}

// NewChecker returns a checker that runs commands through exec.
func NewChecker(exec Execer) *Checker {
	return &Checker{exec: exec, http: transport(false), http2: transport(true)}
}

// Check makes one check; it takes as long as its timeout at most. Where ctx ends
// first the result is void.
func (c *Checker) Check(ctx context.Context, check Check) Result {
	h := check.Handler
	switch {
	case h.Exec != nil:
		return c.execCommand(ctx, check)
	case h.HTTPGet != nil:
		return c.httpGet(ctx, check)
	case h.TCPSocket != nil:
		return tcpSocket(ctx, check)
	case h.GRPC != nil:
		return c.grpcHealth(ctx, check)
	default:
		return Result{Reason: "missing probe handler"}
	}
}

func failed(reason string) Result { return Result{Outcome: Failure, Reason: reason} }

func (c *Checker) execCommand(ctx context.Context, check Check) Result {
	ctx, cancel := context.WithTimeout(ctx, check.Timeout)
	defer cancel()
	command := check.Handler.Exec.Command
	code, output, err := c.exec.Exec(ctx, check.ContainerID, command, maxOutput)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return failed(fmt.Sprintf("command %q timed out after %s", strings.Join(command, " "), check.Timeout))
	case err != nil:
		return Result{Reason: err.Error()}
	case code != 0:
		return Result{Outcome: Failure, Reason: "exit code " + strconv.Itoa(code), Output: string(output)}
	default:
		return Result{Outcome: Success, Output: string(output)}
	}
}

func tcpSocket(ctx context.Context, check Check) Result {
	address, err := address(check, check.Handler.TCPSocket.Host, check.Handler.TCPSocket.Port)
	if err != nil {
		return failed(err.Error())
	}
	dialer := net.Dialer{Timeout: check.Timeout}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return failed(err.Error())
	}
	_ = conn.Close()
	return Result{Outcome: Success}
}

// address returns host and port to connect to; host is the probe's own.
func address(check Check, host string, port intstr.IntOrString) (string, error) {
	number, err := portNumber(port, check.Ports)
	if err != nil {
		return "", err
	}
	if host == "" {
		host = check.Address
	}
	return net.JoinHostPort(host, strconv.Itoa(number)), nil
}

// portNumber returns the number of a port that is given by number, in quotes or
// not, or by its name among those of the container.
func portNumber(port intstr.IntOrString, ports []v1.ContainerPort) (int, error) {
	if port.Type == intstr.Int {
		return port.IntValue(), nil
	}
	for _, p := range ports {
		if p.Name == port.StrVal {
			return int(p.ContainerPort), nil
		}
	}
	number, err := strconv.ParseUint(port.StrVal, 10, 16)
	if err != nil {
		return 0, fmt.Errorf("port %s not found", port.StrVal)
	}
	return int(number), nil
}
