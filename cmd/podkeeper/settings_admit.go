package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"

	"github.com/podkeeper/podkeeper/agent"
)

// admitSettings are the flags about which pods the node lets in.
type admitSettings struct {
	maxPods    int64
	nodeLabels []string
}

func (a *admitSettings) flags(f *pflag.FlagSet) {
	f.Int64Var(&a.maxPods, "max-pods", 110, "how many pods may run at a time; 0 is no limit")
	f.StringSliceVar(&a.nodeLabels, "node-labels", nil, "`LABELS` key=value that pods choose nodes by, besides kubernetes.io/hostname, os and arch")
}

// admission returns what the flags say; check takes what is wrong with one.
func (a *admitSettings) admission(check func(flag string, err error)) agent.Admission {
	if a.maxPods < 0 {
		check("max-pods", fmt.Errorf("%d: want 0 or more", a.maxPods))
	}
	out := agent.Admission{MaxPods: a.maxPods}
	for _, text := range a.nodeLabels {
		name, value, ok := strings.Cut(text, "=")
		if !ok {
			check("node-labels", fmt.Errorf("%q: want key=value", text))
			continue
		}
		if wrong := append(utilvalidation.IsQualifiedName(name), utilvalidation.IsValidLabelValue(value)...); len(wrong) > 0 {
			check("node-labels", fmt.Errorf("%q: %w", text, errors.New(wrong[0])))
		}
		if out.Labels == nil {
			out.Labels = make(map[string]string)
		}
		out.Labels[name] = value
	}
	return out
}
