package probe_test

import (
	"context"
	"crypto/tls"
	"net"
	"net/http/httptest"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/reconcile/probe"
)

// serveGRPC serves on the loopback until the test ends, and returns a check of a
// service there.
func serveGRPC(t *testing.T, s *grpc.Server) func(service string) probe.Check {
	t.Helper()
	l, port := listen(t)
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return func(service string) probe.Check {
		return probe.Check{Address: "127.0.0.1", Handler: v1.ProbeHandler{GRPC: &v1.GRPCAction{Port: int32(port), Service: &service}}}
	}
}

// C096.
func TestGRPC(t *testing.T) {
	services := health.NewServer()
	services.SetServingStatus("liveness", healthv1.HealthCheckResponse_NOT_SERVING)
	services.SetServingStatus("unknown", healthv1.HealthCheckResponse_UNKNOWN)
	s := grpc.NewServer()
	healthv1.RegisterHealthServer(s, services)
	of := serveGRPC(t, s)
	diff(t, "SERVING", check(t, of("")), probe.Result{Outcome: probe.Success})
	failedAs(t, check(t, of("liveness")), `service unhealthy (responded with "NOT_SERVING")`)
	failedAs(t, check(t, of("unknown")), `service unhealthy (responded with "UNKNOWN")`)
	failedAs(t, check(t, of("nope")), "error: health rpc probe failed: rpc error: code = NotFound desc = unknown service")
	nobody := of("")
	nobody.Handler.GRPC.Port = int32(closed(t))
	failedAs(t, check(t, nobody), "error: failed to connect service at", "connection refused")
	nobody.Handler.GRPC.Service = nil
	failedAs(t, check(t, nobody), "connection refused")
}

func TestGRPCWithoutTheHealthService(t *testing.T) {
	of := serveGRPC(t, grpc.NewServer())
	failedAs(t, check(t, of("")), "error: this server does not implement the grpc health protocol (grpc.health.v1.Health): unknown service grpc.health.v1.Health")
}

// healthFunc is a health service of one function.
type healthFunc struct {
	healthv1.UnimplementedHealthServer
	check func(context.Context, *healthv1.HealthCheckRequest) (*healthv1.HealthCheckResponse, error)
}

func (h healthFunc) Check(ctx context.Context, r *healthv1.HealthCheckRequest) (*healthv1.HealthCheckResponse, error) {
	return h.check(ctx, r)
}

func TestGRPCThatHangs(t *testing.T) {
	s := grpc.NewServer()
	healthv1.RegisterHealthServer(s, healthFunc{check: func(ctx context.Context, _ *healthv1.HealthCheckRequest) (*healthv1.HealthCheckResponse, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}})
	c := serveGRPC(t, s)("")
	c.Timeout = 50 * time.Millisecond
	failedAs(t, check(t, c), "timeout: health rpc did not complete within 50ms")
	silent, port := listen(t) // accepts, and says nothing
	defer silent.Close()
	c.Handler.GRPC.Port = int32(port)
	failedAs(t, check(t, c), "timeout: health rpc did not complete within 50ms")
}

func TestGRPCRequest(t *testing.T) {
	var got metadata.MD
	var left time.Duration
	s := grpc.NewServer()
	healthv1.RegisterHealthServer(s, healthFunc{check: func(ctx context.Context, r *healthv1.HealthCheckRequest) (*healthv1.HealthCheckResponse, error) {
		got, _ = metadata.FromIncomingContext(ctx)
		deadline, _ := ctx.Deadline()
		left = time.Until(deadline)
		return nil, status.Errorf(codes.Code(99), "asked for %s: 100%%", r.Service)
	}})
	failedAs(t, check(t, serveGRPC(t, s)("a/b é")), "error: health rpc probe failed: rpc error: code = Code(99) desc = asked for a/b é: 100%")
	diff(t, "user agent", got.Get("user-agent"), []string{"kube-probe/1.37"})
	if left <= 0 || left > 5*time.Second {
		t.Errorf("the server has %s left, of 5 s", left)
	}
}

func TestGRPCOverTLSIsNotVerified(t *testing.T) {
	certificates := httptest.NewUnstartedServer(nil) // for its certificate
	certificates.StartTLS()
	defer certificates.Close()
	s := grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: certificates.TLS.Certificates})))
	healthv1.RegisterHealthServer(s, health.NewServer())
	of := serveGRPC(t, s)
	secure := of("")
	mode := v1.GRPCProbeModeTLS
	secure.Handler.GRPC.Mode = &mode
	diff(t, "TLS", check(t, secure), probe.Result{Outcome: probe.Success})
	if got := check(t, of("")); got.Outcome != probe.Failure {
		t.Errorf("plain text to a server of TLS: %+v", got)
	}
}

func TestGRPCAnswersThatAreNone(t *testing.T) {
	server := httptest.NewServer(nil)
	defer server.Close()
	c := probe.Check{Address: "127.0.0.1", Handler: v1.ProbeHandler{GRPC: &v1.GRPCAction{Port: int32(server.Listener.Addr().(*net.TCPAddr).Port)}}}
	failedAs(t, check(t, c), "error: health rpc probe failed: ")
}

func TestGRPCChecksLeaveNoDescriptor(t *testing.T) {
	s := grpc.NewServer()
	healthv1.RegisterHealthServer(s, health.NewServer())
	c := serveGRPC(t, s)("")
	before := descriptors(t)
	for range 50 {
		diff(t, "result", check(t, c), probe.Result{Outcome: probe.Success})
	}
	settles(t, "descriptors", func() bool { return descriptors(t) <= before+2 })
}
