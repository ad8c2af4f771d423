// Package mlx5cmd is the tool of that name: it shows, sets and debugs the mlx5 adapters of a running
// driver (WinOF-2 Ethernet b, RoCEv2 Congestion Management; WinOF-2 24.4 virtualization, VF Monitoring).
// The catalogue declares its commands, their arguments and what is implemented.
package mlx5cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

// name is the tool's name in the catalogue.
const name = "mlx5cmd"

// run is one run of a command.
type run struct {
	ctx     context.Context
	env     tool.Env
	command catalogue.Command
	options []option // after the command's own words
	socket  string
	json    bool
	client  *api.Client
	driver  *api.Status
}

// works are the implemented commands, by their names in the catalogue.
var works = map[string]func(*run) (report, error){
	"Stat":                              (*run).stat,
	"DriverVersion":                     (*run).version,
	"RegKeys":                           (*run).keys,
	"Features":                          (*run).features,
	"QosConfig Dcqcn":                   (*run).congestion,
	"QosConfig DefaultUntaggedPriority": (*run).untagged,
	"QosConfig SetupRoceQosConfig":      (*run).setupRoCE,
	"Dcqcn":                             (*run).restore,
	"Dbg SwReset":                       (*run).reset,
	"Dbg StateDump":                     (*run).stateDump,
	"Dbg Resources":                     (*run).resources,
	"Dbg CmdStats":                      (*run).commandStats,
	"Dbg OidStats":                      (*run).requestStats,
	"Dbg ResourceDump":                  (*run).resourceDump,
	"Dmn":                               (*run).dumpMeNow,
	"Trace":                             (*run).trace,
	"Sniffer":                           (*run).sniffer,
	"NdStat":                            (*run).connections,
	"LinkSpeed":                         (*run).linkSpeed,
	"RssCounters":                       (*run).queues,
}

// Main runs mlx5cmd.
func Main(ctx context.Context, env tool.Env) int {
	r := &run{ctx: ctx, env: env}
	out, err := r.do(env.Args)
	if err == nil && out != nil {
		if r.json {
			err = out.json(env.Stdout)
		} else {
			err = out.text(env.Stdout)
		}
	}
	return r.end(err)
}

func (r *run) do(args []string) (report, error) {
	options, help, err := r.general(args)
	if err != nil {
		return nil, err
	}
	c, rest, err := find(options)
	if err != nil {
		return nil, err
	}
	if help || c == nil {
		return nil, page(r.env.Stdout, c)
	}
	r.command, r.options = *c, rest
	if below := children(c); len(below) > 0 && works[c.Name] == nil || len(below) > 0 && len(rest) == 0 {
		return nil, r.usagef("a command is missing")
	}
	work := works[c.Name]
	if c.Status != catalogue.Built || work == nil || slices.ContainsFunc(c.Unbuilt, r.has) {
		return nil, tool.ErrUnsupported
	}
	r.client = api.NewClient(r.socket)
	return work(r)
}

// end reports err, if any, and returns the exit status.
func (r *run) end(err error) int {
	if errors.Is(err, tool.ErrUnsupported) {
		err = fmt.Errorf("%s: %w", dashed(r.command.Name), err)
	}
	return r.env.End(r.ctx, err)
}

// usagef returns the error for a wrong argument of the command, with its usage.
func (r *run) usagef(format string, args ...any) error {
	allowed := dashed(r.command.Name) + " " + r.command.Arguments
	if below := children(&r.command); len(below) > 0 && r.command.Arguments == "" {
		var names []string
		for _, c := range below {
			names = append(names, "-"+c.Word())
		}
		allowed += strings.Join(names, " | ")
	}
	return tool.Usagef("%s: %s; allowed: %s", dashed(r.command.Name), fmt.Sprintf(format, args...), strings.TrimSpace(allowed))
}

// dashed returns the words of a command as they are typed.
func dashed(name string) string { return "-" + strings.ReplaceAll(name, " ", " -") }

// status reads the driver's state.
func (r *run) status() (err error) {
	r.driver, err = r.client.Status(r.ctx)
	return err
}

// adapters returns the mlx5 adapters, or the one named by -Name.
func (r *run) adapters() ([]*api.AdapterStatus, error) {
	if err := r.status(); err != nil {
		return nil, err
	}
	if name := r.value("Name"); name != "" {
		a, err := r.driver.Adapter("-Name", name)
		if err == nil && a.Class()&r.command.Generations == 0 {
			return nil, tool.ErrUnsupported
		}
		return []*api.AdapterStatus{a}, err
	}
	var out []*api.AdapterStatus
	for i := range r.driver.Adapters {
		if a := &r.driver.Adapters[i]; a.Class()&r.command.Generations != 0 {
			out = append(out, a)
		}
	}
	return out, nil
}

// adapter returns the one named by -Name, which is required.
func (r *run) adapter() (*api.AdapterStatus, error) {
	if r.value("Name") == "" {
		return nil, r.usagef("-Name is missing")
	}
	list, err := r.adapters()
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

// children returns the sub-commands of a command; for nil, those of the first level.
func children(at *catalogue.Command) []catalogue.Command {
	parent := ""
	if at != nil {
		parent = at.Name
	}
	return slices.DeleteFunc(catalogue.CommandsOf(name), func(c catalogue.Command) bool { return c.Parent() != parent })
}

// page prints the help of a command; nil: of the tool.
func page(w io.Writer, at *catalogue.Command) error {
	below := children(at)
	switch {
	case at == nil:
		fmt.Fprintf(w, "Shows, sets and debugs the mlx5 adapters of a running driver. The letter case of options does not matter.\n\nusage: %s -<command> [options] [--json] [--socket <path>]\n", name)
	case len(below) > 0:
		fmt.Fprintf(w, "%s\n\nusage: %s %s -<command> [options]\n", at.Summary, name, dashed(at.Name))
	default:
		fmt.Fprintf(w, "%s\n", at.Summary)
		if at.Status != catalogue.Built {
			fmt.Fprintln(w, "Adapters do not support it yet.")
		}
		for _, o := range at.Unbuilt {
			fmt.Fprintf(w, "Adapters do not support -%s yet.\n", o)
		}
		_, err := fmt.Fprintf(w, "\nusage: %s %s %s\n", name, dashed(at.Name), at.Arguments)
		return err
	}
	fmt.Fprintf(w, "\nCommands (-hh after one shows more):\n")
	for _, c := range below {
		note := ""
		if c.Status != catalogue.Built {
			note = " Not supported yet."
		}
		fmt.Fprintf(w, "  -%-24s %s%s\n", c.Word(), c.Summary, note)
	}
	return nil
}
