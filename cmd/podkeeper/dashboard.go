package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/server"
	"github.com/podkeeper/podkeeper/server/dashboard"
)

func (c *cli) dashboardCommand(l *location) *cobra.Command {
	var address string
	var port uint16
	var allowActions bool
	cmd := &cobra.Command{
		Use:   "dashboard",
		Short: "Serve a page about the pods to a browser on this machine",
		Long: `Serve a page about the pods to a browser on this machine, until it is told to end
(SIGINT, SIGTERM): their states and what they use, logs that follow, events, sources
and what is wrong with them, the node.

It prints a link, which lets one browser in, once. Another link takes another call of
the command. The page only shows, unless --allow-actions is given; it never shows values
of variables, nor what is in Secrets and ConfigMaps. What containers write is shown as
they write it.

It is served on loopback only. From another machine, forward the same port by ssh:

  ssh -L 8010:127.0.0.1:8010 root@machine podkeeper dashboard --port 8010`,
		Example: `  podkeeper dashboard
  podkeeper dashboard --port 8010 --allow-actions`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			at, err := netip.ParseAddr(address)
			if err != nil || !at.IsLoopback() || at.Zone() != "" {
				return usage(cmd.CommandPath(), fmt.Errorf("--address %q: want an address of the loopback, such as 127.0.0.1 or ::1", address))
			}
			return c.serveDashboard(cmd.Context(), *l, netip.AddrPortFrom(at.Unmap(), port), allowActions)
		},
	}
	cmd.Flags().StringVar(&address, "address", "127.0.0.1", "`ADDRESS` to serve on, one of the loopback")
	cmd.Flags().Uint16Var(&port, "port", 0, "`PORT` to serve on; 0 takes a free one")
	cmd.Flags().BoolVar(&allowActions, "allow-actions", false, "let the page restart, stop and start pods, too")
	return cmd
}

func (c *cli) serveDashboard(ctx context.Context, l location, at netip.AddrPort, allowActions bool) error {
	// An agent that goes away later is waited for; one that was never there is
	// most likely another one than is meant.
	if _, err := c.ask(ctx, l); err != nil {
		return err
	}
	var listen net.ListenConfig
	listener, err := listen.Listen(ctx, "tcp", at.String())
	if err != nil {
		return fmt.Errorf("dashboard: %w", err)
	}
	at = netip.AddrPortFrom(at.Addr(), uint16(listener.Addr().(*net.TCPAddr).Port))
	handler, token := dashboard.New(at, dashboardAnswers(server.NewClient(l.socket), allowActions))
	// In the fragment the token is sent to nobody, and is in no log or Referer.
	c.out.printf("http://%s/#%s\n", at, token)
	c.err.printf("Open this link in a browser; it works once. Ctrl-C ends the dashboard.\n")
	return server.Serve(ctx, listener, handler, slog.New(slog.NewTextHandler(c.err, &slog.HandlerOptions{Level: slog.LevelWarn})))
}

// dashboardAnswers asks the agent through its socket.
func dashboardAnswers(agent *server.Client, allowActions bool) dashboard.Answers {
	a := dashboard.Answers{
		State: agent.State, Events: agent.Events, Node: agent.Node,
		Usage: func(ctx context.Context) (*stats.Summary, error) {
			body, err := agent.Get(ctx, "/stats/summary", nil)
			if err != nil {
				return nil, err
			}
			defer body.Close()
			var found stats.Summary
			if err := json.NewDecoder(body).Decode(&found); err != nil {
				return nil, fmt.Errorf("agent's answer: %w", err)
			}
			return &found, nil
		},
		Log: func(ctx context.Context, at pod.Key, container string, how dashboard.LogOptions) (io.ReadCloser, error) {
			log, err := agent.Log(ctx, at, container, logQuery(how))
			return log.Text, err
		},
		Line: dashboardLine, Actions: []string{"restart", "stop", "start"},
	}
	if allowActions {
		a.Act = func(ctx context.Context, at pod.Key, action string) error {
			ctx, cancel := context.WithTimeout(ctx, answerWithin)
			defer cancel()
			switch action {
			case "restart":
				return agent.Restart(ctx, at, "")
			case "stop":
				return agent.Stop(ctx, at)
			case "start":
				return agent.Start(ctx, at)
			default:
				return errors.New("no such action: " + action)
			}
		}
	}
	return a
}

// logQuery asks for a log and for what is still to come; a previous attempt writes
// nothing any more.
func logQuery(how dashboard.LogOptions) url.Values {
	query := url.Values{"tailLines": {strconv.Itoa(how.Tail)}}
	if how.Previous {
		query.Set("previous", "true")
	} else {
		query.Set("follow", "true")
	}
	if how.Timestamps {
		query.Set("timestamps", "true")
	}
	return query
}

// dashboardLine is what get pods says of a pod.
func dashboardLine(p server.Pod) dashboard.Line {
	line := dashboard.Line{Status: podWord(p), Ready: readiness(p.Pod)}
	line.Tone = map[tint]dashboard.Tone{good: dashboard.Good, busy: dashboard.Busy, bad: dashboard.Bad, faint: dashboard.Faint}[wordTint(line.Status)]
	for _, s := range beside(p.Pod) {
		line.Restarts += int(s.RestartCount)
	}
	return line
}
