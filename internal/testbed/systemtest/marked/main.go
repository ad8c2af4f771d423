// Marked runs the tests of whole systems: of the packages below the directory test all, of the others those that begin
// with systemtest.Mark(t). Each package has a go test of its own, and the status is 1 when any failed. Arguments are go test's, such as
// -count=1; -list prints the commands instead.
//
// It runs one package at a time, the small ones first, or with -jobs N, before all else, as many: then those with most tests come first,
// a package's output comes when it ends, and what is marked as systemtest.Alone comes last, one package at a time.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

func main() {
	failed, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "marked:", err)
		os.Exit(2)
	}
	if len(failed) > 0 {
		fmt.Println("FAIL:", strings.Join(failed, " "))
		os.Exit(1)
	}
}

// suite is what is run of one package.
type suite struct {
	Package string
	Tests   []string // nil: all
	Not     []string // but these
	alone   bool
	size    int // its tests
}

func (s suite) args(flags []string) []string {
	args := append([]string{"test"}, flags...)
	if s.Tests != nil {
		args = append(args, "-run", pattern(s.Tests))
	}
	if s.Not != nil {
		args = append(args, "-skip", pattern(s.Not))
	}
	return append(args, s.Package)
}

func pattern(tests []string) string { return "^(" + strings.Join(tests, "|") + ")$" }

// apart takes the tests that need the machine for themselves out of a suite.
func (s suite) apart(alone []string) []suite {
	if len(alone) == 0 {
		return []suite{s}
	}
	last := suite{Package: s.Package, Tests: alone, alone: true, size: len(alone)}
	if s.size -= len(alone); s.size == 0 {
		return []suite{last}
	}
	if s.Tests == nil {
		s.Not = alone
	} else {
		s.Tests = slices.DeleteFunc(slices.Clone(s.Tests), func(name string) bool { return slices.Contains(alone, name) })
	}
	return []suite{s, last}
}

func run(flags []string) (failed []string, err error) {
	jobs := 1
	if len(flags) > 1 && flags[0] == "-jobs" {
		if jobs, err = strconv.Atoi(flags[1]); err != nil || jobs < 1 || jobs > 64 {
			return nil, fmt.Errorf("-jobs is %q; allowed: 1 to 64", flags[1])
		}
		flags = flags[2:]
	}
	suites, err := find(goTool(), jobs > 1)
	if err != nil {
		return nil, err
	}
	if slices.Contains(flags, "-list") {
		for _, s := range suites {
			fmt.Println(strings.Join(s.args(nil), " "))
		}
		return nil, nil
	}
	return runAll(suites, jobs, func(s suite, out io.Writer) error {
		c := exec.Command(goTool(), s.args(flags)...)
		c.Stdout, c.Stderr = out, out
		return c.Run()
	})
}

// goTool returns the program that make was told to use, or go.
func goTool() string {
	if g := os.Getenv("GO"); g != "" {
		return g
	}
	return "go"
}

// listed is what go list tells of a package.
type listed struct {
	Dir, ImportPath           string
	TestGoFiles, XTestGoFiles []string
	Module                    struct{ Path string }
}

// find returns the suites of the module in the current directory, as the current system would build them: apart, with those apart that
// need the machine for themselves.
func find(tool string, apart bool) (suites []suite, err error) {
	c := exec.Command(tool, "list", "-json=Dir,ImportPath,TestGoFiles,XTestGoFiles,Module", "./...")
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	var below []suite
	for d := json.NewDecoder(out); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		files := append(p.TestGoFiles, p.XTestGoFiles...)
		if len(files) == 0 {
			continue
		}
		m, err := marks(p.Dir, files)
		if err != nil {
			return nil, err
		}
		if !apart {
			m.alone = nil
		}
		if strings.HasPrefix(p.ImportPath, p.Module.Path+"/test/") {
			below = append(below, suite{Package: p.ImportPath, size: m.tests}.apart(m.alone)...)
		} else if len(m.names) > 0 {
			suites = append(suites, suite{Package: p.ImportPath, Tests: m.names, size: len(m.names)}.apart(m.alone)...)
		}
	}
	return append(suites, below...), c.Wait()
}

// marked is what the files of a package say.
type marked struct {
	names []string // the tests that begin with a mark
	alone []string // those of them that need the machine for themselves
	tests int      // all
}

// marks returns what the files say. A mark anywhere else than at the beginning of a test is an error.
func marks(dir string, files []string) (m marked, err error) {
	for _, f := range files {
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, filepath.Join(dir, f), nil, 0)
		if err != nil {
			return m, err
		}
		first := map[ast.Node]bool{}
		for _, d := range parsed.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv != nil || !strings.HasPrefix(fn.Name.Name, "Test") {
				continue
			}
			m.tests++
			if mark := markOf(fn.Body); mark != nil {
				first[mark.Fun] = true
				m.names = append(m.names, fn.Name.Name)
				if slices.ContainsFunc(mark.Args, isAlone) {
					m.alone = append(m.alone, fn.Name.Name)
				}
			}
		}
		for n := range ast.Preorder(parsed) {
			if isMark(n) && !first[n] {
				return m, fmt.Errorf("%v: systemtest.Mark belongs into the first statement of a test, where it is found",
					set.Position(n.Pos()))
			}
		}
	}
	return m, nil
}

// markOf returns the mark that a test begins with, or nil.
func markOf(body *ast.BlockStmt) *ast.CallExpr {
	if body == nil || len(body.List) == 0 {
		return nil
	}
	s, ok := body.List[0].(*ast.ExprStmt)
	if !ok {
		return nil
	}
	call, ok := s.X.(*ast.CallExpr)
	if !ok || !isMark(call.Fun) {
		return nil
	}
	return call
}

func isMark(n ast.Node) bool { return is(n, "Mark") }

func isAlone(n ast.Expr) bool { return is(n, "Alone") }

// is says whether n is a name of package systemtest.
func is(n ast.Node, name string) bool {
	s, ok := n.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	x, ok := s.X.(*ast.Ident)
	return ok && x.Name == "systemtest" && s.Sel.Name == name
}
