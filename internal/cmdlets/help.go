package cmdlets

import (
	"slices"
	"strings"

	"github.com/softvpi/softvpi/internal/powershell"
)

// help returns the commands about commands.
func (s *Set) help() []cmdlet {
	every := func() []*powershell.Cmdlet { return append(slices.Clone(s.list), powershell.Builtin()...) }
	return []cmdlet{
		{powershell.Cmdlet{Name: "Get-Help", Aliases: []string{"help", "man"}, Help: "Show what a command does, and its parameters.",
			Params: []powershell.Param{{Name: "Name", Kind: powershell.String, Position: 1, Mandatory: true, Help: "The command."}}},
			func(r *run) error { return r.getHelp(every()) }},
		{powershell.Cmdlet{Name: "Get-Command", Aliases: []string{"gcm"}, Help: "List the commands.",
			Params: []powershell.Param{{Name: "Name", Kind: powershell.Strings, Position: 1, Help: "Names, with wildcards."},
				{Name: "Module", Kind: powershell.String, Help: "Of one module."}}},
			func(r *run) error { return r.getCommands(every()) }},
	}
}

func (r *run) getCommands(all []*powershell.Cmdlet) error {
	for _, c := range all {
		names := r.Texts("Name")
		if m := r.Text("Module"); m != "" && !powershell.Like(c.Module, m) ||
			len(names) > 0 && !slices.ContainsFunc(names, func(n string) bool { return powershell.Like(c.Name, n) }) {
			continue
		}
		r.Emit(powershell.NewObject("CommandInfo").With("CommandType", "Cmdlet").With("Name", c.Name).With("Source", c.Module))
	}
	return nil
}

func (r *run) getHelp(all []*powershell.Cmdlet) error {
	name := r.Text("Name")
	i := slices.IndexFunc(all, func(c *powershell.Cmdlet) bool { return c.Is(name) })
	if i < 0 {
		return &powershell.ParameterError{Parameter: "-Name", Value: name, Allowed: "a command of Get-Command"}
	}
	c := all[i]
	lines := []string{"NAME", "    " + c.Name, "", "SYNOPSIS", "    " + c.Help}
	if c.Note != "" {
		lines = append(lines, "    "+c.Note)
	}
	lines = append(lines, "", "SYNTAX", "    "+c.Syntax(), "", "PARAMETERS")
	for _, p := range c.Params {
		kind := " <" + p.Kind.String() + ">"
		if p.Kind == powershell.Switch {
			kind = ""
		}
		lines = append(lines, "    -"+p.Name+kind, "        "+p.Help)
		if len(p.Allowed) > 0 {
			lines = append(lines, "        Allowed: "+strings.Join(p.Allowed, ", "))
		}
		if len(p.Aliases) > 0 {
			lines = append(lines, "        Aliases: "+strings.Join(p.Aliases, ", "))
		}
	}
	for _, l := range lines {
		r.Emit(l)
	}
	return nil
}

// Suggest names commands that are like one that there is not: those with the same noun.
func (s *Set) Suggest(name string) string {
	_, noun, ok := strings.Cut(strings.ToLower(name), "-")
	if !ok || len(noun) < 3 {
		return ""
	}
	var like []string
	for _, c := range s.list {
		_, n, _ := strings.Cut(strings.ToLower(c.Name), "-")
		if n == noun || strings.HasPrefix(n, noun) || strings.HasPrefix(noun, n) {
			like = append(like, c.Name)
		}
	}
	const most = 8
	if len(like) == 0 || len(like) > most {
		return "Get-Command lists what there is"
	}
	return "there is " + strings.Join(like, ", ")
}
