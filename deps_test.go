package podkeeper_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/podkeeper/podkeeper"

// rules is testdata/deps.txt.
type rules struct {
	layers  [][]string          // top folders, from the top down
	allowed map[string][]string // package to what it may import of ours
	sibling map[string][]string // package to the children of others that it may import
	tests   []string            // packages that only tests use
	only    map[string][]string // library to the few packages that may import it
	pure    [][]string          // file pattern and, perhaps, function pattern
}

func readRules(t *testing.T) rules {
	t.Helper()
	data, err := os.ReadFile("testdata/deps.txt")
	if err != nil {
		t.Fatal(err)
	}
	r := rules{allowed: map[string][]string{}, sibling: map[string][]string{}, only: map[string][]string{}}
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, rest, ok := strings.Cut(line, ":")
		words := strings.Fields(rest)
		switch {
		case !ok:
			t.Fatalf("deps.txt: %q is no rule", line)
		case name == "layers":
			for layer := range strings.SplitSeq(rest, ">") {
				r.layers = append(r.layers, strings.Fields(layer))
			}
		case name == "sibling" && len(words) == 2:
			r.sibling[words[0]] = append(r.sibling[words[0]], words[1])
		case name == "test":
			r.tests = words
		case name == "only" && len(words) > 1:
			r.only[words[0]] = words[1:]
		case name == "pure" && len(words) > 0:
			r.pure = append(r.pure, words)
		case r.allowed[name] != nil:
			t.Errorf("deps.txt: %s has two lines", name)
		default:
			r.allowed[name] = append([]string{}, words...)
		}
	}
	return r
}

// goPackage is what `go list` says of one, its tests left out.
type goPackage struct {
	ImportPath string
	GoFiles    []string
	Imports    []string
}

func listPackages(t *testing.T) map[string]goPackage {
	t.Helper()
	out, err := exec.Command("go", "list", "-e", "-json=ImportPath,GoFiles,Imports", "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	packages := map[string]goPackage{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goPackage
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatalf("go list: %v", err)
		}
		if name, ours := strings.CutPrefix(p.ImportPath, module+"/"); ours && len(p.GoFiles) > 0 {
			packages[name] = p
		}
	}
}

func TestDepsAreAllowed(t *testing.T) {
	r := readRules(t)
	packages := listPackages(t)
	if len(packages) == 0 {
		t.Fatal("go list finds no packages")
	}
	for name, p := range packages {
		test := slices.Contains(r.tests, name)
		allowed, known := r.allowed[name]
		if !known && !test {
			t.Errorf("package %s has no line in testdata/deps.txt", name)
			continue
		}
		for _, imported := range p.Imports {
			if ours, ok := strings.CutPrefix(imported, module+"/"); ok && !test && !slices.Contains(allowed, ours) {
				t.Errorf("%s imports %s: testdata/deps.txt has no such arrow", name, ours)
			}
			for library, owners := range r.only {
				if (imported == library || strings.HasPrefix(imported, library+"/")) && !slices.Contains(owners, name) && !test {
					t.Errorf("%s imports %s: only %s may", name, imported, strings.Join(owners, " and "))
				}
			}
		}
	}
}

// The lines of the file must themselves obey the architecture, so that a new
// arrow which breaks it cannot be waved through by one more word.
func TestDepsFileObeysTheLayers(t *testing.T) {
	r := readRules(t)
	layer := func(name string) int {
		top, _, _ := strings.Cut(name, "/")
		return slices.IndexFunc(r.layers, func(tops []string) bool { return slices.Contains(tops, top) })
	}
	for from, arrows := range r.allowed {
		if layer(from) < 0 {
			t.Errorf("%s is in no layer", from)
		}
		for _, to := range arrows {
			fromTop, _, _ := strings.Cut(from, "/")
			toTop, child, _ := strings.Cut(to, "/")
			_, known := r.allowed[to]
			switch {
			case !known:
				t.Errorf("%s -> %s: the latter has no line of its own", from, to)
			case slices.Contains(r.tests, to):
				t.Errorf("%s -> %s: only tests may import that", from, to)
			case fromTop != toTop && layer(from) >= layer(to):
				t.Errorf("%s -> %s points up or sideways", from, to)
			case fromTop != toTop && child != "" && toTop != "node" && from != "agent" && !slices.Contains(r.sibling[from], to):
				t.Errorf("%s -> %s reaches into another package's child", from, to)
			case fromTop == toTop && from != fromTop && child != "" && !slices.Contains(r.sibling[from], to):
				t.Errorf("%s -> %s joins two children of one parent", from, to)
			}
		}
	}
}

// impure are packages through which code acts, waits or finds out; and of
// package time, from which its types are wanted, the functions that do.
var (
	impure = []string{
		"context", "crypto/rand", "io", "io/fs", "log", "log/slog", "math/rand", "math/rand/v2",
		"net", "os", "os/exec", "path/filepath", "runtime", "sync", "syscall", "testing",
	}
	clock = []string{"After", "AfterFunc", "NewTicker", "NewTimer", "Now", "Since", "Sleep", "Tick", "Until"}
)

func isImpure(imported string) bool {
	return slices.Contains(impure, imported) || strings.HasPrefix(imported, "net/") && imported != "net/netip" ||
		strings.HasPrefix(imported, "os/") || strings.HasPrefix(imported, "sync/") || strings.HasPrefix(imported, "golang.org/x/sys/")
}

func TestDepsOfPureCode(t *testing.T) {
	for _, rule := range readRules(t).pure {
		files, err := filepath.Glob(rule[0])
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			fset := token.NewFileSet()
			parsed, err := parser.ParseFile(fset, file, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Errorf("parse: %v", err)
				continue
			}
			imports := importNames(parsed)
			if len(rule) == 1 {
				found++
				for _, imported := range imports {
					if isImpure(imported) {
						t.Errorf("%s imports %s, but is to decide only", file, imported)
					}
				}
				checkPure(t, fset, parsed, imports)
				continue
			}
			for _, d := range parsed.Decls {
				f, ok := d.(*ast.FuncDecl)
				if !ok {
					continue
				}
				if match, err := path.Match(rule[1], f.Name.Name); err != nil {
					t.Fatal(err)
				} else if match {
					found++
					checkPure(t, fset, f, imports)
				}
			}
		}
		// A package that is not written yet breaks no rule; one without the file
		// that the rule names has outgrown the rule.
		if _, err := os.Stat(filepath.Dir(rule[0])); err == nil && found == 0 {
			t.Errorf("deps.txt: nothing matches %q any more", strings.Join(rule, " "))
		}
	}
}

// importNames maps the name under which a file knows a package to its path.
func importNames(f *ast.File) map[string]string {
	names := map[string]string{}
	for _, i := range f.Imports {
		imported, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			continue // the parser has checked it
		}
		name := path.Base(imported)
		if i.Name != nil {
			name = i.Name.Name
		}
		names[name] = imported
	}
	return names
}

// checkPure reports what below the node acts, waits, or asks the clock.
func checkPure(t *testing.T, fset *token.FileSet, node ast.Node, imports map[string]string) {
	t.Helper()
	ast.Inspect(node, func(n ast.Node) bool {
		what := ""
		switch n := n.(type) {
		case *ast.GoStmt:
			what = "starts a goroutine"
		case *ast.ChanType, *ast.SendStmt, *ast.SelectStmt:
			what = "uses a channel"
		case *ast.SelectorExpr:
			name, ok := n.X.(*ast.Ident)
			if !ok {
				break
			}
			imported := imports[name.Name]
			if isImpure(imported) || imported == "time" && slices.Contains(clock, n.Sel.Name) {
				what = "uses " + imported + "." + n.Sel.Name
			}
		}
		if what != "" {
			t.Errorf("%s %s, but is to decide only", fset.Position(n.Pos()), what)
		}
		return true
	})
}
