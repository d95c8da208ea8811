package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/server"
	wire "github.com/podkeeper/podkeeper/server/stream"
)

func (c *cli) forwardCommand(l *location) *cobra.Command {
	var namespace string
	var addresses []string
	cmd := &cobra.Command{
		Use:   "port-forward POD [LOCAL:]REMOTE...",
		Short: "Listen on ports here that are ports of a pod",
		Long: `Listen on ports of this machine and connect whoever comes to ports of a pod, until it
is interrupted. What listens on the pod's loopback device only can be reached, too.

REMOTE is a number or the name of a port of a container. Without LOCAL it is the same
number here; ":REMOTE" takes one that is free.`,
		Example: `  podkeeper port-forward web 8080:80
  podkeeper port-forward db :5432 -n shop
  podkeeper port-forward web http --address 0.0.0.0`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return usage(cmd.CommandPath(), errors.New("want the name of one pod, and ports"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			_, p, err := c.theOne(cmd.Context(), *l, namespace, args[0])
			if err != nil {
				return err
			}
			var ports []portPair
			for _, arg := range args[1:] {
				pair, err := parsePorts(p.Pod, arg)
				if err != nil {
					return usage(cmd.CommandPath(), err)
				}
				ports = append(ports, pair)
			}
			return c.forward(cmd.Context(), *l, target{pod: p.Pod}, addresses, ports)
		},
	}
	namespaceFlags(cmd, &namespace)
	cmd.Flags().StringSliceVar(&addresses, "address", []string{"localhost"}, "listen on these `ADDRESSES` of this machine")
	cmd.ValidArgsFunction = c.completePods(l, &namespace, false)
	return cmd
}

// portPair is a port here, 0 for any, and one of the pod.
type portPair struct{ local, remote uint16 }

// parsePorts reads "[LOCAL:]REMOTE", of which REMOTE may be a name in the pod.
func parsePorts(p *v1.Pod, text string) (portPair, error) {
	local, remote, both := strings.Cut(text, ":")
	if !both {
		local, remote = "", text
	}
	to, err := portNumber(remote)
	if err != nil {
		if to = portNamed(p, remote); to == 0 {
			return portPair{}, fmt.Errorf("port %q: want [LOCAL:]REMOTE, of numbers from 1 to 65535 or the name of a container's port", text)
		}
	}
	switch {
	case !both:
		return portPair{to, to}, nil
	case local == "":
		return portPair{0, to}, nil
	}
	from, err := portNumber(local)
	if err != nil && local != "0" {
		return portPair{}, fmt.Errorf("port %q: want a number from 1 to 65535 before the colon", text)
	}
	return portPair{from, to}, nil
}

func portNumber(text string) (uint16, error) {
	n, err := strconv.ParseUint(text, 10, 16)
	if err == nil && n == 0 {
		err = strconv.ErrRange
	}
	return uint16(n), err
}

func portNamed(p *v1.Pod, name string) uint16 {
	for _, list := range [][]v1.Container{p.Spec.Containers, p.Spec.InitContainers} {
		for _, container := range list {
			for _, port := range container.Ports {
				if port.Name == name && name != "" {
					return uint16(port.ContainerPort)
				}
			}
		}
	}
	return 0
}

// forward listens on all ports, or none, until ctx ends.
func (c *cli) forward(ctx context.Context, l location, where target, addresses []string, ports []portPair) error {
	ctx, cancel := context.WithCancel(ctx)
	var serving sync.WaitGroup
	defer serving.Wait()
	defer cancel()
	remotes := map[net.Listener]uint16{}
	for _, address := range addresses {
		for _, port := range ports {
			opened, err := listenHere(ctx, address, port.local)
			if err != nil {
				return err
			}
			for _, l := range opened {
				context.AfterFunc(ctx, func() { l.Close() })
				remotes[l] = port.remote
				c.out.printf("Forwarding from %s -> %d\n", l.Addr(), port.remote)
			}
		}
	}
	failed, out := make(chan error, len(remotes)), c.screen()
	for listener, remote := range remotes {
		serving.Go(func() { failed <- c.accept(ctx, l, where, listener, remote, out) })
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case err := <-failed:
		return err
	}
}

// listenHere listens on an address; localhost is that of IPv4, and of IPv6 where the
// machine has it.
func listenHere(ctx context.Context, address string, port uint16) ([]net.Listener, error) {
	var lc net.ListenConfig
	at := func(host string, port int) (net.Listener, error) {
		return lc.Listen(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	}
	if address != "localhost" {
		l, err := at(address, int(port))
		if err != nil {
			return nil, err
		}
		return []net.Listener{l}, nil
	}
	first, err := at("127.0.0.1", int(port))
	if err != nil {
		return nil, err
	}
	if second, err := at("::1", first.Addr().(*net.TCPAddr).Port); err == nil {
		return []net.Listener{first, second}, nil
	}
	return []net.Listener{first}, nil
}

// accept carries whoever comes to a listener to the pod, each over a connection of
// its own, until the listener is closed.
func (c *cli) accept(ctx context.Context, l location, where target, listener net.Listener, remote uint16, out *screen) error {
	var all sync.WaitGroup
	defer all.Wait()
	for {
		local, err := listener.Accept()
		if err != nil {
			return err
		}
		all.Go(func() {
			if err := c.carry(ctx, l, where, local, remote); err != nil && !errors.Is(err, context.Canceled) {
				_ = out.line(oneLine(fmt.Sprintf("podkeeper: connection to port %d: %v", remote, err)))
			}
		})
	}
}

func (c *cli) carry(ctx context.Context, l location, where target, local net.Conn, remote uint16) error {
	conn, err := server.NewClient(l.socket).Upgrade(ctx, where.path("portForward"), nil, wire.ForwardHeader())
	if err != nil {
		local.Close()
		return err
	}
	return wire.Carry(ctx, conn, local, remote)
}
