// Package vlanconfig is vlan_config, WinOF's tool for teams and VLANs (WinOF 5.50, 4.1.6). It lists adapters, and makes, changes and shows
// teams of them, and VLAN interfaces of both. The catalogue declares its commands.
package vlanconfig

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

// name is the tool's name in the catalogue.
const name = "vlan_config"

// session is one run of the tool.
type session struct {
	tool.Env
	client *api.Client
	json   bool
}

// Main runs vlan_config.
func Main(ctx context.Context, env tool.Env) int {
	f := tool.NewFlags(env, synopsis())
	socket := f.String("socket", "", "`path` of the driver's socket")
	asJSON := f.Bool("json", false, "print JSON")
	if status, done := f.Parse(); done {
		return status
	}
	var words []string
	for i := range f.NArg() {
		words = append(words, f.Arg(i))
	}
	c, rest, err := find(words)
	if err == nil && c.Status != catalogue.Built {
		err = fmt.Errorf("%s: %w", c.Name, tool.ErrUnsupported)
	}
	if err == nil {
		s := session{env, api.NewClient(*socket), *asJSON}
		err = s.run(ctx, c, rest)
	}
	return env.End(ctx, err)
}

// find finds the command that the words begin with, and the remaining words.
func find(words []string) (*catalogue.Command, []string, error) {
	var names []string
	for _, c := range catalogue.CommandsOf(name) {
		n := len(strings.Fields(c.Name))
		if len(words) >= n && strings.EqualFold(strings.Join(words[:n], " "), c.Name) {
			return &c, words[n:], nil
		}
		names = append(names, c.Name)
	}
	what := "a command is missing"
	if len(words) > 0 {
		what = fmt.Sprintf("%q is not a command", strings.Join(words[:min(2, len(words))], " "))
	}
	return nil, nil, tool.Usagef("%s; allowed: %s", what, strings.Join(names, ", "))
}

// commands are those that are built, by their names in the catalogue.
var commands = map[string]func(*session, context.Context, *arguments) error{
	"showlist": (*session).showList, "create team": (*session).createTeam, "attach team": (*session).attachTeam,
	"detach team": (*session).detachTeam, "removeteam": (*session).removeTeam, "queryteam": (*session).queryTeam,
	"modifyteam": (*session).modifyTeam, "addvlan": (*session).addVLAN, "removevlan": (*session).removeVLAN,
	"queryvlan": (*session).queryVLAN, "modifyvlan": (*session).modifyVLAN,
}

func (s *session) run(ctx context.Context, c *catalogue.Command, words []string) error {
	a, err := parse(c, words)
	if err != nil {
		return err
	}
	return commands[c.Name](s, ctx, a)
}

// arguments are those of a command, by the names that the catalogue has for them.
type arguments struct {
	values map[string]string // of <Name>, {<Adapter-GUID>} and [word=]
	flags  map[string]bool   // of [Word]
}

// parse reads the words of a command by the form that the catalogue has of its arguments: those that it needs come first, and the flags,
// some with a value, behind them in any order, in capitals or not. The error is a *tool.UsageError.
func parse(c *catalogue.Command, words []string) (*arguments, error) {
	a := &arguments{map[string]string{}, map[string]bool{}}
	refused := func(what string) error {
		return tool.Usagef("%s: %s; allowed: %s %s", c.Name, what, c.Name, c.Arguments)
	}
	var flags []string
	for _, form := range strings.Fields(c.Arguments) {
		if strings.HasPrefix(form, "[") {
			flags = append(flags, strings.Trim(form, "[]"))
			continue
		}
		if len(words) == 0 || words[0] == "" {
			return nil, refused(form + " is missing")
		}
		a.values[strings.Trim(form, "{<>}")], words = words[0], words[1:]
	}
	for _, w := range words {
		word, value := w, ""
		if at := strings.Index(w, "="); at >= 0 {
			word, value = w[:at+1], w[at+1:]
		}
		i := slices.IndexFunc(flags, func(f string) bool { return strings.EqualFold(f, word) })
		if i < 0 || a.flags[flags[i]] || strings.HasSuffix(word, "=") && value == "" {
			return nil, refused(fmt.Sprintf("unexpected argument %q", w))
		}
		a.flags[flags[i]], a.values[strings.TrimSuffix(flags[i], "=")] = true, value
	}
	return a, nil
}

// print prints what a command has to say: a value as JSON, if that is wanted, and otherwise lines.
func (s *session) print(value any, lines ...string) error {
	if s.json {
		e := json.NewEncoder(s.Stdout)
		e.SetIndent("", "  ")
		return e.Encode(value)
	}
	for _, l := range lines {
		if _, err := fmt.Fprintln(s.Stdout, l); err != nil {
			return err
		}
	}
	return nil
}

func synopsis() string {
	var b strings.Builder
	fmt.Fprintf(&b, "usage: %s <command> [options]\nLists the adapters, makes teams of them, and VLAN interfaces of both.\n\nCommands:\n", name)
	for _, c := range catalogue.CommandsOf(name) {
		note := ""
		if c.Status != catalogue.Built {
			note = " Not supported yet."
		}
		fmt.Fprintf(&b, "  %s %s\n      %s%s\n", c.Name, c.Arguments, c.Summary, note)
	}
	b.WriteString("\nAdapters are named by their GUIDs, with braces or not, or by their names.\n\nOptions:")
	return b.String()
}
