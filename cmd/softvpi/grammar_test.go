package main

import (
	"bytes"
	"testing"

	"github.com/softvpi/softvpi/internal/tools/tool"
)

// TestGrammar_OfACommand: the parser of a command alone says the same about it as that of all commands: in its help, about a flag that
// does not exist, and about a command below it that does not.
func TestGrammar_OfACommand(t *testing.T) {
	all, err := newParser(tool.Env{}, &cli{})
	if err != nil {
		t.Fatal(err)
	}
	said := func(grammar any, args ...string) (text, names string) {
		var out bytes.Buffer
		p, err := newParser(tool.Env{Stdout: &out, Stderr: &out}, grammar)
		if err != nil {
			t.Fatal(err)
		}
		func() {
			defer func() {
				if x := recover(); x != nil {
					if _, ok := x.(exit); !ok {
						panic(x)
					}
				}
			}()
			_, err = p.Parse(args)
		}()
		if err == nil { // or help was printed
			return out.String(), ""
		}
		return out.String() + err.Error(), allowed(p, err)
	}
	for _, c := range all.Model.Children {
		g := grammar(c.Name)
		if _, ok := g.(*cli); ok {
			t.Errorf("%s is not found among the commands", c.Name)
		}
		for _, args := range [][]string{{c.Name, "--help"}, {c.Name, "--no-such-flag"}, {c.Name, "no-such-word", "twice", "thrice"}, {c.Name}} {
			text, names := said(&cli{}, args...)
			if alone, its := said(g, args...); alone != text || its != names {
				t.Errorf("%q: alone\n%s\n%s\nwith all\n%s\n%s", args, alone, its, text, names)
			}
		}
	}
	for _, word := range []string{"", "--help", "no-such-command", "VF"} {
		if _, ok := grammar(word).(*cli); !ok {
			t.Errorf("%q is taken for a command", word)
		}
	}
}
