// Package vfpctrl is the tool of that name, which controls the filters of virtual switches' ports (WinOF 5.50, 4.5.5; WinOF-2
// 24.4 virtualization, PacketDirect). Where a virtual switch has the filter platform, the ports of machines pass nothing
// until it is disabled there: there are no rules.
package vfpctrl

import (
	"context"
	"crypto/sha1"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

const synopsis = `usage: vfpctrl /list-vmswitch-port [--json] [--socket PATH]
       vfpctrl /disable-port|/enable-port /port PORT
Lists the ports of the driver's virtual switches, and disables the filter platform (VFP) at one, or enables it again. It
is there if the switch has it (Enable-VMSwitchExtension; softvpi vswitch configure SWITCH vfp=on), and has no rules: a
machine's port where it is enabled passes nothing. PORT is the name that the list prints. Commands and /port are taken
with - for / too.`

// commands are those of the tool that are known; those with a reason are not supported.
var commands = []struct{ name, missing string }{
	{"list-vmswitch-port", ""},
	{"disable-port", ""},
	{"enable-port", ""},
	{"list-rule", "rules"},
	{"add-rule", "rules"},
	{"remove-rule", "rules"},
	{"list-layer", "layers of rules"},
	{"add-layer", "layers of rules"},
	{"list-group", "groups of rules"},
	{"add-group", "groups of rules"},
	{"list-flow", "flows of rules"},
}

// port is a port of a virtual switch as the tool shows it.
type port struct {
	Name     string `json:"port_name"`
	Type     string `json:"port_type"`
	Switch   string `json:"switch_name"`
	Friendly string `json:"switch_friendly_name"`
	Number   int    `json:"port_id"`
	NIC      string `json:"nic_name"`
	Adapter  string `json:"nic_friendly_name"`
	MTU      uint32 `json:"mtu"`
	MAC      string `json:"mac_address"`
	Machine  string `json:"vm_name,omitempty"`
	SRIOV    int    `json:"sriov_usage"`
	Learns   bool   `json:"mac_learning"`
	// Filter is what the filter platform does at the port; empty: it is not there.
	Filter string `json:"filter_platform,omitempty"`
	// function is the network adapter of a virtual switch at whose port it is.
	function string
}

// Main runs vfpctrl.
func Main(ctx context.Context, env tool.Env) int {
	args, words := options(env.Args)
	env.Args = args
	f := tool.NewFlags(env, synopsis)
	name := f.String("port", "", "`name` of a port, as the list prints it")
	socket := f.String("socket", "", "`path` of the driver's socket")
	asJSON := f.Bool("json", false, "list-vmswitch-port: print JSON")
	if status, done := f.Parse(); done {
		return status
	}
	if f.NArg() > 0 {
		return f.Refuse(tool.Usagef("unexpected argument %q; a command begins with /", f.Arg(0)))
	}
	command, err := commandIn(words)
	if err != nil {
		return env.End(ctx, err)
	}
	driver := api.NewClient(*socket)
	s, err := driver.Status(ctx)
	if err != nil {
		return env.End(ctx, err)
	}
	if command != "list-vmswitch-port" {
		return env.End(ctx, change(ctx, env.Stdout, driver, portsOf(s), command, *name))
	}
	if *name != "" {
		return f.Refuse(tool.Usagef("/port goes with /disable-port and /enable-port"))
	}
	if *asJSON {
		e := json.NewEncoder(env.Stdout)
		e.SetIndent("", "  ")
		return env.End(ctx, e.Encode(portsOf(s)))
	}
	list(env.Stdout, portsOf(s))
	return tool.Success
}

// options turns the slashes of options into dashes, and separates the words that are commands.
func options(in []string) (args, words []string) {
	for _, a := range in {
		bare := strings.TrimLeft(a, "/-")
		known := slices.ContainsFunc(commands, func(c struct{ name, missing string }) bool { return strings.EqualFold(c.name, bare) })
		switch {
		case bare != a && known:
			words = append(words, strings.ToLower(bare))
		case strings.HasPrefix(a, "/") && !strings.Contains(bare, "/"):
			args = append(args, "-"+strings.ToLower(bare))
		default:
			args = append(args, a)
		}
	}
	return args, words
}

func commandIn(words []string) (string, error) {
	if len(words) == 0 {
		return "", tool.Usagef("a command is missing; allowed: /list-vmswitch-port, /disable-port, /enable-port")
	}
	if len(words) > 1 {
		return "", tool.Usagef("two commands: /%s and /%s", words[0], words[1])
	}
	for _, c := range commands {
		if c.name == words[0] && c.missing != "" {
			return "", fmt.Errorf("%w: the virtual switches do not have %s", tool.ErrUnsupported, c.missing)
		}
	}
	return words[0], nil
}

// portsOf returns the ports of all virtual switches.
func portsOf(s *api.Status) []port {
	all := []port{}
	for _, w := range s.Switches {
		for _, p := range w.Ports {
			x := port{Name: guid(w.Name, p.Adapter), Type: synthetic, Switch: guid(w.Name), Friendly: w.Name, Number: p.Number,
				NIC: guid(p.Adapter), Adapter: p.Adapter, Learns: true}
			if a, err := s.Adapter("adapter", p.Adapter); err == nil {
				x.MTU, x.MAC = a.LinkMTU, dashed(a.MAC)
			}
			all = append(all, x)
		}
	}
	for i := range s.VirtualSwitches {
		all = append(all, portsOver(s, &s.VirtualSwitches[i])...)
	}
	return all
}

// guid makes the identifier of what has that name, the same each time.
func guid(name ...string) string {
	b := sha1.Sum([]byte("vfpctrl\x00" + strings.Join(name, "\x00")))
	b[6], b[8] = b[6]&0x0f|0x50, b[8]&0x3f|0x80 // version 5, RFC 9562
	return strings.ToUpper(fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:16]))
}

// list prints ports as the manuals do.
func list(w io.Writer, ports []port) {
	for _, p := range ports {
		for _, f := range []struct {
			name  string
			value any
		}{
			{"Port name", p.Name}, {"Port Friendly name", ""}, {"Switch name", p.Switch}, {"Switch Friendly name", p.Friendly},
			{"PortId", p.Number}, {"VMQ Usage", 0}, {"SR-IOV Usage", p.SRIOV}, {"Port type", p.Type},
		} {
			fmt.Fprintln(w, strings.TrimRight(fmt.Sprintf("%-20s : %v", f.name, f.value), " "))
		}
		fmt.Fprintf(w, "Port is Initialized.\nMAC Learning is %s.\n", map[bool]string{true: "Enabled", false: "Disabled"}[p.Learns])
		for _, f := range []struct {
			name  string
			value any
		}{{"NIC name", p.NIC}, {"NIC Friendly name", p.Adapter}, {"MTU", p.MTU}, {"MAC address", p.MAC}, {"VM name", p.Machine}} {
			fmt.Fprintln(w, strings.TrimRight(fmt.Sprintf("%-20s : %v", f.name, f.value), " "))
		}
		if p.Filter != "" {
			fmt.Fprintf(w, "VFP is %s.\n", p.Filter)
		}
		fmt.Fprintln(w)
	}
	if len(ports) == 0 {
		fmt.Fprintln(w, "No virtual switch: softvpi vswitch create makes one, and the configuration may have some (link=switch).")
	}
	fmt.Fprintln(w, "Command list-vmswitch-port succeeded!")
}
