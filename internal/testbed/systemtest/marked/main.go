// Marked runs the tests of whole systems: of the packages below the directory test all, of the others those that begin
// with systemtest.Mark(t). It runs one package at a time, the small ones first, each by a go test of its own, and ends with
// status 1 when any failed. Arguments are go test's, such as -count=1; -list prints the commands instead.
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
}

func (s suite) args(flags []string) []string {
	args := append([]string{"test"}, flags...)
	if s.Tests != nil {
		args = append(args, "-run", "^("+strings.Join(s.Tests, "|")+")$")
	}
	return append(args, s.Package)
}

func run(flags []string) (failed []string, err error) {
	suites, err := find(goTool())
	if err != nil {
		return nil, err
	}
	list := slices.Contains(flags, "-list")
	for _, s := range suites {
		if list {
			fmt.Println(strings.Join(s.args(nil), " "))
			continue
		}
		c := exec.Command(goTool(), s.args(flags)...)
		c.Stdout, c.Stderr = os.Stdout, os.Stderr
		if err := c.Run(); err != nil {
			if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) {
				return nil, err
			}
			failed = append(failed, s.Package)
		}
	}
	return failed, nil
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

// find returns the suites of the module in the current directory, as the current system would build them.
func find(tool string) (suites []suite, err error) {
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
		if strings.HasPrefix(p.ImportPath, p.Module.Path+"/test/") {
			below = append(below, suite{Package: p.ImportPath})
			continue
		}
		tests, err := marks(p.Dir, files)
		if err != nil {
			return nil, err
		}
		if len(tests) > 0 {
			suites = append(suites, suite{p.ImportPath, tests})
		}
	}
	return append(suites, below...), c.Wait()
}

// marks returns the names of the tests in the files that begin with a mark. A mark anywhere else is an error.
func marks(dir string, files []string) (names []string, err error) {
	for _, f := range files {
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, filepath.Join(dir, f), nil, 0)
		if err != nil {
			return nil, err
		}
		first := map[ast.Node]bool{}
		for _, d := range parsed.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv != nil || !strings.HasPrefix(fn.Name.Name, "Test") {
				continue
			}
			if mark := markOf(fn.Body); mark != nil {
				first[mark] = true
				names = append(names, fn.Name.Name)
			}
		}
		for n := range ast.Preorder(parsed) {
			if isMark(n) && !first[n] {
				return nil, fmt.Errorf("%v: systemtest.Mark belongs into the first statement of a test, where it is found",
					set.Position(n.Pos()))
			}
		}
	}
	return names, nil
}

// markOf returns the mark that a test begins with, or nil.
func markOf(body *ast.BlockStmt) ast.Node {
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
	return call.Fun
}

func isMark(n ast.Node) bool {
	s, ok := n.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	x, ok := s.X.(*ast.Ident)
	return ok && x.Name == "systemtest" && s.Sel.Name == "Mark"
}
