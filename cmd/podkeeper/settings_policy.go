package main

import (
	"fmt"
	"slices"

	"github.com/spf13/pflag"

	"github.com/podkeeper/podkeeper/agent"
	"github.com/podkeeper/podkeeper/pod"
)

// policySettings are the flags about what pods may have of the machine.
type policySettings struct {
	allowPrivileged bool
	hostNetwork     []string
	hostPID         []string
	hostIPC         []string
	privileged      []string
	hostPath        []string
	sysctls         []string
}

func (p *policySettings) flags(f *pflag.FlagSet) {
	every := []string{string(agent.AnySource)}
	const kinds = "; file, http, api or * for every, \"\" for none"
	f.BoolVar(&p.allowPrivileged, "allow-privileged", true, "let pods have privileged containers")
	f.StringSliceVar(&p.hostNetwork, "host-network-sources", every, "the `SOURCES` whose pods may use the host's network"+kinds)
	f.StringSliceVar(&p.hostPID, "host-pid-sources", every, "the `SOURCES` whose pods may see the host's processes")
	f.StringSliceVar(&p.hostIPC, "host-ipc-sources", every, "the `SOURCES` whose pods may use the host's IPC")
	f.StringSliceVar(&p.privileged, "privileged-sources", every, "the `SOURCES` whose pods may have privileged containers, or capabilities beyond the usual ones")
	f.StringSliceVar(&p.hostPath, "host-path-sources", every, "the `SOURCES` whose pods may mount paths of the host")
	f.StringSliceVar(&p.sysctls, "allowed-unsafe-sysctls", nil, "`SYSCTLS` that pods may set besides the safe ones, such as net.*")
}

// policy returns what the flags say; check takes what is wrong with one.
func (p *policySettings) policy(check func(flag string, err error)) agent.Policy {
	sources := func(flag string, list []string) agent.Sources {
		if slices.Equal(list, []string{string(agent.AnySource)}) {
			return nil
		}
		out := agent.Sources{}
		for _, name := range list {
			kind := pod.SourceKind(name)
			if !slices.Contains([]pod.SourceKind{pod.FileSource, pod.HTTPSource, pod.APISource, agent.AnySource}, kind) {
				check(flag, fmt.Errorf("%q: want file, http, api or *", name))
			}
			out = append(out, kind)
		}
		return out
	}
	y := agent.Policy{
		NoPrivileged: !p.allowPrivileged,
		HostNetwork:  sources("host-network-sources", p.hostNetwork),
		HostPID:      sources("host-pid-sources", p.hostPID),
		HostIPC:      sources("host-ipc-sources", p.hostIPC),
		Privileged:   sources("privileged-sources", p.privileged),
		HostPath:     sources("host-path-sources", p.hostPath),
		Sysctls:      p.sysctls,
	}
	for _, pattern := range p.sysctls {
		if err := y.CheckSysctl(pattern); err != nil {
			check("allowed-unsafe-sysctls", fmt.Errorf("%q: %w", pattern, err))
		}
	}
	return y
}
