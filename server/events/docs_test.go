package events_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	quoted   = regexp.MustCompile("`([^`]+)`")
	constant = regexp.MustCompile(`(?m)^\s+\w+\s+=\s"([A-Z]\w+)"`)
	function = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
)

// docs/events.md has every reason of an event once, and the tests that it names are there.
func TestDocs(t *testing.T) {
	root := "../.."
	var documented []string
	named := make(map[string][]string)
	for line := range strings.Lines(read(t, root+"/docs/events.md")) {
		cells := strings.Split(line, "|")
		if len(cells) != 7 || !strings.Contains(cells[1], "`") {
			continue
		}
		for _, m := range quoted.FindAllStringSubmatch(cells[1], -1) {
			documented = append(documented, m[1])
		}
		tests := quoted.FindAllStringSubmatch(cells[5], -1)
		if len(tests) == 0 {
			t.Errorf("no test shows %s", cells[1])
		}
		for _, m := range tests {
			named[m[1]] = append(named[m[1]], cells[1])
		}
	}
	if sorted := slices.Sorted(slices.Values(documented)); len(slices.Compact(sorted)) != len(documented) {
		t.Errorf("a reason is there twice: %q", sorted)
	}
	for _, file := range []string{"pod/event.go", "reconcile/events.go"} {
		found := constant.FindAllStringSubmatch(read(t, root+"/"+file), -1)
		if len(found) < 10 {
			t.Fatalf("only %d reasons were found in %s", len(found), file)
		}
		for _, m := range found {
			if !slices.Contains(documented, m[1]) {
				t.Errorf("%s has the reason %s, and docs/events.md has not", file, m[1])
			}
		}
	}
	there := make(map[string]bool)
	for _, folder := range []string{"agent", "reconcile", "gc"} {
		files, err := filepath.Glob(root + "/" + folder + "/*_test.go")
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			for _, m := range function.FindAllStringSubmatch(read(t, file), -1) {
				there[m[1]] = true
			}
		}
	}
	for test, reasons := range named {
		if !there[test] {
			t.Errorf("%s is to show %q, and is not there", test, reasons)
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
