package catalogue

import (
	"slices"
	"strings"
	"sync"
)

// Command is a sub-command of a tool that the manuals describe.
type Command struct {
	// Tool is the name of the tool: "mlxtool".
	Tool string
	// Name holds the words by which it is called, as help shows them: "show nd connections".
	Name string
	// Aliases are other spellings of its last word that the manuals use.
	Aliases []string
	// Arguments follow the name, in the notation of usage texts. A command that is only a prefix of others
	// has none.
	Arguments string
	// Status is Built if the command works, and StoredOnly if adapters do not have what it is about.
	Status Status
	// Unbuilt lists options of an implemented command that concern what adapters do not have.
	Unbuilt []string
	// Generations whose adapters have what it is about.
	Generations Generation
	// Summary says in a few words what it does, Description gives details, "" if there are none.
	Summary, Description string
	// Example is an invocation, without the name of the tool.
	Example string
	Sources []Source
}

// CommandsOf returns the sub-commands of a tool, in the order in which it lists them.
func CommandsOf(tool string) []Command {
	return slices.DeleteFunc(slices.Clone(commands()), func(c Command) bool { return c.Tool != tool })
}

// Parent returns the name of the command that this one extends, "" for those of the first level.
func (c Command) Parent() string {
	i := strings.LastIndexByte(c.Name, ' ')
	return c.Name[:max(i, 0)]
}

// Word returns the last word of the name.
func (c Command) Word() string { return c.Name[strings.LastIndexByte(c.Name, ' ')+1:] }

// Is reports whether a word calls the command, in any letter case.
func (c Command) Is(word string) bool {
	return strings.EqualFold(word, c.Word()) || slices.ContainsFunc(c.Aliases, func(a string) bool { return strings.EqualFold(a, word) })
}

var commands = sync.OnceValue(func() []Command { return slices.Concat(mlxtoolCommands(), mlx5cmdCommands(), vlanCommands()) })
