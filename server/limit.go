package server

import (
	"fmt"
	"net"
	"sync"
)

// Limit takes no more than n connections of l, which is of TCP, at a time; others
// wait. Unlike what the library's netutil.LimitListener hands out they are TCP connections
// still: whoever takes one over can end one direction, and ask the kernel about it.
func Limit(l net.Listener, n int) net.Listener {
	return &limited{Listener: l, taken: make(chan struct{}, n), closed: make(chan struct{})}
}

type limited struct {
	net.Listener
	taken  chan struct{} // holds one for each connection
	once   sync.Once
	closed chan struct{}
}

func (l *limited) Accept() (net.Conn, error) {
	select {
	case l.taken <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	conn, err := l.Listener.Accept()
	if err != nil {
		<-l.taken
		return nil, err
	}
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		panic(fmt.Sprintf("a %T is no TCP connection", conn))
	}
	return &counted{TCPConn: tcp, taken: l.taken}, nil
}

func (l *limited) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

type counted struct {
	*net.TCPConn
	once  sync.Once
	taken chan struct{}
}

func (c *counted) Close() error {
	err := c.TCPConn.Close()
	c.once.Do(func() { <-c.taken })
	return err
}
