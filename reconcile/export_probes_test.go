package reconcile

import "github.com/podkeeper/podkeeper/reconcile/probe"

func (p ProbeState) Fold(r probe.Report) ProbeState { return p.fold(r) }
