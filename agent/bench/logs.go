package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/server"
)

// logs measures how soon a follower has a line, and how long it takes to read what is
// there, against the engine's own API for the same container.
func (b *bench) logs(ctx context.Context) ([]Row, error) {
	const name, lines = "logs", 400_000
	command := fmt.Sprintf(`[sh, -c, "i=0; while [ $i -lt %d ]; do echo line $i of what a program with middling long lines writes to its log, all day long; i=$((i+1)); done; echo ready >/out/logs; while read x; do echo $x; done <>/out/lines"]`, lines)
	text := strings.Replace(b.manifest(name, 1, ""), "[/b/stamp, /out, logs-c0]", command, 1)
	for _, fifo := range []string{"logs", "lines"} {
		if err := syscall.Mkfifo(b.path("out", fifo), 0o600); err != nil {
			return nil, err
		}
	}
	return b.besideOne(ctx, name, text, func(id string) ([]Row, error) {
		if _, err := os.ReadFile(b.path("out", name)); err != nil { // all is written
			return nil, err
		}
		l := logReader{b: b, key: pod.Key{Namespace: "default", Name: name}, id: id}
		return l.measure(ctx)
	})
}

// logReader reads the log of one container by both ways.
type logReader struct {
	b   *bench
	key pod.Key
	id  string
}

func (l logReader) measure(ctx context.Context) ([]Row, error) {
	var all, allFloor, end, endFloor sample
	// The engine may yet have to write the end of it.
	size := int64(-1)
	for now := int64(0); now != size; {
		size = now
		var err error
		if now, err = l.engine(ctx, "tail=all"); err != nil {
			return nil, err
		}
	}
	for range 5 {
		t0 := time.Now()
		n, err := l.ours(ctx, url.Values{})
		all.add(time.Since(t0))
		t0 = time.Now()
		floor, err2 := l.engine(ctx, "tail=all")
		allFloor.add(time.Since(t0))
		if err != nil || err2 != nil || n != floor {
			return nil, fmt.Errorf("read %d bytes, and %d by the engine: %v, %v", n, floor, err, err2)
		}
	}
	for range l.b.opts.n {
		t0 := time.Now()
		if _, err := l.ours(ctx, url.Values{"tailLines": {"10"}}); err != nil {
			return nil, err
		}
		end.add(time.Since(t0))
		t0 = time.Now()
		if _, err := l.engine(ctx, "tail=10"); err != nil {
			return nil, err
		}
		endFloor.add(time.Since(t0))
	}
	soon, soonFloor, err := l.latency(ctx)
	if err != nil {
		return nil, err
	}
	return []Row{
		row("log line written → shown to a follower", soon, soonFloor, "≤ 2 × floor", "floor: a follower of the engine's API, at the same time"),
		row(fmt.Sprintf("log of %d MB, whole", size>>20), all, allFloor, "≤ 1 × floor", fmt.Sprintf("%.0f MB/s; floor: the engine's API", float64(size)/1e3/all.median())),
		row("log, its last 10 lines", end, endFloor, "≤ 1 × floor", "floor: the engine's API"),
	}, nil
}

// ours reads to the end and returns how much it was.
func (l logReader) ours(ctx context.Context, q url.Values) (int64, error) {
	log, err := server.NewClient(l.b.own("root/podkeeper.sock")).Log(ctx, l.key, "c0", q)
	if err != nil {
		return 0, err
	}
	defer log.Text.Close()
	return io.Copy(io.Discard, log.Text)
}

// engine does so by the engine's API, without what that puts around each line.
func (l logReader) engine(ctx context.Context, query string) (size int64, err error) {
	body, err := l.open(ctx, query)
	if err != nil {
		return 0, err
	}
	defer body.Close()
	for r := bufio.NewReaderSize(body, 64<<10); ; {
		n, err := frame(r)
		if err == io.EOF {
			return size, nil
		}
		if err != nil {
			return 0, err
		}
		size += n
	}
}

func (l logReader) open(ctx context.Context, query string) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://engine/v1.41/containers/"+l.id+"/logs?stdout=1&stderr=1&"+query, nil)
	if err != nil {
		return nil, err
	}
	resp, err := l.b.engine.http.Do(req)
	if err != nil {
		return nil, err
	}
	return resp.Body, nil
}

// frame reads one of the engine's frames.
func frame(r *bufio.Reader) (int64, error) {
	var head [8]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, err
	}
	n := int64(binary.BigEndian.Uint32(head[4:]))
	_, err := r.Discard(int(n))
	return n, err
}

// latency writes lines and waits until both followers have each.
func (l logReader) latency(ctx context.Context) (ours, engine sample, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	log, err := server.NewClient(l.b.own("root/podkeeper.sock")).Log(ctx, l.key, "c0", url.Values{"follow": {"true"}, "tailLines": {"0"}})
	if err != nil {
		return nil, nil, err
	}
	defer log.Text.Close()
	body, err := l.open(ctx, "follow=1&tail=0")
	if err != nil {
		return nil, nil, err
	}
	defer body.Close()
	seen, seenByEngine := make(chan time.Time, 1), make(chan time.Time, 1)
	go arrivals(bufio.NewReader(log.Text), seen, func(r *bufio.Reader) error { _, err := r.ReadSlice('\n'); return err })
	go arrivals(bufio.NewReader(body), seenByEngine, func(r *bufio.Reader) error { _, err := frame(r); return err })
	lines, err := os.OpenFile(l.b.path("out", "lines"), os.O_WRONLY, 0)
	if err != nil {
		return nil, nil, err
	}
	defer lines.Close()
	for i := range 10 * l.b.opts.n {
		t0 := time.Now()
		if _, err := fmt.Fprintf(lines, "line %d\n", i); err != nil {
			return nil, nil, err
		}
		for range 2 {
			select {
			case t := <-seen:
				ours.add(t.Sub(t0))
			case t := <-seenByEngine:
				engine.add(t.Sub(t0))
			case <-time.After(10 * time.Second):
				return nil, nil, fmt.Errorf("line %d did not come to both followers: %d and %d did", i, len(ours), len(engine))
			}
		}
	}
	return ours, engine, nil
}

// arrivals tells when each line came. It ends with its connection.
func arrivals(r *bufio.Reader, seen chan<- time.Time, read func(*bufio.Reader) error) {
	for read(r) == nil {
		seen <- time.Now()
	}
}
