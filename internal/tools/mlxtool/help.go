package mlxtool

import (
	"fmt"
	"slices"
	"strings"

	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

// help returns the help that the arguments request, "" if they do not: the word help may be alone, before
// the sub-command in question, or between a sub-command and its argument (WinOF 5.50, 5.5.1).
func help(args []string) (string, error) {
	i := slices.IndexFunc(args, isHelp)
	if len(args) > 0 && i < 0 {
		return "", nil
	}
	commands := catalogue.CommandsOf(name)
	var at *catalogue.Command
	for j, word := range args {
		if j == i {
			continue
		}
		next := step(commands, at, word)
		if next == nil && j < i && len(children(commands, at)) == 0 {
			return "", nil // an argument named help, as an interface could be
		}
		if next == nil {
			return "", tool.Usagef("%q is not a sub-command%s; allowed: %s", word, of(at), names(children(commands, at)))
		}
		at = next
	}
	return page(commands, at), nil
}

func isHelp(s string) bool {
	return strings.EqualFold(s, "help") || slices.Contains([]string{"-h", "-?", "/?", "--help"}, s)
}

// page describes a command and its sub-commands; nil: the tool.
func page(commands []catalogue.Command, at *catalogue.Command) string {
	below := children(commands, at)
	var b strings.Builder
	switch {
	case at == nil:
		fmt.Fprintf(&b, "Shows and debugs the adapters of a running driver.\n\nusage: %s <tool-name> <tool-arguments>\n", name)
	case len(below) > 0:
		fmt.Fprintf(&b, "%s\n\nusage: %s %s <tool-name> <tool-arguments>\n", at.Summary, name, at.Name)
	default:
		leaf(&b, at)
	}
	if len(below) > 0 {
		width := 0
		for _, c := range below {
			width = max(width, len(c.Word()))
		}
		b.WriteString("\nTools:\n")
		for _, c := range below {
			fmt.Fprintf(&b, "  %-*s  %s\n", width, c.Word(), summary(c))
		}
	}
	if at == nil {
		fmt.Fprintf(&b, `
Help:
  %[1]s help <tool-name>               the arguments of a tool
  %[1]s <tool-name> help <argument>    what an argument does, with an example

Options of all:
  --json           print JSON
  --socket <path>  socket of the driver

Exit status: 0; 1 where something failed; 2 for wrong arguments; 3 for what the adapter does not support.
`, name)
	}
	return b.String()
}

// leaf describes a command without sub-commands.
func leaf(b *strings.Builder, c *catalogue.Command) {
	fmt.Fprintf(b, "%s\n\nusage: %s\n", summary(*c), strings.TrimSpace(name+" "+c.Name+" "+c.Arguments))
	if len(c.Aliases) > 0 {
		fmt.Fprintf(b, "       (%s is also called %s)\n", c.Word(), strings.Join(c.Aliases, ", "))
	}
	if c.Description != "" {
		b.WriteString("\n")
		for line := range strings.Lines(c.Description + "\n") {
			b.WriteString("  " + line)
		}
	}
	if strings.HasPrefix(c.Arguments, "[<") {
		fmt.Fprintf(b, "\n  Without arguments: all of them.\n")
	}
	fmt.Fprintf(b, "\nExample:\n  %s %s\n", name, c.Example)
}

func summary(c catalogue.Command) string {
	switch {
	case c.Status != catalogue.Built:
		return c.Summary + " Not supported yet."
	case c.Generations == catalogue.MLX4:
		return c.Summary + " Adapters of generation mlx4."
	}
	return c.Summary
}
