package cmdlets

import (
	"fmt"
	"slices"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/powershell"
	"github.com/softvpi/softvpi/internal/qos"
	"github.com/softvpi/softvpi/internal/registry"
)

func netAdapter() []cmdlet {
	one := func(name, help string, changes bool, do func(*run) error, params ...powershell.Param) cmdlet {
		return cmdlet{powershell.Cmdlet{Name: name, Help: help, Changes: changes, Params: params}, do}
	}
	text := func(name, help string, aliases ...string) powershell.Param {
		return powershell.Param{Name: name, Aliases: aliases, Kind: powershell.Strings, Piped: true, Help: help}
	}
	display, keyword := text("DisplayName", "The key by the name that the device manager shows.", "DispN"), text("RegistryKeyword", "The key by its name in the registry.", "RegKey")
	value := func(name, help string) powershell.Param {
		return powershell.Param{Name: name, Kind: powershell.Strings, Help: help}
	}
	return []cmdlet{
		one("Get-NetAdapter", "List the adapters.", false, (*run).getAdapters, adapterName(false),
			powershell.Param{Name: "InterfaceDescription", Aliases: []string{"ifDesc"}, Kind: powershell.Strings, Help: "By their descriptions, with wildcards."},
			powershell.Param{Name: "InterfaceIndex", Aliases: []string{"ifIndex"}, Kind: powershell.Numbers, Help: "By the numbers of their interfaces."},
			powershell.Param{Name: "Physical", Kind: powershell.Switch, Help: "All adapters are."},
			powershell.Param{Name: "IncludeHidden", Kind: powershell.Switch, Help: "None is hidden."}),
		one("Enable-NetAdapter", "Enable adapters.", true, func(r *run) error { return r.setState(true) }, adapterName(true)),
		one("Disable-NetAdapter", "Disable adapters, which ends their connections.", true, func(r *run) error { return r.setState(false) }, adapterName(true)),
		one("Restart-NetAdapter", "Disable and enable adapters, with their keys as they are now.", true, (*run).restartAdapters, adapterName(true)),
		one("Rename-NetAdapter", "Not supported: names of adapters are in the driver's configuration.", true, (*run).renameAdapter,
			adapterName(true), powershell.Param{Name: "NewName", Kind: powershell.String, Position: 2, Mandatory: true, Help: "The new name."}),
		one("Get-NetAdapterAdvancedProperty", "List keys of adapters.", false, (*run).getProperties, adapterName(false), display, keyword,
			powershell.Param{Name: "AllProperties", Kind: powershell.Switch, Help: "Those too that the device manager does not show."}),
		one("Set-NetAdapterAdvancedProperty", "Set keys of adapters, and restart these if that is needed.", true, (*run).setProperties,
			adapterName(false), display, keyword, value("DisplayValue", "By the name of a choice."), value("RegistryValue", "As the registry has it."), noRestart()),
		one("New-NetAdapterAdvancedProperty", "Set a key of adapters that is not set.", true, (*run).setProperties, adapterName(true), keyword,
			value("RegistryValue", "As the registry has it."), powershell.Param{Name: "RegistryDataType", Kind: powershell.String,
				Help: "Keys have their own types here."}, noRestart()),
		one("Reset-NetAdapterAdvancedProperty", "Set keys of adapters back to their defaults.", true, (*run).resetProperties, adapterName(false),
			display, noRestart()),
		one("Remove-NetAdapterAdvancedProperty", "Remove keys of adapters, which have their defaults then.", true, (*run).resetProperties,
			adapterName(true), keyword, noRestart()),
		one("Enable-NetAdapterBinding", "Not in yet: protocols are not bound to adapters one by one.", true, noBinding, adapterName(true),
			powershell.Param{Name: "ComponentID", Kind: powershell.Strings, Help: "The protocol, service or filter."}),
		one("Disable-NetAdapterBinding", "Not in yet: protocols are not bound to adapters one by one.", true, noBinding, adapterName(true),
			powershell.Param{Name: "ComponentID", Kind: powershell.Strings, Help: "The protocol, service or filter."}),
		one("Get-NetAdapterQos", "Show how adapters treat priorities.", false, (*run).getAdapterQoS, adapterName(false)),
		one("Get-NetAdapterStatistics", "Show how much adapters have sent and received.", false, (*run).statistics, adapterName(false)),
		one("Get-NetAdapterHardwareInfo", "Show where the adapters are on the bus.", false, (*run).hardware, adapterName(false)),
	}
}

// description returns the description of an adapter, by which Windows' device manager shows it.
func description(reg *registry.Registry, a *api.AdapterStatus) string {
	v, _ := reg.Get(a.Identity().Class(), "DriverDesc")
	text, _ := v.Text()
	return text
}

// dashedMAC is a MAC as Windows writes it.
func dashedMAC(mac string) string { return strings.ToUpper(strings.ReplaceAll(mac, ":", "-")) }

// linkSpeed returns the speed of an adapter's link in bit/s; 0: it is down, or its wire has none, as the loopback interface.
func linkSpeed(a *api.AdapterStatus) uint64 {
	if a.InfiniBand != nil && a.Enabled && a.Up {
		return a.InfiniBand.Mbps * 1e6
	}
	return a.Speed
}

// speedText is a speed as the commands show it. What is up without a known speed is not what is down.
func speedText(a *api.AdapterStatus) string {
	const giga, mega = 1e9, 1e6
	bits := linkSpeed(a)
	switch {
	case bits == 0 && a.Enabled && a.Up:
		return "Unknown"
	case bits >= giga:
		return fmt.Sprintf("%g Gbps", float64(bits)/giga)
	case bits > 0:
		return fmt.Sprintf("%g Mbps", float64(bits)/mega)
	}
	return "0 bps"
}

func adapterStatus(a *api.AdapterStatus) string {
	switch {
	case !a.Enabled:
		return "Disabled"
	case a.Up:
		return "Up"
	}
	return "Disconnected"
}

func (r *run) getAdapters() error {
	list, err := r.adapters(r.Texts("Name"))
	if err != nil {
		return err
	}
	reg, err := r.driver.LoadRegistry(r.Context)
	if err != nil {
		return err
	}
	for _, a := range list {
		d := description(reg, a)
		if want := r.Texts("InterfaceDescription"); len(want) > 0 && !slices.ContainsFunc(want, func(w string) bool { return powershell.Like(d, w) }) {
			continue
		}
		if want := r.Numbers("InterfaceIndex"); len(want) > 0 && !slices.Contains(want, ifIndex(a)) {
			continue
		}
		media := "802.3"
		if a.InfiniBand != nil {
			media = "InfiniBand"
		}
		r.Emit(powershell.NewObject("MSFT_NetAdapter", "Name", "InterfaceDescription", "ifIndex", "Status", "MacAddress", "LinkSpeed").
			With("Name", a.Name).With("InterfaceAlias", a.Name).With("InterfaceDescription", d).With("ifIndex", ifIndex(a)).
			With("InterfaceIndex", ifIndex(a)).With("Status", adapterStatus(a)).With("AdminStatus", map[bool]string{true: "Up", false: "Down"}[a.Enabled]).
			With("MacAddress", dashedMAC(a.MAC)).With("LinkSpeed", speedText(a)).With("Speed", int64(linkSpeed(a))).
			With("MtuSize", int64(a.LinkMTU)).With("MediaType", media).With("DriverProvider", "SoftVPI").With("Wire", a.Wire).
			With("FullDuplex", a.Duplex != "half"))
	}
	return nil
}

func (r *run) setState(on bool) error {
	list, err := r.named()
	if err != nil {
		return err
	}
	for _, a := range list {
		if !r.Should(r.Cmdlet.Name, a.Name) {
			continue
		}
		if err := r.driver.SetAdapter(r.Context, api.AdapterRequest{Adapter: a.Name, Enable: on}); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) restartAdapters() error {
	list, err := r.named()
	if err != nil {
		return err
	}
	for _, a := range list {
		if r.Should(r.Cmdlet.Name, a.Name) {
			if err := r.driver.RestartAdapter(r.Context, a.Name); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *run) renameAdapter() error {
	if _, err := r.named(); err != nil {
		return err
	}
	return fmt.Errorf("%w: names of adapters are in the driver's configuration (softvpi up --adapter %s=...)", api.ErrUnsupported, r.Text("NewName"))
}

// noBinding refuses to bind protocols: those of the system use an interface by its own configuration.
func noBinding(r *run) error {
	if _, err := r.named(); err != nil {
		return err
	}
	list := r.Texts("ComponentID")
	if len(list) == 0 || slices.ContainsFunc(list, func(c string) bool { return !strings.EqualFold(c, "ms_netwnv") }) {
		return &notYet{"the binding of protocols to adapters", "nothing is changed"}
	}
	r.Warn("network virtualization is a part of virtual switches here, as from Windows Server 2012 R2 on: nothing is to be bound or unbound")
	return nil
}

// getAdapterQoS shows what ports do about priorities, in the words of the operative settings.
func (r *run) getAdapterQoS() error {
	list, err := r.havePriorities(r.Texts("Name"))
	if err != nil {
		return err
	}
	for _, a := range list {
		o := powershell.NewObject("MSFT_NetAdapterQosSettingData", "Name", "Enabled", "OperationalTrafficClasses", "OperationalFlowControl",
			"OperationalClassifications")
		o.List = true
		e, err := qos.ParseClasses(a.QoS.Operative.PrioTC, a.QoS.Operative.TCBandwidth)
		if err != nil {
			return err
		}
		r.Emit(o.With("Name", a.Name).With("Enabled", a.QoS.Off == "").With("OperationalTrafficClasses", classesText(e)).
			With("OperationalFlowControl", flowText(a.QoS.Operative.PFC)).
			With("OperationalClassifications", classificationsText(a)).With("NotEnforced", a.QoS.Enforced.Missing()))
	}
	return nil
}

func flowText(pfc string) string {
	if pfc == qos.None {
		return "All Priorities Disabled"
	}
	set, err := qos.ParsePriorities(pfc)
	if err != nil {
		return pfc
	}
	var list []uint8
	for p := range uint8(qos.Priorities) {
		if set>>p&1 != 0 {
			list = append(list, p)
		}
	}
	return "Priority " + ranges(list) + " Enabled"
}

func classesText(e qos.ETS) string {
	rows := []string{"TC TSA    Bandwidth Priorities", "-- ---    --------- ----------"}
	for c := range uint8(qos.Classes) {
		list := prioritiesOf(e, c)
		if len(list) == 0 {
			continue
		}
		name, share := "Strict", ""
		if e.Algorithm[c] == qos.Enhanced {
			name, share = "ETS", fmt.Sprintf("%d%%", e.Bandwidth[c])
		}
		rows = append(rows, fmt.Sprintf("%2d %-6s %-9s %s", c, name, share, ranges(list)))
	}
	return strings.Join(rows, "\n")
}

func classificationsText(a *api.AdapterStatus) string {
	rows := []string{"Protocol  Port/Type Priority", "--------  --------- --------"}
	for _, p := range policies([]*api.AdapterStatus{a}) {
		kind, port := "TCP/UDP", ""
		if p.Protocol != 0 {
			kind = protocolName(p.Protocol)
		}
		switch {
		case p.Default:
			kind = "Default"
		case p.NetDirect != 0:
			kind, port = "NetDirect", fmt.Sprint(p.NetDirect)
		case p.Last != 0:
			port = fmt.Sprint(p.First)
			if p.Last != p.First {
				port += fmt.Sprintf("-%d", p.Last)
			}
		}
		if p.Priority >= 0 {
			rows = append(rows, fmt.Sprintf("%-9s %-9s %d", kind, port, p.Priority))
		}
	}
	if len(rows) == 2 {
		return "none"
	}
	return strings.Join(rows, "\n")
}

func (r *run) statistics() error {
	list, err := r.named()
	if err != nil {
		return err
	}
	for _, a := range list {
		r.Emit(powershell.NewObject("MSFT_NetAdapterStatisticsSettingData", "Name", "ReceivedBytes", "ReceivedPackets", "SentBytes", "SentPackets").
			With("Name", a.Name).With("ReceivedBytes", int64(a.Link.ReceivedBytes)).With("ReceivedPackets", int64(a.Link.ReceivedPackets)).
			With("SentBytes", int64(a.Link.SentBytes)).With("SentPackets", int64(a.Link.SentPackets)).
			With("OutboundPacketErrors", int64(a.Link.SendErrors)).With("ReceivedDiscardedPackets", int64(a.Link.ReceiveDrops)))
	}
	return nil
}

func (r *run) hardware() error {
	list, err := r.named()
	if err != nil {
		return err
	}
	for _, a := range list {
		l := a.Location()
		r.Emit(powershell.NewObject("MSFT_NetAdapterHardwareInfoSettingData", "Name", "Segment", "Bus", "Device", "Function", "Slot", "NumaNode",
			"PcieLinkSpeed", "PcieLinkWidth").With("Name", a.Name).With("Segment", int64(0)).With("Bus", int64(l.Bus)).With("Device", int64(l.Device)).
			With("Function", int64(l.Function)).With("Slot", nil).With("NumaNode", nil).With("PcieLinkSpeed", "Unknown").With("PcieLinkWidth", nil))
	}
	return nil
}
