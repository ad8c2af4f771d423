package api

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// WriteText prints the status for people.
func (s *Status) WriteText(w io.Writer) {
	fmt.Fprintf(w, "driver %s, process %d, since %s\n", s.Version, s.PID, s.Started.Format("2006-01-02 15:04:05"))
	if s.Attach == "" {
		fmt.Fprintf(w, "programs attach at %s\n", s.Socket)
		s.Held.writeText(w)
	} else {
		fmt.Fprintf(w, "programs cannot attach: %s\n", s.Attach)
	}
	if s.Volatile != "" {
		fmt.Fprintf(w, "nothing is kept: %s\n", s.Volatile)
	}
	if s.Died != nil {
		fmt.Fprintf(w, "%s\n", s.Died)
	}
	if s.Panics > 0 {
		fmt.Fprintf(w, "panics of requests to the management interface: %d, each a fault of the driver; see softvpi events list\n", s.Panics)
	}
	for i := range s.Adapters {
		s.Adapters[i].writeText(w)
	}
	for i := range s.Switches {
		s.Switches[i].writeText(w)
	}
	for i := range s.Teams {
		s.Teams[i].writeText(w)
	}
	for i := range s.VirtualSwitches {
		fmt.Fprintln(w)
		s.VirtualSwitches[i].WriteText(w)
	}
	if len(s.Programs) == 0 {
		return
	}
	fmt.Fprintln(w, "\nPrograms")
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "  name\tprocess\tuser\tmemory\tQPs\tCQs\tregions\theld\tdescriptors")
	for _, p := range s.Programs {
		fmt.Fprintf(t, "  %s\t%d\t%d\t%s\t%d\t%d\t%d\t%s\t%d\n", clean(p.Name), p.PID, p.UID, p.MemoryPath, p.Objects["qp"],
			p.Objects["cq"], p.Objects["mr"], mebibytes(p.MemoryBytes), p.Descriptors)
	}
	t.Flush()
}

// String says in one line how the driver died, and where to look.
func (d *Death) String() string {
	where := "nothing of it could be kept"
	if d.Folder != "" {
		where = "see " + d.Folder
	}
	return fmt.Sprintf("the driver before died at %s: %s; %s", d.Time.Format("2006-01-02 15:04:05"), clean(d.Cause), where)
}

// writeText prints what is held for programs.
func (h *HeldStatus) writeText(w io.Writer) {
	if h == nil {
		return
	}
	fmt.Fprintf(w, "held for programs: %s of %s, at most %s for one; %d descriptors, at most %d for one; %d requests refused\n",
		mebibytes(h.Memory.Used), mebibytes(h.Memory.Total), mebibytes(h.Memory.PerProgram), h.Descriptors.Used, h.Descriptors.PerProgram,
		h.Memory.Refused+h.Descriptors.Refused)
	for i := range h.Containers {
		h.Containers[i].WriteText(w)
	}
}

// WriteText prints what the programs of a container hold, of what they may.
func (c *ContainerStatus) WriteText(w io.Writer) {
	limit, most := "no limit of its own", ""
	if c.MemoryLimit != 0 {
		limit = mebibytes(c.MemoryLimit)
	}
	if c.DescriptorsLimit != 0 {
		most = fmt.Sprintf(" of %d", c.DescriptorsLimit)
	}
	fmt.Fprintf(w, "  container %d: %s of %s; %d%s descriptors; %d requests refused; %s\n", c.Number, mebibytes(c.Memory), limit, c.Descriptors,
		most, c.Refused, c.Socket)
}

func mebibytes(n uint64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

func (a *AdapterStatus) writeText(w io.Writer) {
	state := "down"
	switch {
	case !a.Enabled:
		state = "disabled"
	case a.Up:
		state = "up"
	}
	addrs := make([]string, len(a.Addresses))
	for i, x := range a.Addresses {
		addrs[i] = x.String()
	}
	if a.InfiniBand != nil {
		a.writePort(w, state, addrs)
	} else {
		a.writeEthernet(w, state, addrs)
	}
	if a.Ports > 1 {
		fmt.Fprintf(w, "  port %d of device %s, node GUID 0x%016x, %s\n", a.Port, clean(a.DeviceName), a.NodeGUID, a.Location().Text())
	}
	a.writeFunctions(w)
	for i := range a.VLANs {
		a.VLANs[i].writeText(w)
	}
	a.writeRest(w)
}

// writePort prints an InfiniBand port.
func (a *AdapterStatus) writePort(w io.Writer, state string, addrs []string) {
	p := a.InfiniBand
	rate := "no link"
	if p.Rate != "" {
		rate = fmt.Sprintf("%s (%g Gb/s)", p.Rate, float64(p.Mbps)/1000)
	}
	fmt.Fprintf(w, "\n%s: %s, %s, InfiniBand %s (%s), LID %d, SM LID %d, rate %s, MTU %d of %d, path %s\n",
		clean(a.Name), state, strings.Join(addrs, " "), p.State, p.Physical, p.LID, p.SMLID, rate, p.MTU, p.MaxMTU, a.Path)
	keys := make([]string, len(p.PKeys))
	for i, k := range p.PKeys {
		keys[i] = fmt.Sprintf("0x%04x", k)
	}
	fmt.Fprintf(w, "  generation %s, registry number %04d, port GUID 0x%016x, P_Keys %s%s\n", a.Generation, a.Number, p.PortGUID,
		or(strings.Join(keys, " "), "none"),
		map[bool]string{true: ", keys wait for a restart"}[a.Pending])
	fmt.Fprintf(w, "  impairment: %s\n", or(a.Impairment, "none"))
	for i := range a.IPoIB {
		a.IPoIB[i].writeText(w, "  ")
	}
}

// writeText prints an IPoIB interface in two lines with an indent.
func (x *IPoIBStatus) writeText(w io.Writer, indent string) {
	name := ""
	if x.IName != "" {
		name = fmt.Sprintf(" %s (%s)", clean(x.Connection), clean(x.IName))
	}
	key := "no partition"
	if x.PKey != 0 {
		key = fmt.Sprintf("P_Key 0x%04x", x.PKey)
	}
	fmt.Fprintf(w, "%sIPoIB%s: %s, interface %s, MTU %d, %s, MAC address %s, end points: %d local, %d multicast, %d remote\n",
		indent, name, x.State, or(clean(x.Interface), "none"), x.MTU, key, x.MAC, x.Local, x.Multicast, x.Remote)
	c := x.Counters
	fmt.Fprintf(w, "%s  sent %d packets %d bytes, received %d packets %d bytes, %d dropped to send, %d dropped received\n",
		indent, c["sent_packets"], c["sent_bytes"], c["received_packets"], c["received_bytes"],
		c["outbound_discarded_packets"]+c["outbound_error_packets"], c["received_discarded_packets"]+c["received_error_packets"])
}

// writeText prints an Ethernet function.
func (e *EthernetStatus) writeText(w io.Writer) {
	c := e.Counters
	fmt.Fprintf(w, "  Ethernet: %s, host %s, MTU %d, receive queues: %d\n", map[bool]string{true: "up", false: "down"}[e.Up]+
		map[bool]string{true: ", asleep"}[e.Asleep], clean(e.Host), e.MTU,
		e.Queues)
	fmt.Fprintf(w, "    sent %d frames %d bytes, received %d frames %d bytes, %d dropped to send, %d dropped received\n", c["sent_packets"],
		c["sent_bytes"], c["received_packets"], c["received_bytes"], c["outbound_discarded_packets"]+c["outbound_error_packets"],
		c["received_discarded_packets"]+c["dropped_malformed_frames"]+c["dropped_address_frames"]+c["dropped_vlan_frames"]+
			c["dropped_long_frames"]+c["dropped_own_frames"])
	if len(e.Loop) > 0 {
		fmt.Fprintf(w, "    served on processors %v only\n", strings.Trim(fmt.Sprint(e.Loop), "[]"))
	}
	for q, r := range e.Rings {
		fmt.Fprintf(w, "    queue %d on processor %d: sent %d packets %d bytes, received %d packets %d bytes, %d dropped received\n", q,
			r.Processor, r.SentPackets, r.SentBytes, r.ReceivedPackets, r.ReceivedBytes, r.Dropped)
	}
}

// Encapsulation returns the RoCE mode as text, and where packets have one, with the UDP port behind a separator.
func (a *AdapterStatus) Encapsulation(separator string) string {
	if a.RoCE != "v2" {
		return "RoCE " + a.RoCE
	}
	return fmt.Sprintf("RoCE v2%sUDP port %d", separator, a.UDPPort)
}

// writeEthernet prints an Ethernet port.
func (a *AdapterStatus) writeEthernet(w io.Writer, state string, addrs []string) {
	fmt.Fprintf(w, "\n%s: %s, %s, %s, path MTU %d of link MTU %d, path %s\n",
		clean(a.Name), state, strings.Join(addrs, " "), a.Encapsulation(" on "), a.ActiveMTU, a.LinkMTU, a.Path)
	fmt.Fprintf(w, "  generation %s, registry number %04d, MAC address %s%s\n", a.Generation, a.Number, a.MAC,
		map[bool]string{true: ", keys wait for a restart"}[a.Pending])
	fmt.Fprintf(w, "  wire: %s, %s; impairment: %s; source ports: %s; %s\n",
		or(clean(a.Wire), "-"), a.speed(), or(a.Impairment, "none"), or(a.SourcePorts, "-"), or(a.Frames, "no frames"))
	if a.Ethernet != nil {
		a.Ethernet.writeText(w)
	}
	a.QoS.writeStatus(w)
	a.FlowControl.writeStatus(w)
}

// speed describes the speed of an Ethernet port's link.
func (a *AdapterStatus) speed() string {
	switch {
	case a.Speed != 0:
		return fmt.Sprintf("%g Gb/s %s duplex", float64(a.Speed)/1e9, a.Duplex)
	case a.Enabled && a.Up:
		return "speed not known"
	}
	return "0 Gb/s"
}

// writeRest prints what both kinds of ports have.
func (a *AdapterStatus) writeRest(w io.Writer) {
	if a.NoRDMA {
		fmt.Fprintln(w, "  programs have no RDMA: *NetworkDirect is 0")
	}
	a.Healing.writeStatus(w)
	fmt.Fprintf(w, "  link: sent %d packets %d bytes, received %d packets %d bytes, %d dropped at the socket (buffer %d bytes), %d retransmitted\n",
		a.Link.SentPackets, a.Link.SentBytes, a.Link.ReceivedPackets, a.Link.ReceivedBytes, a.Link.ReceiveDrops, a.Link.ReceiveBuffer,
		a.Retransmits)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, g := range a.GIDs {
		fmt.Fprintf(t, "  GID %d\t%s\t%s\n", g.Index, g.GID, map[bool]string{true: g.RoCE, false: "InfiniBand"}[a.InfiniBand == nil])
	}
	if len(a.QPs) > 0 {
		fmt.Fprintln(t, "  QP\ttype\tstate\towner\tprocess\tpeer\tremote QP\tpath\tMTU\trate")
	}
	for i, q := range a.QPs {
		if i == maxListedQPs {
			fmt.Fprintf(t, "  ... and %d more (all of them with --json)\n", len(a.QPs)-i)
			break
		}
		fmt.Fprintf(t, "  %d\t%s\t%s\t%s\t%d\t%s\t%d\t%s\t%d\t%s\n", q.Number, q.Type, q.State, clean(q.Owner), q.PID, or(q.PeerName(), "-"),
			q.RemoteNumber, q.Path, q.MTU, q.RateText())
	}
	t.Flush()
}

func or(s, none string) string {
	if s == "" {
		return none
	}
	return s
}

// maxListedQPs limits how many QPs of an adapter the text shows.
const maxListedQPs = 64

// clean replaces control characters, which must not reach the terminal.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, s)
}
