package wait

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"
)

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
