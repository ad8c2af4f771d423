package cmdlets

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/events"
	"github.com/softvpi/softvpi/internal/powershell"
)

// noSMB is what is said of file sharing, which the views are about.
const noSMB = "SMB Direct is not in yet: nothing here shares files"

func smb() []cmdlet {
	view := func(name, help string, do func(*run) error) cmdlet {
		return cmdlet{powershell.Cmdlet{Name: name, Help: help}, do}
	}
	configuration := func(what string) func(*run) error {
		return func(r *run) error {
			r.Warn("%s", noSMB)
			r.Emit(powershell.NewObject("MSFT_Smb"+what+"Configuration").With("EnableMultichannel", false).With("EnableSMB2Protocol", false))
			return nil
		}
	}
	none := func(r *run) error { r.Warn("%s", noSMB); return nil }
	return []cmdlet{
		view("Get-SmbClientConfiguration", "Say that there is no SMB client.", configuration("Client")),
		view("Get-SmbServerConfiguration", "Say that there is no SMB server.", configuration("Server")),
		view("Get-SmbClientNetworkInterface", "List the adapters as an SMB client would use them.", func(r *run) error { return r.smbInterfaces("Client") }),
		view("Get-SmbServerNetworkInterface", "List the adapters as an SMB server would use them.", func(r *run) error { return r.smbInterfaces("Server") }),
		view("Get-SmbConnection", "List SMB's connections, of which there are none.", none),
		view("Get-SmbMultichannelConnection", "List SMB's channels, of which there are none.", none),
	}
}

// keyOn reports whether a key of an adapter switches something on.
func (r *run) keyOn(a *api.AdapterStatus, key string) (bool, error) {
	list, err := r.driver.Settings(r.Context, a.Name)
	for _, s := range list {
		if strings.EqualFold(s.Name, key) {
			return s.Value != "0", nil
		}
	}
	return false, err
}

func (r *run) smbInterfaces(side string) error {
	list, err := r.adapters(nil)
	if err != nil {
		return err
	}
	for _, a := range list {
		rss, err := r.keyOn(a, "*RSS")
		if err != nil {
			return err
		}
		rdma, err := r.keyOn(a, "*NetworkDirect")
		if err != nil {
			return err
		}
		var addresses []any
		for _, x := range a.Addresses {
			addresses = append(addresses, x.String())
		}
		o := powershell.NewObject("MSFT_Smb"+side+"NetworkInterface", "FriendlyName", "InterfaceIndex", "RssCapable", "RdmaCapable", "Speed", "IpAddresses")
		o.With("FriendlyName", a.Name).With("InterfaceIndex", ifIndex(a)).With("RssCapable", rss && a.Ethernet != nil).With("RdmaCapable", rdma).
			With("Speed", speedText(a)).With("IpAddresses", addresses)
		r.Emit(o)
	}
	return nil
}

// netDirect are views of connections and offloads of the whole machine, and of events.
func netDirect() []cmdlet {
	flag := func(name string) powershell.Param {
		return powershell.Param{Name: name, Kind: powershell.Switch, Help: "As in Windows."}
	}
	return []cmdlet{
		{powershell.Cmdlet{Name: "netstat", Aliases: []string{"netstat.exe"}, Module: "Programs",
			Help: "List the RDMA connections in the form of netstat -xan.", Params: []powershell.Param{flag("xan"), flag("x"), flag("a"), flag("n")}},
			(*run).netstat},
		{powershell.Cmdlet{Name: "Get-NetOffloadGlobalSetting", Module: "NetTCPIP", Help: "Show whether RDMA and RSS are on, on any adapter."},
			(*run).globalOffload},
		{powershell.Cmdlet{Name: "Get-WinEvent", Module: "Microsoft.PowerShell.Diagnostics", Help: "List the driver's events, the newest first.",
			Params: []powershell.Param{{Name: "LogName", Kind: powershell.String, Position: 1, Help: "System; other logs of Windows are not here."},
				{Name: "MaxEvents", Kind: powershell.Number, Min: 1, Max: 10000, Help: "At most so many."}}}, (*run).winEvents},
	}
}

func (r *run) netstat() error {
	var page api.Connections
	if err := r.driver.Get(r.Context, "/connections", url.Values{"limit": {"10000"}}, &page); err != nil {
		return err
	}
	index := map[string]int64{}
	list, err := r.adapters(nil)
	if err != nil {
		return err
	}
	for _, a := range list {
		index[a.Name] = ifIndex(a)
	}
	r.Emit("Active NetworkDirect Connections, Listeners, SharedEndpoints")
	r.Emit("")
	r.Emit(fmt.Sprintf("  %-6s %7s %-14s %-22s %-22s %s", "Mode", "IfIndex", "Type", "Local Address", "Foreign Address", "PID"))
	for _, c := range page.Items {
		if peer := c.PeerName(); peer != "" {
			r.Emit(fmt.Sprintf("  %-6s %7d %-14s %-22s %-22s %d", "User", index[c.Adapter], "Connection", "QP "+strconv.Itoa(int(c.Number)), peer, c.PID))
		}
	}
	return nil
}

func (r *run) globalOffload() error {
	list, err := r.adapters(nil)
	if err != nil {
		return err
	}
	any := map[string]bool{}
	for _, a := range list {
		for _, key := range []string{"*NetworkDirect", "*RSS", "*RscIPv4", "*PacketDirect"} {
			on, err := r.keyOn(a, key)
			if err != nil {
				return err
			}
			any[key] = any[key] || on
		}
	}
	state := func(key string) string { return map[bool]string{true: "Enabled", false: "Disabled"}[any[key]] }
	o := powershell.NewObject("MSFT_NetOffloadGlobalSetting")
	r.Emit(o.With("ReceiveSideScaling", state("*RSS")).With("ReceiveSegmentCoalescing", state("*RscIPv4")).With("Chimney", "Disabled").
		With("TaskOffload", "Enabled").With("NetworkDirect", state("*NetworkDirect")).With("PacketCoalescingFilter", "Disabled"))
	return nil
}

func (r *run) winEvents() error {
	log := r.Text("LogName")
	if log != "" && !strings.EqualFold(log, "System") {
		r.Warn("log %q of Windows is not here; the driver's events are in log System", log)
		return nil
	}
	limit := int64(100)
	if r.Given("MaxEvents") {
		limit = r.Number("MaxEvents")
	}
	var page events.Page
	if err := r.driver.Get(r.Context, "/events", url.Values{"limit": {strconv.FormatInt(limit, 10)}}, &page); err != nil {
		return err
	}
	for i := len(page.Events) - 1; i >= 0; i-- {
		e := page.Events[i]
		r.Emit(powershell.NewObject("EventLogRecord", "TimeCreated", "Id", "LevelDisplayName", "Message").With("TimeCreated", e.Time.Format("2006-01-02 15:04:05")).
			With("Id", int64(e.ID)).With("LevelDisplayName", e.Severity).With("ProviderName", e.Source).With("Message", e.Message))
	}
	return nil
}
