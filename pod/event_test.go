package pod_test

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podkeeper/podkeeper/pod"
)

func TestAnEventIsOneLineOfTheLog(t *testing.T) {
	for name, c := range map[string]struct {
		event pod.Event
		want  string
	}{
		"of a container": {
			pod.Event{
				Type: pod.EventWarning, Reason: pod.OOMKilling, Pod: pod.Key{Namespace: "default", Name: "web-node"},
				UID: "u1", Container: "app", Message: "out of memory: killed process 12 (stress)",
			},
			`level=WARN msg="out of memory: killed process 12 (stress)" reason=OOMKilling pod=default/web-node uid=u1 container=app` + "\n",
		},
		"of the node": {
			pod.Event{Type: pod.EventNormal, Reason: pod.Evicted, Message: "it is over"},
			"level=INFO msg=\"it is over\" reason=Evicted\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			pod.LogEvents(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
				if a.Key == slog.TimeKey {
					return slog.Attr{}
				}
				return a
			}})))(c.event)
			if diff := cmp.Diff(c.want, out.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}
