package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podkeeper/podkeeper/node/stats"
)

const (
	// room is how much more memory may go before the threshold is reached, enough for
	// what the machine does by itself; step is how much is taken at a time.
	room = 512 << 20
	step = 16 << 20
)

// pressure measures from the instant at which too little memory is available until
// the process of the pod that has to go has ended.
func (b *bench) pressure(ctx context.Context) ([]Row, error) {
	var killed sample
	for i := range min(b.opts.n, 5) {
		beside, err := b.beside(fmt.Sprintf("pressure%d", i))
		if err != nil {
			return nil, err
		}
		d, err := beside.pressOnce(ctx, fmt.Sprintf("pressed%d", i))
		beside.clear()
		if err != nil {
			return nil, err
		}
		killed.add(d)
	}
	return []Row{row("memory pressure → first kill", killed, nil, "", "the look is every 10 s where the kernel does not tell")}, nil
}

func (b *bench) pressOnce(ctx context.Context, pod string) (time.Duration, error) {
	available := stats.NewReader(slog.New(slog.DiscardHandler)).Node(stats.Paths{}).Memory.Available
	if available == nil {
		return 0, errors.New("nobody can tell how much memory is available")
	}
	least := *available - room
	a, err := b.startAgent(ctx, "", "--eviction-hard", fmt.Sprintf("memory.available<%d", least))
	if err != nil {
		return 0, err
	}
	defer a.stop()
	if err := b.await(ctx, "the agent is up", ready); err != nil {
		return 0, err
	}
	if _, err := b.bring(ctx, pod, b.plain(pod), stamped(pod, 1)); err != nil {
		return 0, err
	}
	root, err := b.inContainer(ctx, "")
	if err != nil {
		return 0, err
	}
	process := filepath.Dir(root)
	// The kernel was told of the threshold when the agent started, and so much that
	// was used then may be given up by now, or not: it is told again within 10 s.
	if err := wait(ctx, 11*time.Second); err != nil {
		return 0, err
	}
	if _, err := os.Stat(process); err != nil {
		return 0, fmt.Errorf("the machine is too busy: the pod went before any memory was taken: %w", err)
	}
	return pressUntilGone(ctx, process, least)
}

// pressUntilGone takes memory, and returns how long the process was there after less
// than the least was available.
func pressUntilGone(ctx context.Context, process string, least int64) (time.Duration, error) {
	memory, err := unix.Mmap(-1, 0, 2*room, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return 0, fmt.Errorf("take memory: %w", err)
	}
	defer unix.Munmap(memory)
	reader := stats.NewReader(slog.New(slog.DiscardHandler))
	var t0 time.Time
	for at := 0; at < len(memory); at += step {
		for page := at; page < at+step; page += os.Getpagesize() {
			memory[page] = 1
		}
		if t0.IsZero() && *reader.Node(stats.Paths{}).Memory.Available < least {
			t0 = time.Now()
		}
	}
	if t0.IsZero() {
		return 0, errors.New("the machine gave up more memory than was taken")
	}
	for ctx.Err() == nil && time.Since(t0) < time.Minute {
		if _, err := os.Stat(process); err != nil {
			return time.Since(t0), nil
		}
		time.Sleep(time.Millisecond)
	}
	return 0, errors.New("the pod was not ended within a minute")
}
