package device

import (
	"context"

	"github.com/softvpi/softvpi/internal/cm"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/dcb"
	"github.com/softvpi/softvpi/internal/encap"
	"github.com/softvpi/softvpi/internal/healing"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/port"
	"github.com/softvpi/softvpi/internal/transport"
)

// Counters are the counter values of an adapter at one moment. Those that only grow do so for the lifetime
// of the Host, even if the adapter is disabled or its addresses change, but not if its port is mended.
type Counters struct {
	Adapter uint32 // index
	Name    string
	Enabled bool
	// Restarts is how often the adapter was enabled after having been disabled, and Before the counters at
	// the last time; nil: never.
	Restarts  uint64
	Before    *Counters
	Transport transport.Counters
	CM        cm.Counters
	Encap     encap.Counters
	// Link are those of all links of the port, closed ones included. If the port has other adapters, the packets are this one's.
	Link link.Stats
	// RDMA are the packets of the RDMA function among them, with those for other adapters of the port, which no link carries.
	RDMA  port.FrameCounters
	Rings RingCounters
	// FrameOverhead is the number of bytes per packet that Link does not count, from the Ethernet header
	// on.
	FrameOverhead            uint64
	CQOverflows, EQOverflows uint64 // EQOverflows, BadDoorbells and Commands: of all adapters
	BadDoorbells, LinkDowns  uint64
	Doorbells, Commands      uint64 // of programs
	ErrorQPs                 uint64 // queue pairs that are in the error state now
	MRPages                  uint64 // of 4 KB, that memory regions touch
	LimitedFlows             uint64 // queue pairs whose rate congestion limits now
	RetransmittedQP          uint64 // number of the queue pair that last sent a packet again; 0: none did
	Objects                  ObjectCounts
	// Ethernet is the adapter's Ethernet function; nil: it has none.
	Ethernet *EthernetStatus
	// Sent and Arrived are the frames of each priority, and of none (port.Untagged), that the adapter's port has sent and received by
	// its wires. If the port has other adapters, theirs are among them.
	Sent, Arrived [port.Untagged + 1]port.Tally
	// LLDP are those of the agent of its port, if that is its own.
	LLDP dcb.Counters
	// Flow are those of the flow control of its port, if that is its own.
	Flow FlowCounters
	// Healing are those of whoever watches the adapter; the Host leaves them at 0.
	Healing healing.Counters
}

// Counters returns the counters of all adapters. It holds the loop lock while copying them; apart from that,
// reading is free.
func (h *Host) Counters() []Counters {
	h.lock()
	defer h.unlock()
	h.foldAll()
	out := make([]Counters, 0, len(h.adapters))
	for _, a := range h.adapters {
		if !a.virtual() {
			out = append(out, a.words())
		}
	}
	return out
}

func (a *adapter) words() Counters {
	s, p := a.linkStats(), a.port.Counters()
	return Counters{
		Sent: p.Sent, Arrived: p.Arrived,
		Adapter: a.index, Name: a.name, Enabled: a.enabled, Restarts: a.restarts, Before: a.before,
		Transport: *a.engine.Counters(), CM: *a.cm.Counters(), Encap: a.links.Counters(), Link: s,
		Rings: a.port.rings, FrameOverhead: a.frameOverhead(), CQOverflows: a.cqOverflows, EQOverflows: a.host.eventOverflows,
		BadDoorbells: a.host.badDoorbells, LinkDowns: a.linkDowns, Doorbells: a.doorbells, Commands: a.host.commands, Objects: a.objects,
		MRPages: a.regionPages, Ethernet: a.nic.status(), LLDP: a.lldpCounters(), Flow: a.flowCounters(), RDMA: a.rdmaFrames(&s),
		LimitedFlows: uint64(a.engine.Limited(a.host.now())),
		ErrorQPs:     uint64(a.engine.Failed()), RetransmittedQP: uint64(a.engine.Retransmitted()),
	}
}

// carried counts the frames of an adapter on a wire of whole frames, where several functions may be.
type carried struct {
	rdma  port.Carried
	other port.Carried // Ethernet function and raw packet queue pairs
}

// counted returns c if the adapter is on such a wire.
func (a *adapter) counted(c *port.Carried) *port.Carried {
	if a.wholeFrames() || a.ib != nil && a.virtual() {
		return c
	}
	return nil
}

// wholeFrames reports whether the adapter's wire is one of whole frames.
func (a *adapter) wholeFrames() bool {
	return a.cfg.Link != nil && a.cfg.Link.Capabilities().Stations != nil
}

// linkStats returns the counters of the port's links. Where several adapters share a link, each has its own frames; what a link of
// whole frames sends and receives itself for an adapter, as the questions of neighbours, is on the wire and counts, too.
func (a *adapter) linkStats() link.Stats {
	s := a.links.Stats()
	if !a.wholeFrames() {
		if own := a.carried.rdma.Wire; a.ib != nil && a.virtual() {
			s.SentPackets, s.SentBytes = own.SentFrames, own.SentBytes
			s.ReceivedPackets, s.ReceivedBytes = own.ReceivedFrames, own.ReceivedBytes
		}
		return s
	}
	if len(a.port.functions) > 1 {
		own := a.carried.rdma.Wire.Plus(a.carried.other.Wire)
		s.SentPackets, s.SentBytes = own.SentFrames, own.SentBytes
		s.ReceivedPackets, s.ReceivedBytes = own.ReceivedFrames, own.ReceivedBytes
	}
	o := a.cfg.Link.Capabilities().Stations.Own(a.mac)
	s.SentPackets += o.SentPackets
	s.SentBytes += o.SentBytes
	s.ReceivedPackets += o.ReceivedPackets
	s.ReceivedBytes += o.ReceivedBytes
	return s
}

// rdmaFrames returns the packets that the RDMA function has sent and received by the links, or to other adapters of the port.
func (a *adapter) rdmaFrames(s *link.Stats) port.FrameCounters {
	if c := a.counted(&a.carried.rdma); c != nil {
		return c.Wire.Plus(c.Inside)
	}
	return port.FrameCounters{SentFrames: s.SentPackets, SentBytes: s.SentBytes, ReceivedFrames: s.ReceivedPackets,
		ReceivedBytes: s.ReceivedBytes}
}

// restarting records what a disabled adapter has counted before it is enabled again.
func (a *adapter) restarting() {
	w := a.words()
	w.Before = nil
	a.before = &w
	a.restarts++
}

// frameOverhead is what layer two and the IP and UDP headers add to what the link counts (WinOF manual:
// bytes include the layer two overhead).
func (a *adapter) frameOverhead() uint64 {
	if a.links.Raw() {
		return 0
	}
	if a.cfg.Addr.Is4() {
		return 14 + 20 + 8
	}
	return 14 + 40 + 8
}

// Counters implements command.Commands: the rows of the manual's tables "Adapter Diagnostics Counters" and
// "RDMA Activity" under their printed names (for rates, the totals), followed by SoftVPI's own.
func (c *Client) Counters(ctx context.Context, index uint32) ([]command.Counter, error) {
	if err := c.enter(ctx); err != nil {
		return nil, err
	}
	defer c.host.unlock()
	c.host.foldAll()
	a, err := c.adapter(index)
	if err != nil {
		return nil, err
	}
	return a.counters(), nil
}

func (a *adapter) counters() []command.Counter {
	var out []command.Counter
	add := func(name string, v uint64) {
		var c command.Counter
		copy(c.Name[:], name)
		c.Value = v
		out = append(out, c)
	}
	h, links := a.host, a.linkStats()
	a.engine.Counters().Each(add)
	add("CQ overflows", a.cqOverflows)
	add("EQ overflows", h.eventOverflows)
	add("Bad doorbells", h.badDoorbells)
	add("Link down events", a.linkDowns)
	flow := a.flowCounters()
	add("Device detected stalled state", flow.States)
	add("Packet detected as stalled", flow.Minor)
	m := a.cm.Counters()
	add("RDMA Accepted Connections", m.Accepted)
	add("RDMA Active Connections", m.Active)
	add("RDMA Completion Queue Errors", 0) // "not supported, and always is set to zero" (WinOF manual 4.9.4.4.2.2)
	add("RDMA Connection Errors", m.ConnectionErrors)
	add("RDMA Failed Connection Attempts", m.FailedAttempts)
	add("RDMA Initiated Connections", m.Initiated)
	frame := a.frameOverhead()
	t := a.engine.Counters()
	rdma := a.rdmaFrames(&links)
	add("RDMA Inbound Bytes/sec", rdma.ReceivedBytes+rdma.ReceivedFrames*frame+t.LocalInboundBytes)
	add("RDMA Inbound Frames/sec", rdma.ReceivedFrames+t.LocalInboundPackets)
	add("RDMA Outbound Bytes/sec", rdma.SentBytes+rdma.SentFrames*frame+t.LocalOutboundBytes)
	add("RDMA Outbound Frames/sec", rdma.SentFrames+t.LocalOutboundPackets)
	add("CM MADs received", m.Received)
	add("CM MADs sent", m.Sent)
	add("CM MADs sent again", m.Retransmitted)
	add("CM requests refused, backlog full", m.BacklogOverflow)
	add("CM requests refused, half-open limit", m.HalfOpenLimit)
	add("CM requests displaced", m.Displaced)
	add("CM requests refused silently", m.Unanswered)
	e := a.links.Counters()
	add("ICRC errors", e.ICRCErrors)
	add("icrc_id_inferred", e.ICRCIDInferred)
	add("icrc_id_open_guesses", e.ICRCIDOpen)
	add("icrc_id_refused", e.ICRCIDRefused)
	add("Malformed frames", e.Malformed)
	add("Frames for others", e.NotForUs)
	add("Link sends refused by the system", links.SendErrors)
	add("Link blocked", links.SendBlocked)
	add("Link routes with another source port", links.OtherSourcePorts)
	add("Link frames sent", links.SentFrames)
	add("Link frames received", links.ReceivedFrames)
	add("Link receive buffer drops", links.ReceiveDrops)
	add("Link receive buffer", uint64(links.ReceiveBuffer)) // bytes, as granted by the system
	return out
}

// AdapterInfo returns the description of an adapter.
func (h *Host) AdapterInfo(index uint32) (command.AdapterInfo, error) {
	h.lock()
	defer h.unlock()
	a, err := h.adapter(index)
	if err != nil {
		return command.AdapterInfo{}, err
	}
	return a.info(), nil
}
