package manual

import (
	"flag"
	"strings"
)

// Options returns the options of a command line that package flag parses, in the order of their names. What is in others depends on who
// runs the program, and a page is the same whoever makes it: it says that in place of the default, or nothing.
func Options(f *flag.FlagSet, others map[string]string) (terms []Term) {
	f.VisitAll(func(f *flag.Flag) {
		value, text := flag.UnquoteUsage(f)
		otherwise, there := others[f.Name]
		if !there && f.DefValue != "false" {
			otherwise = f.DefValue
		}
		if otherwise != "" {
			text += " (default: " + otherwise + ")"
		}
		terms = append(terms, Term{Name: strings.TrimSpace("-" + f.Name + " " + value), Text: text})
	})
	return terms
}
