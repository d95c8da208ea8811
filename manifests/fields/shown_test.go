package fields_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/podkeeper/podkeeper/manifests/fields"
)

// TestWhatIsActedOnIsShown: each field that is acted on names the tests that show
// it, and there are such tests.
func TestWhatIsActedOnIsShown(t *testing.T) {
	named := map[string]string{} // a test, to a field that names it
	for _, leaf := range fields.Leaves() {
		r := fields.Of(leaf)
		if r.Verdict != fields.Acted {
			continue
		}
		if len(r.Tests) == 0 {
			t.Errorf("%s is acted on, and no test shows it", leaf)
		}
	}
	// A rule's own names, also those that no leaf takes from it.
	for _, r := range fields.Table() {
		if len(r.Tests) > 0 && fields.Of(r.Path).Verdict != fields.Acted {
			t.Errorf("%s is not acted on, and names tests", r.Path)
		}
		for _, test := range r.Tests {
			named[test] = r.Path
		}
	}
	known := map[string][]string{}
	for test, field := range named {
		folder, name, _ := strings.Cut(test, ".")
		if known[folder] == nil {
			known[folder] = testsIn(t, folder)
		}
		if !slices.Contains(known[folder], name) {
			t.Errorf("%s names the test %s, which does not exist", field, test)
		}
	}
}

// testsIn returns the names of the tests in a folder, which is named from the top
// of the project.
func testsIn(t *testing.T, folder string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("../..", folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range parsed.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") && f.Type.Params.NumFields() == 1 {
				names = append(names, f.Name.Name)
			}
		}
	}
	return names
}
