package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/server"
	"github.com/podkeeper/podkeeper/server/events"
)

// EventConfig says how many events are kept: see events.Config. Its Node is set
// from the agent's.
type EventConfig = events.Config

// record keeps an event. Whoever hands it over has written its line in the log.
func (p *parts) record(e pod.Event) {
	p.counters.Event(e)
	p.events.Record(e, time.Now())
}

// say keeps an event, and writes it to the log.
func (p *parts) say(e pod.Event) {
	pod.LogEvents(p.log)(e)
	p.record(e)
}

// bootFile has the boot id of the machine when the agent ran last.
const bootFile = "boot_id"

// sayStart tells that the agent starts, and that the machine did since it ran last. boot
// is the machine's boot id, "" where it tells none.
func (p *parts) sayStart(boot string) {
	p.say(pod.Event{Type: pod.EventNormal, Reason: pod.Starting, Message: strings.TrimSpace("Starting podkeeper " + p.cfg.Version)})
	was, err := p.dir.ReadFile(bootFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		p.log.Warn("whether the machine was started anew is not known", "err", err)
		return
	}
	if boot == "" || boot == string(was) {
		return
	}
	if len(was) > 0 {
		p.say(pod.Event{Type: pod.EventWarning, Reason: pod.Rebooted, Message: fmt.Sprintf("Node %s has been rebooted, boot id: %s", p.cfg.NodeName, boot)})
	}
	if err := p.dir.WriteFile(bootFile, []byte(boot)); err != nil {
		p.log.Warn("a start of the machine will be told of once more", "err", err)
	}
}

// sayCondition tells what the node has come to, in the kubelet's words: "DiskPressure"
// begins as NodeHasDiskPressure, and ends as NodeHasNoDiskPressure. why has the numbers; ""
// where it is not short.
func (p *parts) sayCondition(c pod.Cause, why string) {
	reasons := map[pod.Cause][2]string{
		pod.MemoryPressure: {"NodeHasSufficientMemory", "NodeHasInsufficientMemory"},
		pod.DiskPressure:   {"NodeHasNoDiskPressure", "NodeHasDiskPressure"},
		pod.PIDPressure:    {"NodeHasSufficientPID", "NodeHasInsufficientPID"},
	}[c]
	reason, numbers := reasons[0], ""
	if why != "" {
		reason, numbers = reasons[1], ": "+why
	}
	p.record(pod.Event{Type: pod.EventNormal, Reason: reason, Message: fmt.Sprintf("Node %s status is now: %s%s", p.cfg.NodeName, reason, numbers)})
}

// happened answers clients: see server.Answers.
func (p *parts) happened(ctx context.Context, after uint64) (server.Events, error) {
	items, revision, err := p.events.List(ctx, after, time.Now)
	return server.Events{Revision: revision, Items: items}, err
}
