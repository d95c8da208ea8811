package stream

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// upgrade is a response that hands its connection over watched.
type upgrade struct {
	http.ResponseWriter
	ctx    context.Context
	cancel context.CancelFunc
	conn   *conn // nil until it was handed over
}

// newUpgrade returns a response, and the request, whose context ends when the client
// goes away. end has to be called; it returns when the connection is closed.
func newUpgrade(w http.ResponseWriter, r *http.Request) (u *upgrade, watched *http.Request, end func()) {
	u = &upgrade{ResponseWriter: w}
	u.ctx, u.cancel = context.WithCancel(r.Context())
	return u, r.WithContext(u.ctx), func() {
		if u.conn != nil {
			u.conn.Close()
			u.conn.watch.Wait()
		}
		u.cancel()
	}
}

// Hijack implements http.Hijacker. What is read and written through the buffers is
// watched, too.
func (u *upgrade) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	under, buffers, err := http.NewResponseController(u.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	already, _ := buffers.Reader.Peek(buffers.Reader.Buffered())
	u.conn = newConn(u.ctx, u.cancel, under, already)
	return u.conn, bufio.NewReadWriter(bufio.NewReader(u.conn), bufio.NewWriter(u.conn)), nil
}

// conn is a client's connection. It ends ctx when the client goes away, and ends
// with ctx.
type conn struct {
	net.Conn
	ctx   context.Context
	gone  context.CancelFunc
	watch sync.WaitGroup // what runs beside it

	mu      sync.Mutex
	already []byte // was read before
	close   sync.Once
}

func newConn(ctx context.Context, gone context.CancelFunc, under net.Conn, already []byte) *conn {
	c := &conn{Conn: under, ctx: ctx, gone: gone, already: already}
	c.watch.Go(c.lookAfter)
	return c
}

func (c *conn) Read(b []byte) (int, error) {
	c.mu.Lock()
	if n := copy(b, c.already); n > 0 {
		c.already = c.already[n:]
		c.mu.Unlock()
		return n, nil
	}
	c.mu.Unlock()
	n, err := c.Conn.Read(b)
	if err != nil {
		c.gone()
	}
	return n, err
}

func (c *conn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if err != nil {
		c.gone()
	}
	return n, err
}

// linger is how long the last words may take to arrive.
const linger = time.Second

// Close says goodbye and reads what the client still sends, so that the kernel does
// not throw away, with that, what the client has not read yet. It is all over then.
func (c *conn) Close() error {
	c.close.Do(func() {
		if c.ctx.Err() == nil {
			_ = closeWrite(c.Conn)
			_ = c.Conn.SetReadDeadline(time.Now().Add(linger))
			_, _ = io.Copy(io.Discard, c.Conn)
		}
		c.gone()
		c.Conn.Close()
	})
	return nil
}

func closeWrite(c net.Conn) error {
	if secure, ok := c.(*tls.Conn); ok {
		_ = c.SetWriteDeadline(time.Now().Add(linger))
		return errors.Join(secure.CloseWrite(), closeWrite(secure.NetConn()))
	}
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// lookEvery is how often a connection is looked at that nobody reads from, because
// what is read goes nowhere at the moment.
const lookEvery = 2 * time.Second

// lookAfter closes the connection when ctx ends, and ends ctx when the client has
// gone, which one who does not read would not be told.
func (c *conn) lookAfter() {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-c.ctx.Done():
			c.Conn.Close()
			return
		case <-tick.C:
			if hungUp(c.Conn) || vanished(c.Conn, silence) {
				c.gone()
			}
		}
	}
}

// hungUp reports whether the other side has closed its end.
func hungUp(c net.Conn) bool {
	gone := false
	failed := ask(c, func(fd int) {
		of := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
		n, err := unix.Poll(of, 0)
		gone = err == nil && n == 1 && of[0].Revents&(unix.POLLRDHUP|unix.POLLHUP|unix.POLLERR) != 0
	})
	return gone || failed != nil
}

// A client of whom nothing is heard for silence, and who did not answer inVain questions of
// the kernel in a row, has vanished.
const (
	silence = 30 * time.Second
	inVain  = 3
)

// vanished reports whether the other side answers no more, after that time. The kernel does
// ask: whether a full window is open again, or with what was sent before. It would go on for a
// quarter of an hour or more, and does not send keep-alives meanwhile. Nor would
// TCP_USER_TIMEOUT do: that also ends those who answer and do not read for a while.
func vanished(c net.Conn, after time.Duration) bool {
	gone := false
	_ = ask(c, func(fd int) {
		info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
		gone = err == nil && info.Probes+info.Retransmits >= inVain && time.Duration(info.Last_ack_recv)*time.Millisecond >= after
	})
	return gone
}

// ask has f ask the kernel about a connection, which it must not keep. The error is that
// it is closed; of one that is no socket f is not called.
func ask(c net.Conn, f func(fd int)) error {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	socket, ok := c.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return nil
	}
	return raw.Control(func(fd uintptr) { f(int(fd)) })
}
