package vfpctrl

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

// The types of ports. That of a machine is synthetic, as the manuals print it.
const (
	synthetic = "Synthetic"
	internal  = "Internal"
	external  = "External"
)

// portsOver returns the ports of a virtual switch over an adapter: the first is the adapter's, others are those of its network adapters.
func portsOver(s *api.Status, v *api.VirtualSwitch) []port {
	up := port{Name: guid(v.Name, "", v.Adapter), Type: external, Switch: guid(v.Name), Friendly: v.Name, Number: 1, NIC: guid(v.Adapter),
		Adapter: v.Adapter}
	if a, err := s.Adapter("adapter", v.Adapter); err == nil {
		up.MTU, up.MAC = a.LinkMTU, dashed(a.MAC)
	}
	list := []port{up}
	for _, a := range v.Adapters {
		p := port{Name: guid(v.Name, a.Function), Type: internal, Switch: up.Switch, Friendly: v.Name, Number: a.Status.Number + 2,
			NIC: guid(v.Adapter, a.Function), Adapter: a.Name, MTU: up.MTU, MAC: dashed(a.Status.MAC), Machine: a.Machine,
			function: a.Function}
		if a.Machine != "" {
			p.Type = synthetic
			p.Filter = filterOf(v, &a)
		}
		if a.IOVWeight > 0 {
			p.SRIOV = 1
		}
		list = append(list, p)
	}
	return list
}

func filterOf(v *api.VirtualSwitch, a *api.SwitchAdapter) string {
	switch {
	case !v.VFP:
		return ""
	case a.Blocked:
		c := a.Status.Counters
		return fmt.Sprintf("Enabled, and blocks the port: %d frames sent, %d for it", c["blocked_sent"], c["blocked_received"])
	}
	return "Disabled at the port"
}

func dashed(mac string) string { return strings.ToUpper(strings.ReplaceAll(mac, ":", "-")) }

// change disables the filter platform at a port, or enables it.
func change(ctx context.Context, w io.Writer, driver *api.Client, ports []port, command, name string) error {
	p, err := portNamed(ports, name)
	if err != nil {
		return err
	}
	word := map[string]string{"disable-port": "vfp=off", "enable-port": "vfp=on"}[command]
	switch {
	case p.Filter != "":
		err = driver.SetSwitchAdapter(ctx, api.SwitchAdapterRequest{Switch: p.Friendly, Function: p.function, Settings: []string{word}})
	case command == "disable-port":
		fmt.Fprintf(w, "Port %s has no filter: its traffic passes, as before.\n", p.Name)
	default:
		err = fmt.Errorf("%w: the filter platform is not at port %s: it is at those of machines, where a virtual switch has it "+
			"(Enable-VMSwitchExtension)", tool.ErrUnsupported, p.Name)
	}
	if err == nil {
		fmt.Fprintf(w, "Command %s succeeded!\n", command)
	}
	return err
}

// portNamed returns the port of a name, or says which there are.
func portNamed(ports []port, name string) (*port, error) {
	var names []string
	for i := range ports {
		if strings.EqualFold(ports[i].Name, name) {
			return &ports[i], nil
		}
		names = append(names, ports[i].Name)
	}
	switch {
	case name == "":
		return nil, tool.Usagef("/port is missing; it is the name of a port, as /list-vmswitch-port prints it")
	case len(names) == 0:
		return nil, tool.Usagef("/port is %q, and the driver has no virtual switch", name)
	}
	return nil, &api.FieldError{Field: "/port", Value: fmt.Sprintf("%q", name), Allowed: strings.Join(names, ", ")}
}
