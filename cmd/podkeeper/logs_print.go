package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/server"
)

// print writes one log after the other; those that are followed, beside each other.
func (g *logsOf) print(ctx context.Context, list []logged, q url.Values) error {
	out := &lines{out: g.out}
	if !g.several {
		_, err := g.copy(ctx, out, list[0], q)
		return askError(g.location, err)
	}
	together, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, len(list))
	var all sync.WaitGroup
	for i, l := range list {
		if !g.follow || g.previous { // what has ended has no next
			_, errs[i] = g.copy(together, out, l, q)
			continue
		}
		all.Go(func() {
			if errs[i] = g.followOn(together, out, l, q); errs[i] != nil && !refused(errs[i]) {
				cancel() // the agent or the output is gone for the others, too
			}
		})
	}
	all.Wait()
	failed := false
	for i, err := range errs {
		switch {
		case refused(err):
			failed = true
			g.complain(fmt.Errorf("pod/%s: %w", oneLine(list[i].pod.Name), err), "")
		case err != nil && (ctx.Err() != nil || !errors.Is(err, context.Canceled)):
			return askError(g.location, err)
		}
	}
	if failed {
		return codeError(exitFailed)
	}
	return nil
}

// refused reports whether the agent has no such log.
func refused(err error) bool {
	_, ok := errors.AsType[*server.StatusError](err)
	return ok
}

// copy writes one log to its end, and says whose it was.
func (g *logsOf) copy(ctx context.Context, out *lines, l logged, q url.Values) (containerID string, err error) {
	log, err := server.NewClient(g.socket).Log(ctx, l.pod, l.container, q)
	if err != nil {
		return "", err
	}
	defer log.Text.Close()
	prefix := ""
	if g.prefix {
		prefix = l.prefix
	}
	if g.several || g.prefix {
		err = out.copy(log.Text, prefix)
	} else {
		_, err = io.Copy(g.out, log.Text)
	}
	if err != nil && ctx.Err() == nil && g.out.failed == nil {
		err = &failure{
			code: exitNoAgent, err: fmt.Errorf("the log of pod/%s broke off: the agent ended, or the engine has stopped answering it", oneLine(l.pod.Name)),
			hint: "The pod goes on without it; once the agent is back, --since or --since-time shows what was written meanwhile.",
		}
	}
	return log.ContainerID, err
}

// followOn writes the log of each attempt that there will be, until the pod is over
// or gone. One that waits to start is waited for.
func (g *logsOf) followOn(ctx context.Context, out *lines, l logged, q url.Values) error {
	for seen := ""; ; {
		id, err := g.copy(ctx, out, l, q)
		no, waiting := errors.AsType[*server.StatusError](err)
		switch {
		case waiting && no.Code == http.StatusBadRequest:
			out.mu.Lock()
			g.err.printf("pod/%s: %s\n", oneLine(l.pod.Name), oneLine(no.Message))
			out.mu.Unlock()
		case err != nil:
			return err
		default:
			seen = id
			q = maps.Clone(q) // of what is new, all
			for _, name := range []string{"tailLines", "sinceSeconds", "sinceTime"} {
				q.Del(name)
			}
		}
		next, err := g.another(ctx, l, seen)
		if next.ContainerID == "" || err != nil {
			return err
		}
		if missed := next.LastTerminationState.Terminated; seen != "" && missed != nil && missed.ContainerID != seen && missed.ContainerID != next.ContainerID {
			before := maps.Clone(q)
			before.Set("previous", "true")
			before.Del("follow")
			if _, err := g.copy(ctx, out, l, before); err != nil && !refused(err) { // or it is gone by now
				return err
			}
		}
		seen = next.ContainerID
	}
}

// another waits for an attempt of the container that is not the one seen, and
// returns its status; zero where there will be none.
func (g *logsOf) another(ctx context.Context, l logged, seen string) (next v1.ContainerStatus, err error) {
	err = follow(ctx, g.cli, g.location, askState, func(s server.State) (bool, error) {
		i := slices.IndexFunc(s.Pods, func(p server.Pod) bool { return p.Pod != nil && keyOf(p) == l.pod })
		if i < 0 {
			return true, nil
		}
		p := s.Pods[i].Pod
		for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
			if c.Name == l.container && c.ContainerID != "" && c.ContainerID != seen {
				next = c
			}
		}
		over := p.Status.Phase == v1.PodSucceeded || p.Status.Phase == v1.PodFailed
		return next.ContainerID != "" || over, nil
	})
	return next, err
}

// lines keeps the lines of several logs apart.
type lines struct {
	mu  sync.Mutex
	out *stream
}

// maxPrinted is how much of a line is written in one piece.
const maxPrinted = 1 << 20

// copy writes whole lines, each behind the prefix.
func (l *lines) copy(from io.Reader, prefix string) error {
	r := bufio.NewReaderSize(from, maxPrinted)
	for begin := true; ; {
		text, err := r.ReadSlice('\n')
		if len(text) > 0 {
			if failed := l.write(prefix, text, begin, errors.Is(err, io.EOF)); failed != nil {
				return failed
			}
			begin = text[len(text)-1] == '\n'
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil && !errors.Is(err, bufio.ErrBufferFull):
			return err
		}
	}
}

// write writes a line, or the beginning or the rest of one.
func (l *lines) write(prefix string, text []byte, begin, last bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var whole []byte
	if begin {
		whole = append(whole, prefix...)
	}
	whole = append(whole, text...)
	if last {
		whole = append(whole, '\n') // what comes behind it is another's
	}
	_, err := l.out.Write(whole)
	return err
}
