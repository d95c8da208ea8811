package kubeletapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"testing"

	summary "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/podkeeper/podkeeper/server/kubeletapi"
)

func TestSummary(t *testing.T) {
	for name, c := range map[string]struct {
		query string
		err   error
		code  int
		brief bool
	}{
		"all of it":              {"", nil, http.StatusOK, false},
		"processors and memory":  {"?only_cpu_and_memory=true", nil, http.StatusOK, true},
		"explicitly all of it":   {"?only_cpu_and_memory=false", nil, http.StatusOK, false},
		"nonsense":               {"?only_cpu_and_memory=perhaps", nil, http.StatusBadRequest, false},
		"nobody can tell":        {"", errors.New("broken"), http.StatusInternalServerError, false},
		"the agent goes down":    {"", context.Canceled, http.StatusServiceUnavailable, false},
		"an option of no number": {"?other=1", nil, http.StatusOK, false},
	} {
		t.Run(name, func(t *testing.T) {
			var brief bool
			a := kubeletapi.Answers{Summary: func(_ context.Context, b bool) (summary.Summary, error) {
				brief = b
				return summary.Summary{Node: summary.NodeStats{NodeName: "n"}, Pods: []summary.PodStats{}}, c.err
			}}
			code, body := call(t, kubeletapi.ReadOnlyPort, a, http.MethodGet, "/stats/summary"+c.query)
			if code != c.code || brief != c.brief {
				t.Fatalf("%d, brief %t: %s", code, brief, body)
			}
			var got summary.Summary
			if code == http.StatusOK && (json.Unmarshal([]byte(body), &got) != nil || got.Node.NodeName != "n") {
				t.Errorf("it says %s", body)
			}
		})
	}
}
