package reg

import (
	"fmt"
	"slices"
	"strings"
)

// arguments are the arguments of an operation.
type arguments struct {
	operation string
	names     []string
	given     map[string]*string // by option; nil if it has no value
}

// own are the options of every operation that reg.exe does not have.
var own = []string{"--adapter", "--socket", "--state", "--unchecked", "--json"}

// parse parses the arguments. spec lists the allowed options: "f" without, "d=" with, "v?" with an
// optional value.
func parse(operation, spec string, args []string) (*arguments, error) {
	a := &arguments{operation: operation, given: map[string]*string{}}
	refuse := func(format string, args ...any) error {
		return &syntaxError{operation, fmt.Sprintf(format, args...)}
	}
	for i := 0; i < len(args); i++ {
		name, takes, optional, ok := option(spec, args[i])
		if !ok {
			if args[i] != "-" && (args[i] + " ")[0] == '-' || (args[i] + " ")[0] == '/' && !isFile(args[i]) {
				return nil, refuse("%q is not an option; allowed: %s %s.", args[i], slashed(spec), strings.Join(own, " "))
			}
			a.names = append(a.names, args[i])
			continue
		}
		if _, twice := a.given[name]; twice {
			return nil, refuse("%s is given twice.", args[i])
		}
		a.given[name] = nil
		if !takes {
			continue
		}
		_, _, _, next := option(spec, at(args, i+1))
		if i+1 >= len(args) || optional && next {
			if !optional {
				return nil, refuse("%s needs a value.", args[i])
			}
			continue
		}
		i++
		a.given[name] = &args[i]
	}
	return a, a.exclusive()
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

func at(args []string, i int) string {
	if i < len(args) {
		return args[i]
	}
	return ""
}

// option looks up an argument among the options.
func option(spec, arg string) (name string, takes, optional, ok bool) {
	lower := strings.ToLower(arg)
	if slices.Contains(own, lower) {
		return lower[2:], lower != "--unchecked" && lower != "--json", false, true
	}
	if len(lower) < 2 || lower[0] != '/' && lower[0] != '-' {
		return "", false, false, false
	}
	for word := range strings.FieldsSeq(spec) {
		bare := strings.TrimRight(word, "=?")
		if lower[1:] == bare {
			return bare, bare != word, strings.HasSuffix(word, "?"), true
		}
	}
	return "", false, false, false
}

// isFile reports whether an argument is the absolute path of a file rather than a mistyped option.
func isFile(arg string) bool { return strings.ContainsAny(arg[1:], "/.") }

func slashed(spec string) string {
	words := strings.Fields(spec)
	for i, w := range words {
		words[i] = "/" + strings.TrimRight(w, "=?")
	}
	return strings.Join(words, " ")
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
