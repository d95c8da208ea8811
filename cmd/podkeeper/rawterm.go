package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/term"

	"github.com/podkeeper/podkeeper/runtime"
)

// errNoTerminal: standard input is none.
var errNoTerminal = errors.New("standard input is no terminal")

// rawTerminal is the terminal of a person, which passes every key on.
type rawTerminal struct {
	// ctx ends with a signal that would end the program, so that it can be put right
	// before.
	ctx context.Context
	// sizes are its sizes, the present one first.
	sizes   <-chan runtime.TerminalSize
	restore func()
}

// openTerminal makes the terminal that in is raw. restore has to be called, in every
// case.
func openTerminal(ctx context.Context, in io.Reader) (*rawTerminal, error) {
	file, ok := in.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return nil, errNoTerminal
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGHUP, syscall.SIGQUIT)
	before, err := term.MakeRaw(int(file.Fd()))
	if err != nil {
		stop()
		return nil, err
	}
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	sizes := make(chan runtime.TerminalSize)
	var following sync.WaitGroup
	following.Go(func() {
		for {
			if width, height, err := term.GetSize(int(file.Fd())); err == nil {
				select {
				case sizes <- runtime.TerminalSize{Width: uint16(width), Height: uint16(height)}:
				case <-ctx.Done():
					return
				}
			}
			select {
			case <-resized:
			case <-ctx.Done():
				return
			}
		}
	})
	return &rawTerminal{ctx: ctx, sizes: sizes, restore: func() {
		stop()
		signal.Stop(resized)
		following.Wait()
		_ = term.Restore(int(file.Fd()), before)
	}}, nil
}
