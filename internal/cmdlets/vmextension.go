package cmdlets

import (
	"fmt"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/powershell"
)

// filterPlatform are the names of the filter platform (VFP), the one extension of virtual switches: that of Windows Server 2012 R2, and
// that since 2016 (WinOF-2 24.4, Using PacketDirect for VM).
var filterPlatform = []string{"Microsoft Azure VFP Switch Extension", "Windows Azure VFP Switch Extension"}

// extensions are the commands of virtual switches' extensions and of PacketDirect there.
func extensions() []cmdlet {
	at := powershell.Param{Name: "VMSwitchName", Kind: powershell.String, Position: 2, Mandatory: true, Help: "The switch."}
	name := powershell.Param{Name: "Name", Kind: powershell.String, Position: 1, Mandatory: true, Help: "The extension: " + filterPlatform[0] + "."}
	some := at
	some.Position = 1
	one := func(name, help string, changes bool, do func(*run) error, params ...powershell.Param) cmdlet {
		return cmdlet{powershell.Cmdlet{Name: name, Help: help, Changes: changes, Params: params}, do}
	}
	return []cmdlet{
		one("Set-VMSwitch", "Change a virtual switch over an adapter.", true, (*run).setSwitch,
			powershell.Param{Name: "Name", Kind: powershell.String, Position: 1, Mandatory: true, Help: "Name of the switch."},
			powershell.Param{Name: "EnablePacketDirect", Kind: powershell.Bool, Help: "Whether programs of its adapters may have queues of frames."}),
		one("Enable-VMSwitchExtension", "Put the filter platform (VFP) at the ports of a virtual switch: those of machines pass nothing until vfpctrl /disable-port.",
			true, func(r *run) error { return r.setExtension(true) }, at, name),
		one("Disable-VMSwitchExtension", "Take the filter platform away from a virtual switch.", true,
			func(r *run) error { return r.setExtension(false) }, at, name),
		one("Get-VMSwitchExtension", "Show whether a virtual switch has the filter platform.", false, (*run).getExtension, some),
	}
}

// switchMeant returns the virtual switch over an adapter of a parameter.
func (r *run) switchMeant(param string) (*api.VirtualSwitch, error) {
	st, err := r.driver.Status(r.Context)
	if err != nil {
		return nil, err
	}
	if s := switchNamed(st.VirtualSwitches, r.Text(param)); s != nil {
		return s, nil
	}
	var names []string
	for _, s := range st.VirtualSwitches {
		names = append(names, s.Name)
	}
	if names == nil {
		names = []string{"none yet; New-VMSwitch makes one"}
	}
	return nil, fmt.Errorf("there is no switch %q over an adapter; allowed: %s", r.Text(param), strings.Join(names, ", "))
}

func (r *run) setSwitch() error {
	s, err := r.switchMeant("Name")
	if err != nil {
		return err
	}
	if !r.Given("EnablePacketDirect") {
		return &powershell.ParameterError{Parameter: "what to set is missing", Allowed: "-EnablePacketDirect"}
	}
	return r.configureSwitch(s, "packetdirect", s.PacketDirect, r.Bool("EnablePacketDirect"))
}

func (r *run) setExtension(on bool) error {
	s, err := r.switchMeant("VMSwitchName")
	if err != nil {
		return err
	}
	known := false
	for _, n := range filterPlatform {
		known = known || strings.EqualFold(n, r.Text("Name"))
	}
	if !known {
		return &powershell.ParameterError{Parameter: "-Name", Value: r.Text("Name"), Allowed: strings.Join(filterPlatform, ", ")}
	}
	return r.configureSwitch(s, "vfp", s.VFP, on)
}

// configureSwitch sets one thing of a switch, if it is not so already.
func (r *run) configureSwitch(s *api.VirtualSwitch, setting string, now, on bool) error {
	if now == on || !r.Should(r.Cmdlet.Name, s.Name) {
		return nil
	}
	word := map[bool]string{true: setting + "=on", false: setting + "=off"}[on]
	return r.driver.SetVirtualSwitch(r.Context, api.SwitchSettings{Switch: s.Name, Settings: []string{word}})
}

func (r *run) getExtension() error {
	s, err := r.switchMeant("VMSwitchName")
	if err != nil {
		return err
	}
	r.Emit(powershell.NewObject("VMSwitchExtension", "Name", "SwitchName", "Enabled").With("Name", filterPlatform[0]).
		With("SwitchName", s.Name).With("Enabled", s.VFP).With("ExtensionType", "Forwarding"))
	return nil
}
