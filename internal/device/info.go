package device

import (
	"context"
	"net/netip"
	"slices"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/encap"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/link/udp"
)

// Adapters implements command.Commands. Disabled adapters are listed too, with
// RoCE 0.
func (c *Client) Adapters(ctx context.Context) ([]command.AdapterInfo, error) {
	if err := c.enter(ctx); err != nil {
		return nil, err
	}
	defer c.host.unlock()
	out := make([]command.AdapterInfo, 0, len(c.host.adapters))
	for _, a := range c.host.adapters {
		i := a.info()
		if c.cfg.MemoryPath == memoryProcessVM {
			i.ProcessorAtomics = 0
		}
		out = append(out, i)
	}
	return out, nil
}

// memoryProcessVM is the ClientConfig.MemoryPath of a program whose own memory is
// copied with process_vm calls: atomics there are a read and a write, which its
// processors do not take for one. In shared segments they would.
const memoryProcessVM = "process_vm"

func (a *adapter) info() command.AdapterInfo {
	l := &a.limits
	i := command.AdapterInfo{
		Index: a.index, Port: 1, GUID: a.guid, Addr: command.AddrFrom(a.cfg.Addr), RoCE: a.cfg.RoCE,
		ActiveMTU: a.mtu, LinkMTU: a.ipMTU, UDPPort: uint32(a.cfg.UDPPort), VendorID: vendorID, DeviceID: deviceID,
		MaxQP: l.QP, MaxCQ: l.CQ, MaxSRQ: l.SRQ, MaxMR: l.MR, MaxMW: l.MW, MaxPD: l.PD, MaxAH: l.AH,
		MaxQPDepth: l.QPDepth, MaxCQDepth: l.CQDepth, MaxSRQDepth: l.SRQDepth, MaxSGE: l.SGE, MaxInline: l.Inline,
		MaxReadResponder: l.ReadResponder, MaxReadInitiator: l.ReadInitiator, MaxMessage: l.Message, MaxRegion: l.Region,
		ProcessorAtomics: 1,
	}
	copy(i.Name[:], a.name)
	if a.up() {
		i.Up = 1
	}
	if !a.enabled {
		i.RoCE = RoCEDisabled
	}
	return i
}

// GIDs implements command.Commands.
func (c *Client) GIDs(ctx context.Context, index uint32) ([]command.GID, error) {
	a, err := c.begin(ctx, index)
	if err != nil {
		return nil, err
	}
	defer c.host.unlock()
	return a.gids.list(), nil
}

// Counters implements command.Commands: the rows of the manual's tables "Adapter
// Diagnostics Counters" and "RDMA Activity" by their printed names (those per
// second as the totals that they are the rate of), and SoftVPI's own after them.
func (c *Client) Counters(ctx context.Context, index uint32) ([]command.Counter, error) {
	if err := c.enter(ctx); err != nil {
		return nil, err
	}
	defer c.host.unlock()
	a, err := c.host.adapter(index)
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
	// A port that is full drops ("Link receive buffer drops"); it has no state in
	// which it holds packets back, so these cannot happen.
	add("Device detected stalled state", 0)
	add("Packet detected as stalled", 0)
	m := a.cm.Counters()
	add("RDMA Accepted Connections", m.Accepted)
	add("RDMA Active Connections", m.Active)
	add("RDMA Completion Queue Errors", 0) // "not supported, and always is set to zero" (WinOF manual 4.9.4.4.2.2)
	add("RDMA Connection Errors", m.ConnectionErrors)
	add("RDMA Failed Connection Attempts", m.FailedAttempts)
	add("RDMA Initiated Connections", m.Initiated)
	frame := a.frameOverhead()
	add("RDMA Inbound Bytes/sec", links.ReceivedBytes+links.ReceivedPackets*frame)
	add("RDMA Inbound Frames/sec", links.ReceivedPackets)
	add("RDMA Outbound Bytes/sec", links.SentBytes+links.SentPackets*frame)
	add("RDMA Outbound Frames/sec", links.SentPackets)
	add("CM MADs received", m.Received)
	add("CM MADs sent", m.Sent)
	add("CM MADs sent again", m.Retransmitted)
	add("CM requests refused, backlog full", m.BacklogOverflow)
	add("CM requests refused, half-open limit", m.HalfOpenLimit)
	var e encap.Counters
	for _, p := range a.plugs {
		c := p.encap.Counters()
		e.ICRCErrors += c.ICRCErrors
		e.ICRCIDInferred += c.ICRCIDInferred
		e.Malformed += c.Malformed
		e.NotForUs += c.NotForUs
	}
	add("ICRC errors", e.ICRCErrors)
	add("icrc_id_inferred", e.ICRCIDInferred)
	add("Malformed frames", e.Malformed)
	add("Frames for others", e.NotForUs)
	add("Link sends refused by the system", links.SendErrors)
	add("Link blocked", links.SendBlocked)
	add("Link receive buffer drops", links.ReceiveDrops)
	add("Link receive buffer", uint64(links.ReceiveBuffer)) // bytes, as the system grants it
	return out
}

// frameOverhead is what layer two and the IP and UDP headers add to what the
// link counts (WinOF manual: bytes include the layer two overhead).
func (a *adapter) frameOverhead() uint64 {
	if len(a.plugs) > 0 && a.plugs[0].base != nil && a.plugs[0].base.Capabilities().Raw {
		return 0
	}
	if a.cfg.Addr.Is4() {
		return 14 + 20 + 8
	}
	return 14 + 40 + 8
}

// linkStats sums the links of the port.
func (a *adapter) linkStats() link.Stats {
	var sum link.Stats
	for _, p := range a.plugs {
		if p.link == nil {
			continue
		}
		s := p.link.Stats()
		sum.SentPackets += s.SentPackets
		sum.SentBytes += s.SentBytes
		sum.SentBursts += s.SentBursts
		sum.ReceivedPackets += s.ReceivedPackets
		sum.ReceivedBytes += s.ReceivedBytes
		sum.SendBlocked += s.SendBlocked
		sum.SendErrors += s.SendErrors
		sum.ReceiveDrops += s.ReceiveDrops
		sum.ReceiveTruncated += s.ReceiveTruncated
		sum.ErrorsLost += s.ErrorsLost
		sum.ReceiveBuffer += s.ReceiveBuffer
		sum.ImpairedLost += s.ImpairedLost
		sum.ImpairedDuplicated += s.ImpairedDuplicated
		sum.ImpairedReordered += s.ImpairedReordered
		sum.ImpairedCorrupted += s.ImpairedCorrupted
		sum.ImpairedMarked += s.ImpairedMarked
		sum.ImpairedDelayed += s.ImpairedDelayed
	}
	return sum
}

// Snapshot returns the state of everything.
func (h *Host) Snapshot() Snapshot {
	h.lock()
	defer h.unlock()
	var s Snapshot
	for _, a := range h.adapters {
		s.Adapters = append(s.Adapters, a.snapshot())
	}
	for _, c := range h.clients {
		used, _ := c.arena.Used()
		s.Clients = append(s.Clients, ClientStatus{
			Name: c.cfg.Name, PID: c.cfg.PID, UID: c.cfg.UID, Attached: c.cfg.Attached, MemoryPath: c.cfg.MemoryPath,
			ArenaBytes: used,
			Objects: ObjectCounts{
				PD: c.pds.live, MR: c.mrs.live, MW: c.mws.live, CQ: c.cqs.live, SRQ: c.srqs.live,
				QP: c.qps.live, AH: c.ahs.live, CM: c.cms.live,
			},
		})
	}
	return s
}

func (a *adapter) snapshot() AdapterStatus {
	s := AdapterStatus{
		Info: a.info(), Name: a.name, Enabled: a.enabled, Up: a.up(), Path: a.path, GIDs: a.gids.list(),
		Link: a.linkStats(), Retransmits: a.engine.Counters().RetransmittedPackets, Counters: a.counters(), Objects: a.objects,
	}
	for _, p := range a.plugs {
		s.Addrs = append(s.Addrs, p.addr)
		if u, ok := p.base.(udp.Link); ok && s.SourcePorts == "" {
			s.SourcePorts = u.Status().SourcePorts
		}
	}
	if a.impairment.Enabled() {
		s.Impairment = a.impairment.String()
	}
	for _, q := range a.byNumber {
		if q.tq != nil {
			s.QPs = append(s.QPs, q.status())
		}
	}
	slices.SortFunc(s.QPs, func(x, y QPStatus) int { return int(x.Number) - int(y.Number) })
	return s
}

func (q *qp) status() QPStatus {
	i := q.adapter.engine.Query(q.tq)
	s := QPStatus{
		Number: q.number, Type: i.Type, State: i.Attr.State, Client: q.client.cfg.Name, PID: q.client.cfg.PID,
		RemoteQPN: i.Attr.DestQPN, Path: i.Path, MTU: i.Attr.MTU, SendPosted: i.SendPosted, RecvPosted: i.RecvPosted,
		Peer: netip.Addr{},
	}
	if r := q.tq.Route(); r != nil {
		s.Peer, s.SrcPort = r.Dst, r.SrcPort
	}
	return s
}
