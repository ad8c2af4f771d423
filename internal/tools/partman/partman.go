// Package partman is part_man, WinOF's tool for virtual IPoIB ports (WinOF 5.50, 5.2).
package partman

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/ipoib"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

const synopsis = `usage: part_man [-v] <add|rem> <network connection name> [iname] [pkey]
       part_man [-v] <show|remall>
       part_man -help
Creates virtual ports on an IPoIB port, each on its own partition.

  add     create a virtual port on that connection's IPoIB port
  rem     remove the virtual port of that connection; iname and pkey, if given, have to match
  remall  remove all virtual ports
  show    list them: connection, iname, pkey

  iname   a name that begins with an i, printable, without : , ; - and space; generated if omitted
  pkey    4 hexadecimal digits; without it the port's default one. With the top bit off, full membership is used if the port has it

Options:`

// Main runs part_man.
func Main(ctx context.Context, env tool.Env) int {
	f := tool.NewFlags(env, synopsis)
	verbose := f.Bool("v", false, "show more")
	socket := f.String("socket", "", "`path` of the driver's socket")
	asJSON := f.Bool("json", false, "print JSON")
	if status, done := f.Parse(); done {
		return status
	}
	var words []string
	for i := range f.NArg() {
		words = append(words, f.Arg(i))
	}
	c, err := parse(words)
	if err == nil {
		err = c.run(ctx, printer{env, *verbose, *asJSON}, api.NewClient(*socket))
	}
	return env.End(ctx, err)
}

// call is what the arguments request.
type call struct {
	verb string
	port api.VirtualPortRequest
}

// parse parses the arguments. The error is a *tool.UsageError.
func parse(words []string) (c call, err error) {
	if len(words) == 0 {
		return c, tool.Usagef("a command is missing; allowed: add, rem, remall, show")
	}
	c.verb, words = strings.ToLower(words[0]), words[1:]
	switch c.verb {
	case "show", "remall":
		if len(words) > 0 {
			return c, tool.Usagef("%s: unexpected argument %q; it takes none", c.verb, words[0])
		}
		return c, nil
	case "add", "rem":
	default:
		return c, tool.Usagef("%q is not a command; allowed: add, rem, remall, show", c.verb)
	}
	if len(words) == 0 || words[0] == "" {
		return c, tool.Usagef("%s: the network connection name is missing", c.verb)
	}
	c.port.Connection, words = words[0], words[1:]
	if len(words) > 0 && (len(words) > 1 || strings.HasPrefix(words[0], "i")) {
		c.port.IName, words = words[0], words[1:]
		if err := ipoib.CheckIName(c.port.IName); err != nil {
			return c, tool.Usagef("%s: %v", c.verb, err)
		}
	}
	if len(words) > 0 {
		c.port.PKey, words = words[0], words[1:]
		if _, err := ipoib.ParsePKey(c.port.PKey); err != nil {
			return c, tool.Usagef("%s: %v; an iname begins with an i", c.verb, err)
		}
	}
	if len(words) > 0 {
		return c, tool.Usagef("%s: unexpected argument %q; one virtual port at a time", c.verb, words[0])
	}
	return c, nil
}

// printer holds the destination and the format of the output.
type printer struct {
	tool.Env
	verbose, json bool
}

func (c call) run(ctx context.Context, out printer, client *api.Client) error {
	switch c.verb {
	case "show":
		list, err := client.VirtualPorts(ctx)
		if err != nil {
			return err
		}
		return out.show(list)
	case "add":
		p, err := client.AddVirtualPort(ctx, c.port)
		if err != nil {
			return err
		}
		return out.done("Done...", p)
	case "rem":
		if err := client.RemoveVirtualPort(ctx, c.port); err != nil {
			return err
		}
	default: // remall
		if err := client.RemoveVirtualPorts(ctx); err != nil {
			return err
		}
	}
	return out.done("Done", struct{}{})
}

// done reports that a change was made; result is what was created.
func (p printer) done(text string, result any) error {
	if p.json {
		return json.NewEncoder(p.Stdout).Encode(result)
	}
	if made, ok := result.(api.VirtualPort); ok && p.verbose {
		if err := p.line(made); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(p.Stdout, text)
	return err
}

func (p printer) show(list []api.VirtualPort) error {
	if p.json {
		if list == nil {
			list = []api.VirtualPort{}
		}
		e := json.NewEncoder(p.Stdout)
		e.SetIndent("", "  ")
		return e.Encode(list)
	}
	for _, v := range list {
		if err := p.line(v); err != nil {
			return err
		}
	}
	return nil
}

// line prints a virtual port like the manual; with -v also its port, its state and its actual P_Key.
func (p printer) line(v api.VirtualPort) error {
	text := fmt.Sprintf("%s %s %s", v.Connection, v.IName, v.PKey)
	if p.verbose {
		text += fmt.Sprintf("  on %s: %s", v.Port, v.State)
		if v.ActivePKey != "" && v.ActivePKey != v.PKey {
			text += ", with " + v.ActivePKey
		}
	}
	_, err := fmt.Fprintln(p.Stdout, text)
	return err
}
