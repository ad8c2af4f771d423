package main

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/softvpi/softvpi/internal/cmdlets"
	"github.com/softvpi/softvpi/internal/completion"
	"github.com/softvpi/softvpi/internal/driver"
	"github.com/softvpi/softvpi/internal/os/paths"
	"github.com/softvpi/softvpi/internal/powershell"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

type completionCmd struct {
	Shell string `arg:"" help:"bash, zsh or fish."`
}

func (c completionCmd) Run(s *session) error {
	if !slices.Contains(completion.Shells, c.Shell) {
		return tool.Usagef("there is no script for shell %q; allowed: %s", c.Shell, strings.Join(completion.Shells, ", "))
	}
	return completion.Write(s.env.Stdout, c.Shell, "softvpi", append([]string{"softvpi"}, toolNames()...))
}

type completeCmd struct {
	Words []string `arg:"" optional:"" passthrough:"" help:"Words of the command line."`
}

func (c completeCmd) Run(s *session) error {
	words := c.Words
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	for _, w := range fitting(s.ctx, words) {
		if _, err := fmt.Fprintln(s.env.Stdout, w); err != nil {
			return err
		}
	}
	return nil
}

// fitting returns the words that may stand where the last of a command line's words begins.
func fitting(ctx context.Context, words []string) []string {
	if len(words) < 2 {
		return nil
	}
	begun, before := words[len(words)-1], words[:len(words)-1]
	if toolNamed(before[0]) == nil { // softvpi, whatever its file is called
		if before = before[1:]; len(before) == 0 {
			parser, err := newParser(tool.Env{}, &cli{})
			if err != nil {
				return nil
			}
			return starting(begun, append(wordsOf(parser.Model.Node), toolNames()...))
		}
	}
	if toolNamed(before[0]) != nil {
		return starting(begun, optionsIn(helpOf(ctx, before[0])))
	}
	return starting(begun, commandWords(ctx, before, begun))
}

// starting returns the words that start with what is there already. Options are offered when their hyphen is.
func starting(begun string, words []string) (out []string) {
	for _, w := range words {
		if strings.HasPrefix(w, begun) && (begun != "" || !strings.HasPrefix(w, "-")) {
			out = append(out, w)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// commandWords returns the words that may come behind those of a command of softvpi.
func commandWords(ctx context.Context, before []string, begun string) []string {
	parser, err := newParser(tool.Env{}, &cli{})
	if err != nil {
		return nil
	}
	at, given := parser.Model.Node, 0
	for _, w := range before {
		i := slices.IndexFunc(at.Children, func(c *kong.Node) bool { return c.Name == w })
		switch {
		case strings.HasPrefix(w, "-"):
		case i >= 0:
			at, given = at.Children[i], 0
		case len(at.Children) > 0:
			return nil // no command
		default:
			given++
		}
	}
	if at.Name == "ps" && before[len(before)-1] == "-c" {
		return scriptCommands()
	}
	if at.Passthrough {
		return optionsIn(helpOf(ctx, at.Name))
	}
	if name, _, ok := strings.Cut(begun, "="); ok && strings.HasPrefix(name, "--") {
		return flagValues(ctx, at, name)
	}
	words := wordsOf(at)
	if given < len(at.Positional) {
		words = append(words, valuesOf(ctx, at.Positional[given])...)
	}
	return words
}

// wordsOf returns the commands and options at a node.
func wordsOf(n *kong.Node) (out []string) {
	for _, c := range n.Children {
		if !c.Hidden {
			out = append(out, c.Name)
		}
	}
	for _, group := range n.AllFlags(true) {
		for _, f := range group {
			if name := "--" + f.Name; f.IsBool() {
				out = append(out, name)
			} else {
				out = append(out, name+"=")
			}
		}
	}
	return out
}

// flagValues returns --name=value for each value of an option that is known.
func flagValues(ctx context.Context, n *kong.Node, name string) (out []string) {
	for _, group := range n.AllFlags(true) {
		for _, f := range group {
			if "--"+f.Name != name {
				continue
			}
			for _, v := range valuesOf(ctx, f.Value) {
				out = append(out, name+"="+v)
			}
		}
	}
	return out
}

// valuesOf returns the values of an argument or option that are known: those of an enumeration, or the names of the running driver's
// adapters.
func valuesOf(ctx context.Context, v *kong.Value) []string {
	if v.Enum != "" {
		return v.EnumSlice()
	}
	if strings.HasPrefix(v.Help, "A script as text") {
		return scriptCommands()
	}
	if namesAdapter.MatchString(v.Help) {
		return runningAdapters(ctx)
	}
	return nil
}

// scriptCommands returns the commands that may begin a PowerShell script.
func scriptCommands() (names []string) {
	for _, c := range append(cmdlets.New(nil, nil).All(), powershell.Builtin()...) {
		names = append(names, c.Name)
	}
	return names
}

// namesAdapter is how the help of an argument begins that is an adapter's name.
var namesAdapter = regexp.MustCompile(`^(Name of the a|A)dapter\b`)

// completionPatience is how long a shell waits for the driver. Tests wait for longer.
var completionPatience = 300 * time.Millisecond

func runningAdapters(ctx context.Context) (names []string) {
	ctx, cancel := context.WithTimeout(ctx, completionPatience)
	defer cancel()
	st, err := driver.NewAdmin(paths.Socket()).Status(ctx)
	if err != nil {
		return nil
	}
	for _, a := range st.Adapters {
		names = append(names, a.Name)
	}
	return names
}

// helpOption is an option in the help of a tool: at the beginning of a line, behind another name of the same option, or in brackets in
// a line of usage.
var helpOption = regexp.MustCompile(`(?m)(?:^ {1,8}|, |[[|])(--?[A-Za-z][\w-]*)`)

// optionsIn returns the options that a help text lists.
func optionsIn(help string) (out []string) {
	for _, m := range helpOption.FindAllStringSubmatch(help, -1) {
		out = append(out, m[1])
	}
	return out
}
