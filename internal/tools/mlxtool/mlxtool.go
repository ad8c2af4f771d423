// Package mlxtool is the tool of that name: it shows and debugs the adapters of a running driver (WinOF
// 5.50, 5.5). The catalogue declares its sub-commands, their arguments and what is implemented; a
// sub-command whose feature adapters do not have ends with a particular exit status.
package mlxtool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/tools/internal/commandline"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

// name is the tool's name in the catalogue.
const name = "mlxtool"

// run is one run of a sub-command.
type run struct {
	ctx     context.Context
	env     tool.Env
	command *catalogue.Command
	args    []string // after the command's name
	json    bool
	client  *api.Client
	driver  *api.Status // the driver's state when the command began
}

// work executes a sub-command and returns what to show.
type work func(*run) (report, error)

// works are the implemented sub-commands, by their names in the catalogue.
var works = map[string]work{
	"show ports":            (*run).ports,
	"show devices":          (*run).devices,
	"show packet-filter":    (*run).packetFilter,
	"show qos":              (*run).qos,
	"show vxlan":            (*run).vxlan,
	"show nd connections":   (*run).connections,
	"show selfhealing port": (*run).selfHealing,
	"show regkeys config":   (*run).keysInForce,
	"show regkeys diff":     (*run).keysThatDiffer,
	"show regkeys info":     (*run).keyLimits,
	"show driverparams":     (*run).parameters,
	"show perfstats":        (*run).perfstats,
	"modify tc-bw":          (*run).modifyRates,
	"modify driverparams":   (*run).modifyParameters,
	"dbg get-state":         (*run).states,
	"dbg mstdump":           (*run).stateDump,
	"dbg oid-stats":         (*run).requestStats,
	"dbg cmd-stats":         (*run).commandStats,
	"dbg pkeys":             (*run).partitionKeys,
	"dbg ipoib-ep":          (*run).endpoints,
	"dbg resources":         (*run).resources,
	"dbg trace":             (*run).trace,
	"dbg restart":           (*run).restart,
	"dbg sw-reset":          (*run).reset,
	"dbg pddrinfo":          (*run).portDiagnostics,
	"dbg dump-me-now":       (*run).dumpMeNow,
	"dbg nonrss-capture":    (*run).packetCapture,
	"dbg decode":            (*run).decode,
}

// Main runs mlxtool.
func Main(ctx context.Context, env tool.Env) int {
	r := &run{ctx: ctx, env: env}
	args, socket, err := r.general(env.Args)
	if err != nil {
		return r.end(err)
	}
	if text, err := help(args); text != "" || err != nil {
		fmt.Fprint(env.Stdout, text)
		return r.end(err)
	}
	if r.command, r.args, err = find(args); err != nil {
		return r.end(err)
	}
	r.client = api.NewClient(socket)
	out, err := r.do()
	if err != nil {
		return r.end(err)
	}
	if r.json {
		err = out.json(env.Stdout)
	} else {
		err = out.text(env.Stdout)
	}
	return r.end(err)
}

// general extracts the options common to all sub-commands from the arguments, wherever they are. The other words are
// for the sub-commands.
func (r *run) general(args []string) (rest []string, socket string, err error) {
	syntax := commandline.Syntax{Arguments: true, Looks: func(string) bool { return false }, Options: []commandline.Option{
		{Names: []string{"--json"}, Set: func(string) error { r.json = true; return nil }},
		{Names: []string{"--socket"}, Argument: "a path", Set: func(v string) error { socket = v; return nil }},
	}}
	line, err := syntax.Parse(args)
	var wrong *commandline.Error
	if errors.As(err, &wrong) && wrong.Kind == commandline.Missing {
		err = tool.Usagef("%s needs an argument; it is the path of the driver's socket", wrong.Name)
	}
	return line.Arguments, socket, err
}

// find returns the sub-command for the words, and the remaining words.
func find(words []string) (*catalogue.Command, []string, error) {
	commands := catalogue.CommandsOf(name)
	var at *catalogue.Command
	for i, word := range words {
		next := step(commands, at, word)
		if next == nil {
			if len(children(commands, at)) == 0 {
				return at, words[i:], nil
			}
			return nil, nil, tool.Usagef("%q is not a sub-command%s; allowed: %s", word, of(at), names(children(commands, at)))
		}
		at = next
	}
	if below := children(commands, at); len(below) > 0 {
		return nil, nil, tool.Usagef("an argument is missing behind %q; allowed: %s", strings.Join(words, " "), names(below))
	}
	return at, nil, nil
}

// step returns the command below at that a word calls.
func step(commands []catalogue.Command, at *catalogue.Command, word string) *catalogue.Command {
	below := children(commands, at)
	i := slices.IndexFunc(below, func(c catalogue.Command) bool { return c.Is(word) })
	if i < 0 {
		return nil
	}
	return &below[i]
}

// children returns the sub-commands of at; for nil, those of the first level.
func children(commands []catalogue.Command, at *catalogue.Command) []catalogue.Command {
	parent := ""
	if at != nil {
		parent = at.Name
	}
	return slices.DeleteFunc(slices.Clone(commands), func(c catalogue.Command) bool { return c.Parent() != parent })
}

func of(c *catalogue.Command) string {
	if c == nil {
		return ""
	}
	return " of " + c.Name
}

func names(commands []catalogue.Command) string {
	var out []string
	for _, c := range commands {
		out = append(out, c.Word())
	}
	return strings.Join(append(out, "help"), " ")
}

// do queries the driver and does the work.
func (r *run) do() (report, error) {
	work := works[r.command.Name]
	if r.command.Status != catalogue.Built || work == nil {
		return nil, tool.ErrUnsupported
	}
	return work(r)
}

// status reads the driver's state.
func (r *run) status() error {
	s, err := r.client.Status(r.ctx)
	if err != nil {
		return err
	}
	r.driver = s
	return nil
}

// end reports err, if any, and returns the exit status.
func (r *run) end(err error) int {
	if errors.Is(err, tool.ErrUnsupported) {
		err = fmt.Errorf("%s: %w", r.command.Name, err)
	}
	return r.env.End(r.ctx, err)
}

// usagef returns the error for a wrong argument of the sub-command, with its usage.
func (r *run) usagef(format string, args ...any) error {
	return tool.Usagef("%s: %s; allowed: %s", r.command.Name, fmt.Sprintf(format, args...),
		strings.TrimSpace(r.command.Name+" "+r.command.Arguments))
}
