package packaging_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// knownMetrics are those that docs/metrics.md names, which a test of the pages holds
// true.
func knownMetrics(t *testing.T) map[string]bool {
	t.Helper()
	data, err := os.ReadFile("../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{"process_resident_memory_bytes": true, "up": true}
	for line := range strings.Lines(string(data)) {
		if name, rest, ok := strings.Cut(strings.TrimPrefix(line, "| `"), "` |"); ok && strings.HasPrefix(line, "| `") {
			known[name] = true
			if strings.HasPrefix(rest, " histogram") {
				known[name+"_bucket"], known[name+"_sum"], known[name+"_count"] = true, true, true
			}
		}
	}
	if len(known) < 60 {
		t.Fatalf("docs/metrics.md names %d metrics only", len(known))
	}
	return known
}

// What is left of an expression without its texts and label sets: a metric has an
// underscore or a colon in its name, as no function of the language that is used does.
var (
	text = regexp.MustCompile(`"[^"]*"`)
	sets = regexp.MustCompile(`\{[^}]*\}|(by|without)\s*\([^)]*\)`)
	name = regexp.MustCompile(`[a-z][a-z0-9]*([_:][a-z0-9_:]+)`)
)

func metricsOf(expr string) []string {
	expr = text.ReplaceAllString(expr, "")
	expr = sets.ReplaceAllString(expr, "")
	expr = strings.NewReplacer("histogram_quantile", "", "label_values", "", "$__rate_interval", "").Replace(expr)
	return name.FindAllString(expr, -1)
}

func check(t *testing.T, known map[string]bool, where, expr string) {
	t.Helper()
	found := metricsOf(expr)
	if len(found) == 0 && !strings.HasPrefix(expr, "up{") {
		t.Errorf("%s: %q has no metric", where, expr)
	}
	for _, m := range found {
		if !known[m] {
			t.Errorf("%s: %q asks for %s, which no page has", where, expr, m)
		}
	}
}

// Every metric that rules ask for is one that the agent gives, or that a rule records.
func TestRulesAskForWhatThereIs(t *testing.T) {
	known := knownMetrics(t)
	data, err := os.ReadFile("prometheus-rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	var rules struct {
		Groups []struct {
			Name  string `json:"name"`
			Rules []struct {
				Record, Alert, Expr string
				Annotations         map[string]string
			} `json:"rules"`
		} `json:"groups"`
	}
	if err := yaml.Unmarshal(data, &rules); err != nil {
		t.Fatal(err)
	}
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			if r.Record != "" {
				known[r.Record] = true
			}
		}
	}
	count := 0
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			count++
			check(t, known, g.Name+"/"+r.Record+r.Alert, r.Expr)
			if r.Alert != "" && r.Annotations["summary"] == "" {
				t.Errorf("%s does not say what is wrong", r.Alert)
			}
		}
	}
	if count < 10 {
		t.Errorf("there are %d rules only", count)
	}
}

func TestDashboardAsksForWhatThereIs(t *testing.T) {
	known := knownMetrics(t)
	data, err := os.ReadFile("grafana-dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			ID      int
			Targets []struct{ Expr string }
		}
		Templating struct {
			List []struct{ Name, Type, Definition string }
		}
	}
	if err := json.Unmarshal(data, &dashboard); err != nil {
		t.Fatal(err)
	}
	ids := make(map[int]bool)
	count := 0
	for _, p := range dashboard.Panels {
		if ids[p.ID] {
			t.Errorf("two panels are number %d", p.ID)
		}
		ids[p.ID] = true
		for _, target := range p.Targets {
			count++
			check(t, known, p.Title, target.Expr)
		}
	}
	for _, v := range dashboard.Templating.List {
		if v.Type == "query" {
			check(t, known, v.Name, v.Definition)
		}
	}
	if count < 20 {
		t.Errorf("there are %d queries only", count)
	}
}

// What does not exist is found: the check is no empty one.
func TestMetricsOf(t *testing.T) {
	for expr, want := range map[string]string{
		`sum by (a_b) (rate(x_total{y_z="p_q"}[5m])) > on (x) y_bytes`: "x_total y_bytes",
		`histogram_quantile(0.9, z_bucket)`:                            "z_bucket",
		`podkeeper:loop:p99 > 1`:                                       "podkeeper:loop:p99",
	} {
		if got := strings.Join(metricsOf(expr), " "); got != want {
			t.Errorf("%q: %q, want %q", expr, got, want)
		}
	}
}

// Prometheus' own judgement, where it is installed.
func TestRulesVerify(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		return
	}
	file, err := filepath.Abs("prometheus-rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(promtool, "check", "rules", file).CombinedOutput(); err != nil {
		t.Errorf("promtool: %v\n%s", err, out)
	}
}
