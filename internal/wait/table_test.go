package wait

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTable_EveryNumberSaysWhatChoseIt: every row has its measurement.
func TestTable_EveryNumberSaysWhatChoseIt(t *testing.T) {
	check := func(what, measured string) {
		if len(measured) < 40 {
			t.Errorf("%s: what chose its numbers is not said: %q", what, measured)
		}
	}
	for k, r := range table {
		check(fmt.Sprintf("kind %d", k), r.measured)
	}
	for q, r := range pauses {
		check(fmt.Sprintf("question %d", q), r.measured)
	}
	for name, doc := range constants(t) {
		check(name, doc)
	}
}

// TestPackages_YieldAndNapOnlyHere: no other package gives the processor up by itself, so that there is no second policy.
func TestPackages_YieldAndNapOnlyHere(t *testing.T) {
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); name == "wait" || name == "testdata" || strings.HasPrefix(name, ".") && path != root {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		b, err := os.ReadFile(path)
		for _, call := range []string{"runtime.Gosched(", "SYS_SCHED_YIELD", "unix.Nanosleep("} {
			if strings.Contains(string(b), call) {
				t.Errorf("%s: %s: use package wait", path, call)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// constants returns what the comments in table.go say after "Measured:", by the name of the constant. Constants in one
// group without a line of their own between them share the comment before them.
func constants(t *testing.T) map[string]string {
	file, err := parser.ParseFile(token.NewFileSet(), "table.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	list := map[string]string{}
	for _, d := range file.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		_, measured, _ := strings.Cut(g.Doc.Text(), "Measured:")
		for _, s := range g.Specs {
			v := s.(*ast.ValueSpec)
			if v.Doc != nil {
				_, measured, _ = strings.Cut(v.Doc.Text(), "Measured:")
			}
			if len(v.Values) > 0 && !isIota(v.Values[0]) {
				list[v.Names[0].Name] = measured
			}
		}
	}
	if len(list) < 10 {
		t.Fatalf("%d constants in table.go", len(list))
	}
	return list
}

func isIota(e ast.Expr) bool {
	i, ok := e.(*ast.Ident)
	return ok && i.Name == "iota"
}
