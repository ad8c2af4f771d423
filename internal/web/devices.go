package web

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/softvpi/softvpi/internal/api"
)

// devices shows the machine's device tree: adapters with their ports, and the programs that use them.
func (s *Server) devices(q *request) error {
	v, err := s.view(q, "Devices", "devices")
	if err != nil {
		return err
	}
	var programs []api.ProgramStatus
	if err := s.client.Get(q.r.Context(), "/programs", nil, &programs); err != nil {
		return err
	}
	v.Data = programs
	return s.show(q, "devices", v)
}

// setState enables or disables an adapter.
func (s *Server) setState(q *request) error {
	name, enable := q.r.PathValue("name"), q.r.PostForm.Get("enable")
	on, err := strconv.ParseBool(enable)
	if err != nil {
		return &api.FieldError{Field: "enable", Value: strconv.Quote(enable), Allowed: "true, false"}
	}
	if err := s.client.SetAdapter(q.r.Context(), api.AdapterRequest{Adapter: name, Enable: on}); err != nil {
		return err
	}
	return s.done(q, name+map[bool]string{true: " is enabled.", false: " is disabled."}[on], adapterURL(name))
}

// restart restarts an adapter and returns to the tab from which that was requested.
func (s *Server) restart(q *request) error {
	name := q.r.PathValue("name")
	if err := s.client.RestartAdapter(q.r.Context(), name); err != nil {
		return err
	}
	back := adapterURL(name)
	for _, t := range tabs {
		if t.Name == q.r.PostForm.Get("tab") {
			back = adapterURL(name, t.Path)
		}
	}
	return s.done(q, name+" was restarted.", back)
}

// fact is a line in the Information tab.
type fact struct{ Name, Value string }

// facts are the contents of the tab (WinOF 5.50, 4.2.4.2: software, firmware, bus interface, identity,
// port and link).
type facts struct {
	Title string
	Facts []fact
}

// information shows the Information tab.
func (s *Server) information(q *request) error {
	v, err := s.adapterView(q, "information")
	if err != nil {
		return err
	}
	v.Data = s.factsOf(q.r.Context(), v.Adapter)
	return s.show(q, "information", v)
}

// saveInformation returns the tab as a file (WinOF 5.50, 4.2.4.2: Save to File).
func (s *Server) saveInformation(q *request) error {
	v, err := s.adapterView(q, "information")
	if err != nil {
		return err
	}
	var b strings.Builder
	b.WriteString(v.Adapter.Name + " of " + s.cfg.Machine + ", " + s.cfg.Now().Format(time.RFC3339) + "\n")
	for _, group := range s.factsOf(q.r.Context(), v.Adapter) {
		b.WriteString("\n" + group.Title + "\n")
		for _, f := range group.Facts {
			b.WriteString("  " + f.Name + ": " + f.Value + "\n")
		}
	}
	q.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	q.w.Header().Set("Content-Disposition", `attachment; filename="information.txt"`)
	_, _ = q.w.Write([]byte(b.String())) // fails if the reader has gone
	return nil
}

func (s *Server) factsOf(ctx context.Context, a *api.AdapterStatus) []facts {
	var addresses []string
	for _, x := range a.Addresses {
		addresses = append(addresses, x.String())
	}
	out := []facts{
		{"Adapter", []fact{
			{"Name", a.Name}, {"Generation", a.Generation + map[string]string{"mlx4": " (ConnectX-3 class)",
				"mlx5": " (ConnectX-4 class and later)"}[a.Generation]},
			{"Driver version", s.cfg.Version}, {"Firmware version", a.Firmware.Version},
			{"Board (PSID)", a.Firmware.PSID},
			{"Bus interface", a.Location().Text()}, {"Device", a.DeviceName}, {"Node GUID", guid(a.NodeGUID)}, {"MAC address", a.MAC},
			{"Registry key", `HKLM\SYSTEM\CurrentControlSet\Control\Class\{4d36e972-e325-11ce-bfc1-08002be10318}\` + four(a.Number)},
		}},
		{fmt.Sprintf("Port %d of %d", a.Port, a.Ports), append(portFacts(a),
			fact{"Addresses", or(strings.Join(addresses, ", "), "none")},
			fact{"Path of connections", a.Path}, fact{"Impairment", or(a.Impairment, "none")})},
		{"Traffic", []fact{
			{"Sent", count(a.Link.SentPackets) + " packets, " + count(a.Link.SentBytes) + " bytes"},
			{"Received", count(a.Link.ReceivedPackets) + " packets, " + count(a.Link.ReceivedBytes) + " bytes"},
			{"Dropped at the socket", count(a.Link.ReceiveDrops)}, {"Sent again", count(a.Retransmits)},
			{"Send errors", count(a.Link.SendErrors)},
		}},
	}
	for i := range a.IPoIB {
		out = append(out, ipoibFacts(&a.IPoIB[i]))
	}
	if a.Ethernet != nil {
		out = append(out, ethernetFacts(a.Ethernet))
	}
	if r, err := s.client.Resources(ctx, a.Name); err == nil {
		objects := facts{Title: "Objects"}
		for _, x := range r.Objects {
			objects.Facts = append(objects.Facts, fact{x.Name, strconv.Itoa(x.Used) + " of " + count(x.Max)})
		}
		out = append(out, objects)
	}
	return out
}

// portFacts returns the facts about a port, depending on its link layer.
func portFacts(a *api.AdapterStatus) []fact {
	p := a.InfiniBand
	if p == nil {
		return []fact{
			{"State", stateOf(a)}, {"Link type", "Ethernet"}, {"Wire", or(a.Wire, "none")}, {"Link speed", speed(a)}, {"RoCE mode", a.RoCE},
			{"UDP port", number(uint64(a.UDPPort))},
			{"Source ports", or(a.SourcePorts, "none")}, {"Link MTU", number(uint64(a.LinkMTU)) + " bytes"},
			{"Path MTU", number(uint64(a.ActiveMTU)) + " bytes"},
		}
	}
	var keys []string
	for _, k := range p.PKeys {
		keys = append(keys, fmt.Sprintf("0x%04x", k))
	}
	return []fact{
		{"State", stateOf(a)}, {"Link type", "InfiniBand"}, {"Link state", p.State + " (" + p.Physical + ")"},
		{"Link speed", or(p.Rate, "down")},
		{"LID", number(uint64(p.LID)) + ", LMC " + number(uint64(p.LMC))}, {"Subnet manager",
			"LID " + number(uint64(p.SMLID)) + ", SL " + number(uint64(p.SMSL))},
		{"Port GUID", guid(p.PortGUID)}, {"P_Keys", or(strings.Join(keys, ", "), "none")},
		{"MTU", fmt.Sprintf("%d bytes of %d", p.MTU, p.MaxMTU)},
	}
}

// ipoibFacts returns the facts about an IPoIB interface.
func ipoibFacts(x *api.IPoIBStatus) facts {
	title, key, c := "IPoIB", "none", x.Counters
	if x.IName != "" {
		title = "IPoIB, " + x.Connection + " (" + x.IName + ")"
	}
	if x.PKey != 0 {
		key = fmt.Sprintf("0x%04x", x.PKey)
	}
	return facts{title, []fact{
		{"State", x.State}, {"Network interface", or(x.Interface, "none")}, {"IPoIB MTU", number(uint64(x.MTU)) + " bytes"}, {"P_Key", key},
		{"Physical address", x.MAC}, {"Link-layer address", x.Address}, {"Broadcast group", or(x.Broadcast, "none")},
		{"End points", fmt.Sprintf("%d local, %d multicast, %d remote", x.Local, x.Multicast, x.Remote)},
		{"IP packets sent", count(c["sent_packets"]) + " packets, " + count(c["sent_bytes"]) + " bytes"},
		{"IP packets received", count(c["received_packets"]) + " packets, " + count(c["received_bytes"]) + " bytes"},
		{"Dropped", count(c["outbound_discarded_packets"]+c["outbound_error_packets"]) + " to send, " +
			count(c["received_discarded_packets"]+c["received_error_packets"]) + " received"},
	}}
}

// ethernetFacts returns the facts about an Ethernet function.
func ethernetFacts(e *api.EthernetStatus) facts {
	c := e.Counters
	f := facts{"Ethernet", []fact{
		{"State", hostState(e)}, {"Host", e.Host}, {"MTU", number(uint64(e.MTU)) + " bytes"},
		{"Physical address", e.MAC}, {"Receive queues", strconv.Itoa(e.Queues)},
		{"Frames sent", count(c["sent_packets"]) + " frames, " + count(c["sent_bytes"]) + " bytes"},
		{"Frames received", count(c["received_packets"]) + " frames, " + count(c["received_bytes"]) + " bytes"},
		{"Dropped", count(c["outbound_discarded_packets"]+c["outbound_error_packets"]) + " to send, " +
			count(c["received_discarded_packets"]) + " received"},
		{"Passes", passes(&e.Filter)},
		{"Not for the host", count(c["dropped_address_frames"]+c["dropped_vlan_frames"]+c["dropped_own_frames"]) + " frames, " +
			count(c["dropped_long_frames"]) + " too long"},
		{"Large sends", count(c["sent_large_frames"]) + ", cut into " + count(c["sent_segments"]) + " segments"},
		{"Coalesced", count(c["coalesced_segments"]) + " segments to " + count(c["coalescing_events"]) + " frames"},
		{"Checksum errors", count(c["received_checksum_errors"])},
	}}
	for q, r := range e.Rings {
		f.Facts = append(f.Facts, fact{fmt.Sprintf("Queue %d, processor %d", q, r.Processor),
			count(r.SentPackets) + " packets sent, " + count(r.ReceivedPackets) + " received"})
	}
	return f
}

// hostState returns the state of an Ethernet function for its host.
func hostState(e *api.EthernetStatus) string {
	switch {
	case !e.Up:
		return "down"
	case e.Asleep:
		return "up, its host asleep"
	}
	return "up"
}

// passes says which frames go to the host of an Ethernet function.
func passes(f *api.FilterStatus) string {
	var all []string
	for _, x := range []struct {
		on   bool
		name string
	}{
		{f.Directed, "directed"}, {f.Multicast && !f.AllMulticast, "multicast"}, {f.AllMulticast, "all multicast"},
		{f.Broadcast, "broadcast"}, {f.Promiscuous, "promiscuous"},
	} {
		if x.on {
			all = append(all, x.name)
		}
	}
	if f.PacketFilter == 0 {
		return "nothing"
	}
	vlans := "untagged"
	switch {
	case f.AnyVLAN:
		vlans = "every VLAN"
	case !f.Untagged && len(f.VLANs) > 0:
		vlans = "VLAN " + number(uint64(f.VLANs[0])) + " alone"
	}
	return strings.Join(all, ", ") + "; " + vlans + "; up to " + number(uint64(f.LongestFrame)) + " bytes"
}

// number returns n in decimal.
func number(n uint64) string { return strconv.FormatUint(n, 10) }

func or(text, none string) string {
	if text == "" {
		return none
	}
	return text
}

// speed describes the speed of an Ethernet port's link.
func speed(a *api.AdapterStatus) string {
	if a.Speed == 0 && a.Up && a.Enabled {
		return "not limited: as fast as the machine"
	}
	text := strconv.FormatFloat(float64(a.Speed)/1e9, 'f', -1, 64) + " Gbit/s"
	if a.Duplex != "" {
		text += ", " + a.Duplex + " duplex"
	}
	return text
}

func four(n int) string {
	s := strconv.Itoa(n)
	return strings.Repeat("0", max(0, 4-len(s))) + s
}

// guid formats a GUID like the manuals.
func guid(n uint64) string {
	s := strconv.FormatUint(n, 16)
	s = strings.Repeat("0", 16-len(s)) + s
	return s[:4] + ":" + s[4:8] + ":" + s[8:12] + ":" + s[12:]
}
