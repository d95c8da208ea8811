package server_test

import (
	"net"
	"testing"

	"github.com/podkeeper/podkeeper/server"
)

// One more than the limit waits until another has gone.
func TestLimit(t *testing.T) {
	under, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := server.Limit(under, 1)
	for range 2 {
		client, err := net.Dial("tcp", under.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
	}
	first, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := first.(interface{ CloseWrite() error }); !ok {
		t.Errorf("a %T cannot end one direction", first)
	}
	second := make(chan error, 2)
	accept := func() {
		conn, err := l.Accept()
		if err == nil {
			defer conn.Close()
		}
		second <- err
	}
	go accept()
	select {
	case <-second:
		t.Error("a second one was taken beside the first")
	default:
	}
	first.Close()
	first.Close() // which gives nothing back a second time
	if err := <-second; err != nil {
		t.Error(err)
	}
	go accept()
	l.Close()
	if err := <-second; err == nil {
		t.Error("one was taken after the end")
	}
}
