// Command stamp is the process that the benchmark starts in its containers. It
// writes the instant at which it runs into a file, another when it is asked to
// end, and another when it is told to fail.
//
//	stamp DIR NAME [PORT AFTER]
//
// writes DIR/NAME, DIR/NAME.term, DIR/NAME.exit. With a port it answers HTTP there
// after a while, and writes DIR/NAME.up when it begins to, DIR/NAME.asked when it is
// asked.
package main

import (
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

func main() {
	now := time.Now()
	// Who reads the stamp may ask it to end at once.
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	file := filepath.Join(os.Args[1], os.Args[2])
	write(file, now)
	if len(os.Args) > 4 {
		go serve(file, os.Args[3], os.Args[4])
	}
	fail := make(chan error)
	go func() {
		// A named pipe, made by the benchmark: opening it waits for the writer.
		pipe, err := os.Open(file + ".fail")
		if err == nil {
			_, err = pipe.Read(make([]byte, 1))
		}
		if err == nil {
			fail <- nil
		}
	}()
	select {
	case <-term:
		write(file+".term", time.Now())
	case <-fail:
		write(file+".exit", time.Now())
		os.Exit(1)
	}
}

// serve answers every request with 200.
func serve(file, port, after string) {
	delay, err := time.ParseDuration(after)
	if err != nil {
		os.Exit(3)
	}
	time.Sleep(delay)
	l, err := net.Listen("tcp", ":"+port)
	if err != nil {
		os.Exit(3)
	}
	write(file+".up", time.Now())
	for {
		conn, err := l.Accept()
		if err != nil {
			os.Exit(3)
		}
		write(file+".asked", time.Now())
		_, _ = conn.Read(make([]byte, 4096))
		_, _ = io.WriteString(conn, "HTTP/1.0 200 OK\r\n\r\n")
		_ = conn.Close()
	}
}

// write puts the stamp in place by rename, so that nobody reads half of it.
func write(file string, at time.Time) {
	temp := file + ".new"
	if err := os.WriteFile(temp, []byte(strconv.FormatInt(at.UnixNano(), 10)), 0o644); err != nil {
		os.Exit(3)
	}
	if err := os.Rename(temp, file); err != nil {
		os.Exit(3)
	}
}
