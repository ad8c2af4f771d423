package mlx5cmd

import (
	"slices"
	"strings"

	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/tools/internal/commandline"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

// option is a word that begins with a dash, and the next word if that does not.
type option struct {
	name, value string
	has         bool
}

// general parses the arguments, and extracts the options common to all commands. The options of commands are known
// only when these are: they have the next word as their value unless that begins with a dash.
func (r *run) general(args []string) (out []option, help bool, err error) {
	flag := func(p *bool, names ...string) commandline.Option {
		return commandline.Option{Names: dashes(names...), Set: func(string) error { *p = true; return nil }}
	}
	syntax := commandline.Syntax{
		Fold:  true,
		Looks: func(w string) bool { _, ok := word(w); return ok },
		Hint:  "options begin with a dash",
		Other: &commandline.Option{Argument: "a value", Optional: true},
		Options: []commandline.Option{
			{Names: dashes("socket"), Argument: "a path", Optional: true},
			flag(&help, "h", "hh", "?", "help"),
			flag(&r.json, "json"),
		},
	}
	line, err := syntax.Parse(args)
	if err != nil {
		return nil, false, err
	}
	for _, g := range line.Given {
		name, _ := word(g.Name)
		switch {
		case g.Option == syntax.Other:
			out = append(out, option{name, g.Value, g.Has})
		case g.Option != &syntax.Options[0]:
		case !g.Has:
			return nil, false, tool.Usagef("--socket needs an argument; it is the path of the driver's socket")
		case g.Value == "":
			return nil, false, tool.Usagef(`--socket is ""; it is the path of the driver's socket`)
		default:
			r.socket = g.Value
		}
	}
	return out, help, nil
}

// dashes returns the spellings of options: the manuals print a longer dash in places, which users copy.
func dashes(names ...string) (all []string) {
	for _, n := range names {
		for _, dash := range dashKinds {
			all = append(all, dash+n)
		}
	}
	return all
}

var dashKinds = []string{"--", "-", "–"}

// word returns an option without its dashes.
func word(s string) (string, bool) {
	for _, dash := range dashKinds {
		if rest, ok := strings.CutPrefix(s, dash); ok && rest != "" {
			return rest, true
		}
	}
	return "", false
}

// find returns the command that the options name, one after the other, and the remaining options. Without
// options there is none.
func find(options []option) (*catalogue.Command, []option, error) {
	var at *catalogue.Command
	for {
		below := children(at)
		i := slices.IndexFunc(options, func(o option) bool {
			return slices.ContainsFunc(below, func(c catalogue.Command) bool { return c.Is(o.name) })
		})
		if at == nil && len(options) > 0 && i != 0 {
			return nil, nil, tool.Usagef("-%s is not a command; allowed: %s", options[0].name, strings.Join(words(below), " "))
		}
		if i < 0 {
			if at != nil && len(below) > 0 && len(options) > 0 {
				return nil, nil, tool.Usagef("-%s is not a command of %s; allowed: %s", options[0].name, dashed(at.Name),
					strings.Join(words(below), " "))
			}
			return at, options, nil
		}
		next := below[slices.IndexFunc(below, func(c catalogue.Command) bool { return c.Is(options[i].name) })]
		if options[i].has {
			return nil, nil, tool.Usagef("unexpected argument %q behind -%s", options[i].value, options[i].name)
		}
		at, options = &next, slices.Delete(slices.Clone(options), i, i+1)
	}
}

func words(list []catalogue.Command) []string {
	var out []string
	for _, c := range list {
		out = append(out, "-"+c.Word())
	}
	return out
}

// option returns the option of that name, in any letter case.
func (r *run) option(name string) (option, bool) {
	for _, o := range r.options {
		if strings.EqualFold(o.name, name) {
			return o, true
		}
	}
	return option{}, false
}

func (r *run) value(name string) string {
	o, _ := r.option(name)
	return o.value
}

func (r *run) has(name string) bool {
	_, ok := r.option(name)
	return ok
}

// only refuses options that the command does not accept. Names that end in "=" require a value, in "?"
// allow one, and others have none. Each option may be given once.
func (r *run) only(names ...string) error {
	seen := map[string]bool{}
	for _, o := range r.options {
		name := strings.ToLower(o.name)
		i := slices.IndexFunc(names, func(n string) bool { return strings.EqualFold(strings.TrimRight(n, "=?"), name) })
		switch {
		case i < 0:
			return r.usagef("-%s is not an option", o.name)
		case seen[name]:
			return r.usagef("-%s is given twice", o.name)
		case strings.HasSuffix(names[i], "=") && !o.has:
			return r.usagef("-%s needs an argument", o.name)
		case !strings.HasSuffix(names[i], "=") && !strings.HasSuffix(names[i], "?") && o.has:
			return r.usagef("unexpected argument %q behind -%s", o.value, o.name)
		}
		seen[name] = true
	}
	return nil
}

// action returns which one of the options is given.
func (r *run) action(names ...string) (string, error) {
	found := ""
	for _, n := range names {
		if !r.has(n) {
			continue
		}
		if found != "" {
			return "", r.usagef("-%s and -%s exclude each other", found, n)
		}
		found = n
	}
	if found == "" {
		return "", r.usagef("one of -%s is missing", strings.Join(names, ", -"))
	}
	return found, nil
}
