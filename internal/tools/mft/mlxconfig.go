package mft

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/os/inputfile"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

const configSynopsis = `usage: mlxconfig [-d DEVICE] [options] query|q [NAME...]
       mlxconfig -d DEVICE [-y] [options] set|s NAME=VALUE...
       mlxconfig -d DEVICE [-y] [options] reset|r [NAME...]
       mlxconfig [-d DEVICE] [options] show_confs|i
Shows and changes the non-volatile configuration of devices, which takes effect when they start. mst status names
the devices. N/A is a parameter that was never set: the device has its default. show_confs says what each accepts.`

// config is a run of mlxconfig.
type config struct {
	ctx    context.Context
	env    tool.Env
	client *api.Client
	device string
	yes    bool
	json   bool
}

// Config runs mlxconfig.
func Config(ctx context.Context, env tool.Env) int {
	c := &config{ctx: ctx, env: env}
	f := tool.NewFlags(env, configSynopsis)
	for _, n := range []string{"d", "dev"} {
		f.StringVar(&c.device, n, "", "`device` as mst status names it (default: all, for query and show_confs)")
	}
	for _, n := range []string{"y", "yes"} {
		f.BoolVar(&c.yes, n, false, "answer yes to the question")
	}
	socket := f.String("socket", "", "`path` of the driver's socket")
	f.BoolVar(&c.json, "json", false, "print JSON")
	if status, done := f.Parse(); done {
		return status
	}
	var args []string
	for i := 1; i < f.NArg(); i++ {
		args = append(args, f.Arg(i))
	}
	c.client = api.NewClient(*socket)
	return env.End(ctx, c.do(f.Arg(0), args))
}

// errDevice says that a change names no device.
var errDevice = tool.Usagef("-d is missing; it is the device, as mst status names it")

func (c *config) do(command string, args []string) error {
	switch command {
	case "query", "q":
		return c.query(args)
	case "set", "s":
		return c.set(args)
	case "reset", "r":
		return c.reset(args)
	case "show_confs", "i":
		return c.describe(args)
	case "":
		return tool.Usagef("a command is missing; allowed: query, set, reset, show_confs")
	}
	return tool.Usagef("%q is not a command; allowed: query, set, reset, show_confs", command)
}

// devices returns the current state of the devices selected by -d.
func (c *config) devices() ([]device, error) {
	s, err := c.client.Status(c.ctx)
	if err != nil {
		return nil, err
	}
	return pick(devices(s), c.device)
}

// configured is the configuration of a device as displayed.
type configured struct {
	number     int
	Device     string          `json:"device"`
	Type       string          `json:"device_type"`
	Adapter    string          `json:"adapter"`
	Parameters []api.Parameter `json:"configurations"`
	Applied    *bool           `json:"applied,omitempty"` // for a change
}

// read reads the configuration of devices.
func (c *config) read(list []device) ([]configured, error) {
	reg, err := c.client.LoadRegistry(c.ctx)
	if err != nil {
		return nil, err
	}
	var out []configured
	for i, d := range list {
		out = append(out, configured{i + 1, d.name, d.kind, d.adapter.Name, d.adapter.Parameters(reg), nil})
	}
	return out, nil
}

func (c *config) query(names []string) error {
	list, err := c.devices()
	if err != nil {
		return err
	}
	wanted := map[string]bool{}
	for _, n := range names {
		p, err := parameter(list, n)
		if err != nil {
			return err
		}
		wanted[p.Name] = true
	}
	all, err := c.read(list)
	if err != nil {
		return err
	}
	for i := range all {
		all[i].keep(wanted)
	}
	if c.json {
		return writeJSON(c.env.Stdout, all)
	}
	for _, d := range all {
		d.show(c.env.Stdout, d.pending())
	}
	return nil
}

// keep drops the parameters that are not wanted; an empty set keeps all.
func (d *configured) keep(wanted map[string]bool) {
	var out []api.Parameter
	for _, p := range d.Parameters {
		if len(wanted) == 0 || wanted[p.Name] {
			out = append(out, p)
		}
	}
	d.Parameters = out
}

// parameter finds a parameter that at least one of the devices has.
func parameter(list []device, name string) (catalogue.Parameter, error) {
	var names []string
	p, ok := catalogue.LookupParameter(name)
	for _, d := range list {
		for _, x := range catalogue.ParametersFor(catalogue.ConfigTool, d.adapter.Class()) {
			if ok && x.Name == p.Name {
				return p, nil
			}
			if len(list) == 1 {
				names = append(names, x.Name)
			}
		}
	}
	if len(list) != 1 {
		names = []string{"the parameters of show_confs"}
	}
	return p, &api.FieldError{Field: "parameter", Value: strconv.Quote(name), Allowed: strings.Join(names, ", ")}
}

func (c *config) set(args []string) error {
	change := map[string]*uint64{}
	d, err := c.one()
	if err != nil {
		return err
	}
	for _, a := range args {
		name, text, ok := strings.Cut(a, "=")
		if !ok && (a == "set" || a == "s") {
			continue // the manual repeats the word before each parameter (WinOF-2 24.4 virtualization)
		}
		if !ok {
			return tool.Usagef("%q sets nothing; allowed: NAME=VALUE", a)
		}
		p, err := parameter([]device{d}, name)
		if err != nil {
			return err
		}
		n, err := p.Parse(text, d.adapter.Class())
		if err != nil {
			return err
		}
		if _, twice := change[p.Name]; twice {
			return tool.Usagef("%s is given twice", p.Name)
		}
		change[p.Name] = &n
	}
	if len(change) == 0 {
		return tool.Usagef("set what? allowed: NAME=VALUE...")
	}
	return c.apply(d, change)
}

func (c *config) reset(names []string) error {
	d, err := c.one()
	if err != nil {
		return err
	}
	change := map[string]*uint64{}
	for _, n := range names {
		p, err := parameter([]device{d}, n)
		if err != nil {
			return err
		}
		change[p.Name] = nil
	}
	if len(names) == 0 {
		for _, p := range catalogue.ParametersFor(catalogue.ConfigTool, d.adapter.Class()) {
			change[p.Name] = nil
		}
	}
	return c.apply(d, change)
}

// one returns the device to change.
func (c *config) one() (device, error) {
	if c.device == "" {
		return device{}, errDevice
	}
	list, err := c.devices()
	if err != nil {
		return device{}, err
	}
	return list[0], nil
}

// apply asks for confirmation and makes the change.
func (c *config) apply(d device, change map[string]*uint64) error {
	all, err := c.read([]device{d})
	if err != nil {
		return err
	}
	show := all[0]
	for i := range show.Parameters {
		if n, ok := change[show.Parameters[i].Name]; ok {
			show.Parameters[i].New = n
		}
	}
	out := c.env.Stdout
	if c.json {
		out = c.env.Stderr
	} else {
		show.show(out, true)
	}
	yes, err := c.ask(out)
	if err == nil && yes {
		err = c.client.Configure(c.ctx, d.adapter, change)
	}
	if err != nil {
		return err
	}
	if c.json {
		show.Applied = &yes
		return writeJSON(c.env.Stdout, show)
	}
	if yes {
		fmt.Fprintln(out, "Applying... Done!\n-I- The adapter applies it when it restarts: softvpi adapter restart, or the driver's restart.")
	} else {
		fmt.Fprintln(out, "-I- Nothing was changed.")
	}
	return nil
}

// ask asks whether to continue. No answer means no.
func (c *config) ask(w io.Writer) (bool, error) {
	if !c.json || !c.yes {
		fmt.Fprint(w, "Apply new Configuration? ? (y/n) [n] : ")
	}
	if c.yes {
		if !c.json {
			fmt.Fprintln(w, "y")
		}
		return true, nil
	}
	return answered(c.ctx, c.env, w)
}

// confirm asks a question on the standard output. No answer means no.
func confirm(ctx context.Context, env tool.Env, question string, yes, no bool) (bool, error) {
	fmt.Fprint(env.Stdout, question)
	switch {
	case yes:
		fmt.Fprintln(env.Stdout, "y")
		return true, nil
	case no:
		fmt.Fprintln(env.Stdout, "n")
		return false, nil
	}
	return answered(ctx, env, env.Stdout)
}

// answered reads the answer to a question that was asked on w, and reports whether it is yes.
func answered(ctx context.Context, env tool.Env, w io.Writer) (bool, error) {
	line, err := inputfile.ReadLine(ctx, bufio.NewReader(env.Stdin))
	if err != nil {
		fmt.Fprintln(w)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	answer := strings.ToLower(strings.TrimSpace(line))
	return answer == "y" || answer == "yes", nil
}

// described is a parameter as shown by show_confs.
type described struct {
	Name        string `json:"name"`
	Default     uint64 `json:"default"`
	Allowed     string `json:"allowed"`
	Description string `json:"description"`
}

// describe describes each parameter.
func (c *config) describe(args []string) error {
	if len(args) > 0 {
		return tool.Usagef("unexpected argument %q; show_confs has none", args[0])
	}
	list, err := c.devices()
	if err != nil {
		return err
	}
	reg, err := c.client.LoadRegistry(c.ctx)
	if err != nil {
		return err
	}
	out := map[string][]described{}
	for _, d := range list {
		g := d.adapter.Class()
		image, _ := reg.Firmware(d.adapter.Identity())
		if !c.json {
			fmt.Fprintf(c.env.Stdout, "\nList of configurations of %s (%s):\n", d.name, d.kind)
		}
		for _, p := range catalogue.ParametersFor(catalogue.ConfigTool, g) {
			byDefault := p.Default.Number
			if n, ok := image.Parameters[p.Name]; ok {
				byDefault = n
			}
			out[d.name] = append(out[d.name], described{p.Name, byDefault, p.Allowed(g), p.Description})
			if !c.json {
				fmt.Fprintf(c.env.Stdout, "   %-26s %s\n   %-26s Default %d; allowed: %s\n", p.Name, p.Description, "", byDefault,
					p.Allowed(g))
			}
		}
	}
	if c.json {
		return writeJSON(c.env.Stdout, out)
	}
	return nil
}
