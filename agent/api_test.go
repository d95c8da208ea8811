package agent_test

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/agent"
	"github.com/podkeeper/podkeeper/server"
)

// fetch asks a port of the agent.
func fetch(t *testing.T, url, token string) (code int, body string) {
	t.Helper()
	// Whose certificate it is does not matter here.
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return resp.StatusCode, string(data)
}

func port(t *testing.T) int {
	t.Helper()
	n, err := strconv.Atoi(freePort(t))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// All faces tell of a pod the same that get does; values that stand in its manifest
// only to those who have credentials.
func TestPodsOnAllPorts(t *testing.T) {
	w := newWorld(t)
	tokens := w.path("tokens")
	if err := os.WriteFile(tokens, fmt.Appendf(nil, "sha256:%x me read-only\n", sha256.Sum256([]byte("token"))), 0o600); err != nil {
		t.Fatal(err)
	}
	w.cfg.API = agent.APIConfig{
		Address: "127.0.0.1", Port: port(t), Callers: agent.Callers{Tokens: tokens}, ReadOnlyPort: port(t), HealthzPort: port(t),
	}
	secure := fmt.Sprintf("https://127.0.0.1:%d", w.cfg.API.Port)
	plain := fmt.Sprintf("http://127.0.0.1:%d", w.cfg.API.ReadOnlyPort)
	health := fmt.Sprintf("http://127.0.0.1:%d", w.cfg.API.HealthzPort)
	w.start()
	w.write("web.yaml", manifest("{name: web}", sleeping("app", "env: [{name: PASSWORD, value: hunter2}]")))
	state := w.await("the pod runs", func(s server.State) bool {
		return len(s.Pods) == 1 && s.Pods[0].Pod.Status.Phase == v1.PodRunning && s.Pods[0].Settled() &&
			s.Pods[0].Pod.Status.ContainerStatuses[0].ImageID != "" // the engine was asked how it came up
	})
	want := *state.Pods[0].Pod
	podsOf := func(url, token string) v1.Pod {
		t.Helper()
		var list v1.PodList
		code, body := fetch(t, url, token)
		if err := json.Unmarshal([]byte(body), &list); err != nil || code != http.StatusOK || len(list.Items) != 1 {
			t.Fatalf("%s: %d %s", url, code, body)
		}
		return list.Items[0]
	}
	if d := cmp.Diff(want, podsOf(secure+"/pods", "token")); d != "" {
		t.Errorf("with a token (-want +got):\n%s", d)
	}
	masked := want.DeepCopy()
	masked.Spec.Containers[0].Env[0].Value = "***"
	if d := cmp.Diff(*masked, podsOf(plain+"/pods", "")); d != "" {
		t.Errorf("on the read-only port (-want +got):\n%s", d)
	}
	if got := podsOf(secure+"/runningpods/", "token"); got.Name != "web-node" || got.UID != want.UID || len(got.Spec.Containers) != 1 || got.Spec.Containers[0].Name != "app" {
		t.Errorf("running: %+v", got)
	}
	for url, code := range map[string]int{
		secure + "/pods": 401, secure + "/healthz": 401, secure + "/debug/pprof/": 401, plain + "/runningpods/": 403, plain + "/logs/": 403,
		plain + "/healthz": 200, health + "/healthz": 200, health + "/healthz/syncloop": 200, health + "/pods": 404,
	} {
		if got, body := fetch(t, url, ""); got != code {
			t.Errorf("%s: %d %s, want %d", url, got, body, code)
		}
	}
	// Another agent finds a port in use, says by whom, and does not start.
	other := newWorldOn(t, w.engine)
	other.cfg.API.ReadOnlyPort = w.cfg.API.ReadOnlyPort
	err := agent.Run(context.Background(), other.cfg, other.log)
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("port %d for the read-only port: in use by ", other.cfg.API.ReadOnlyPort)) || !strings.Contains(err.Error(), fmt.Sprint(os.Getpid())) {
		t.Errorf("a second agent: %v", err)
	}
	w.stop()
	for _, url := range []string{secure, plain, health} {
		if code, body := fetch(t, url+"/healthz", ""); code != 0 {
			t.Errorf("%s answers after the end: %d %s", url, code, body)
		}
	}
}
