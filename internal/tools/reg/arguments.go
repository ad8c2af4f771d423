package reg

import (
	"errors"
	"fmt"
	"strings"

	"github.com/softvpi/softvpi/internal/tools/internal/commandline"
)

// arguments are the arguments of an operation.
type arguments struct {
	operation string
	names     []string
	given     map[string]*string // by option; nil if it has no value
}

// own are the options of every operation that reg.exe does not have.
var own = []string{"--adapter=", "--socket=", "--state=", "--unchecked", "--json"}

// parse parses the arguments. spec lists the allowed options: "f" without, "d=" with, "v?" with an
// optional value. Their letter case does not matter, and a dash may replace the slash.
func parse(operation, spec string, args []string) (*arguments, error) {
	syntax := commandline.Syntax{Fold: true, Once: true, Arguments: true, Looks: isMistyped}
	for word := range strings.FieldsSeq(spec) {
		name := bare(word)
		syntax.Options = append(syntax.Options, option(word, "/"+name, "-"+name))
	}
	for _, word := range own {
		syntax.Options = append(syntax.Options, option(word, bare(word)))
	}
	line, err := syntax.Parse(args)
	if err != nil {
		return nil, &syntaxError{operation, refusal(err, spec)}
	}
	a := &arguments{operation: operation, names: line.Arguments, given: map[string]*string{}}
	for _, g := range line.Given {
		name := strings.TrimLeft(g.Option.Names[0], "/-")
		if a.given[name] = nil; g.Has {
			a.given[name] = &g.Value
		}
	}
	return a, a.exclusive()
}

// option returns an option for its word in a spec.
func option(word string, names ...string) commandline.Option {
	o := commandline.Option{Names: names, Optional: strings.HasSuffix(word, "?")}
	if bare(word) != word {
		o.Argument = "a value"
	}
	return o
}

func bare(word string) string { return strings.TrimRight(word, "=?") }

// refusal returns what is wrong with the arguments in the words of reg.exe.
func refusal(err error, spec string) string {
	var wrong *commandline.Error
	errors.As(err, &wrong)
	switch wrong.Kind {
	case commandline.Twice:
		return wrong.Name + " is given twice."
	case commandline.Missing:
		return wrong.Name + " needs a value."
	case commandline.Surplus:
		return wrong.Name + " has no value."
	}
	var allowed []string
	for word := range strings.FieldsSeq(spec) {
		allowed = append(allowed, "/"+bare(word))
	}
	for _, word := range own {
		allowed = append(allowed, bare(word))
	}
	return fmt.Sprintf("%q is not an option; allowed: %s.", wrong.Name, strings.Join(allowed, " "))
}

// isMistyped reports whether an argument that no option has for a name was meant to be one, rather than a name, the
// standard input or the absolute path of a file.
func isMistyped(arg string) bool {
	switch {
	case arg == "" || arg == "-":
		return false
	case arg[0] == '/':
		return !strings.ContainsAny(arg[1:], "/.")
	}
	return arg[0] == '-'
}

// exclusive refuses options that contradict each other.
func (a *arguments) exclusive() error {
	for _, group := range [][]string{{"v", "ve", "va"}, {"reg:32", "reg:64"}} {
		var of []string
		for _, name := range group {
			if a.has(name) {
				of = append(of, "/"+name)
			}
		}
		if len(of) > 1 {
			return &syntaxError{a.operation, strings.Join(of, " and ") + " exclude each other."}
		}
	}
	for _, name := range []string{"socket", "state"} {
		if a.has(name) && a.value(name) == "" {
			return &syntaxError{a.operation, "--" + name + " is empty; it is a path."}
		}
	}
	if a.has("json") && a.operation != "query" {
		return &syntaxError{a.operation, "--json goes with query."}
	}
	return nil
}

func (a *arguments) has(name string) bool {
	_, ok := a.given[name]
	return ok
}

// value returns the value of an option, "" if it is not given.
func (a *arguments) value(name string) string {
	if p := a.given[name]; p != nil {
		return *p
	}
	return ""
}

// valueOr returns the value of an option, or otherwise if it is not given.
func (a *arguments) valueOr(name, otherwise string) string {
	if a.has(name) {
		return a.value(name)
	}
	return otherwise
}
