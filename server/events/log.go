package events

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podkeeper/podkeeper/pod"
)

// Config is what a log is made with. Zero values are usable but for Node.
type Config struct {
	// Node is the name of the node.
	Node string
	// TTL is how long an event is kept after it happened last; 0 is an hour.
	TTL time.Duration
	// Max is how many are kept; 0 is 1000. The one that happened least lately goes.
	Max int
}

// Of what is alike but for its message so many are kept as they are within
// similarWithin; those after them are one event, which says the newest message.
// The numbers are those of client-go's event correlator.
const (
	similarMax    = 10
	similarWithin = 10 * time.Minute
)

// Log has the events. It may be used from several goroutines.
type Log struct {
	cfg Config

	mu       sync.Mutex
	events   []*entry      // the one that happened least lately first
	revision uint64        // from 1
	made     uint64        // names are numbered
	changed  chan struct{} // closed with each event
}

// entry is one event that happened once or more.
type entry struct {
	pod.Event
	combined    bool // messages differ; the event has the newest
	number      uint64
	count       int32
	first, last time.Time
	revision    uint64 // of the log when it happened last
}

// New returns an empty log.
func New(cfg Config) *Log {
	cfg.TTL = cmp.Or(cfg.TTL, time.Hour)
	cfg.Max = cmp.Or(cfg.Max, 1000)
	return &Log{cfg: cfg, revision: 1, changed: make(chan struct{})}
}

// Record notes that e happened at now.
func (l *Log) Record(e pod.Event, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.revision++
	i := l.find(e, now)
	var happened *entry
	if i < 0 {
		l.made++
		happened = &entry{Event: e, number: l.made, first: now, combined: l.similar(e, now) >= similarMax}
	} else {
		happened = l.events[i]
		l.events = slices.Delete(l.events, i, i+1)
	}
	happened.Message = e.Message
	happened.count++
	happened.last, happened.revision = now, l.revision
	l.events = append(l.events, happened)
	l.forget(now)
	close(l.changed)
	l.changed = make(chan struct{})
}

// find returns the event that e is another occurrence of, -1 where there is none.
func (l *Log) find(e pod.Event, now time.Time) int {
	return slices.IndexFunc(l.events, func(o *entry) bool {
		same := e
		if o.combined {
			same.Message = o.Message
		}
		return o.Event == same && (!o.combined || now.Sub(o.last) < similarWithin)
	})
}

// similar counts the events that differ from e in nothing but the message.
func (l *Log) similar(e pod.Event, now time.Time) (n int) {
	for _, o := range l.events {
		like := e
		like.Message = o.Message
		if o.Event == like && now.Sub(o.last) < similarWithin {
			n++
		}
	}
	return n
}

// forget drops what is old, and what is too much.
func (l *Log) forget(now time.Time) {
	l.events = slices.DeleteFunc(l.events, func(o *entry) bool { return now.Sub(o.last) >= l.cfg.TTL })
	if over := len(l.events) - l.cfg.Max; over > 0 {
		l.events = slices.Delete(l.events, 0, over)
	}
}

// List returns the events that happened after a revision, in order, and the
// revision up to which they are; after 0, all there are. Where there are none it
// waits for one, or returns the error of ctx.
func (l *Log) List(ctx context.Context, after uint64, now func() time.Time) ([]v1.Event, uint64, error) {
	for {
		l.mu.Lock()
		l.forget(now())
		list, revision, changed := l.since(after), l.revision, l.changed
		l.mu.Unlock()
		if after == 0 || len(list) > 0 {
			return list, revision, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, revision, ctx.Err()
		}
	}
}

func (l *Log) since(after uint64) []v1.Event {
	list := []v1.Event{}
	for _, o := range l.events {
		if o.revision > after {
			list = append(list, o.object(l.cfg.Node))
		}
	}
	return list
}

// object returns the event as Kubernetes has it.
func (o *entry) object(node string) v1.Event {
	about := v1.ObjectReference{Kind: "Node", Name: node, UID: types.UID(node)}
	if o.Pod != (pod.Key{}) {
		about = v1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: o.Pod.Namespace, Name: o.Pod.Name, UID: o.UID}
		if o.Container != "" {
			about.FieldPath = "spec.containers{" + o.Container + "}"
		}
	}
	message := o.Message
	if o.combined {
		message = "(combined from similar events): " + message
	}
	return v1.Event{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Event"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: cmp.Or(about.Namespace, metav1.NamespaceDefault), Name: fmt.Sprintf("%s.%x", about.Name, o.number),
			ResourceVersion: fmt.Sprint(o.revision), CreationTimestamp: metav1.NewTime(o.first),
		},
		InvolvedObject: about, Type: string(o.Type), Reason: o.Reason, Message: message,
		Source: v1.EventSource{Component: component, Host: node}, ReportingController: component, ReportingInstance: node,
		Count: o.count, FirstTimestamp: metav1.NewTime(o.first), LastTimestamp: metav1.NewTime(o.last),
	}
}

const component = "podkeeper"
