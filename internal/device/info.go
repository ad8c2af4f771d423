package device

import (
	"context"
	"math"
	"net/netip"
	"slices"

	"github.com/softvpi/softvpi/internal/budget"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/transport"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// Adapters implements command.Commands. Disabled adapters are included, with RoCE 0.
func (c *Client) Adapters(ctx context.Context) ([]command.AdapterInfo, error) {
	if err := c.enter(ctx); err != nil {
		return nil, err
	}
	defer c.host.unlock()
	out := make([]command.AdapterInfo, 0, len(c.host.adapters))
	for _, a := range c.host.adapters {
		if !c.sees(a) {
			continue
		}
		i := a.info()
		i.Index = c.indexOf(a)
		// Atomics by process_vm calls are a read and a write, not atomic for the program's processors. In
		// shared segments they would be.
		if c.cfg.MemoryPath == command.MemoryProcessVM {
			i.ProcessorAtomics = 0
		}
		out = append(out, c.permitted(a, i))
	}
	return out, nil
}

func (a *adapter) info() command.AdapterInfo {
	l := &a.limits
	i := command.AdapterInfo{
		Index: a.index, Port: a.cfg.Port, GUID: a.guid, Addr: command.AddrFrom(a.cfg.Addr), RoCE: a.cfg.RoCE,
		ActiveMTU: a.mtu, LinkMTU: a.ipMTU, UDPPort: uint32(a.cfg.UDPPort), VendorID: vendorID, DeviceID: a.cfg.DeviceID,
		MaxQP: l.QP, MaxCQ: l.CQ, MaxSRQ: l.SRQ, MaxMR: l.MR, MaxMW: l.MW, MaxPD: l.PD, MaxAH: l.AH,
		MaxQPDepth: l.QPDepth, MaxCQDepth: l.CQDepth, MaxSRQDepth: l.SRQDepth, MaxSGE: l.SGE, MaxInline: l.Inline,
		MaxReadResponder: l.ReadResponder, MaxReadInitiator: l.ReadInitiator, MaxMessage: l.Message, MaxRegion: l.Region,
		ProcessorAtomics: 1, MaxMulticast: transport.DefaultMulticast,
	}
	if a.ib != nil && len(a.ib.Addresses()) > 0 {
		i.Addr = command.AddrFrom(a.ib.Addresses()[0])
	}
	copy(i.Name[:], a.name)
	if a.up() {
		i.Up, i.LineRate = 1, uint32(min(a.speed()/1e6, math.MaxUint32))
	}
	if !a.enabled {
		i.RoCE = roceDisabled
	}
	return i
}

// nodeGUID returns the GUID of the adapter's device: that of its node in the fabric if one of its ports is an
// InfiniBand port, else that of its first port.
func (a *adapter) nodeGUID() uint64 {
	first := a
	for _, b := range a.host.adapters {
		if b != a && (a.cfg.Device == "" || b.cfg.Device != a.cfg.Device) {
			continue
		}
		if b.ib != nil && b.ib.Settings().NodeGUID != 0 {
			return b.ib.Settings().NodeGUID
		}
		if b.cfg.Port < first.cfg.Port {
			first = b
		}
	}
	return first.guid
}

// GIDs implements command.Commands.
func (c *Client) GIDs(ctx context.Context, index uint32) ([]command.GID, error) {
	a, err := c.begin(ctx, index)
	if err != nil {
		return nil, err
	}
	defer c.host.unlock()
	return a.gids.List(), nil
}

// Port implements command.Commands.
func (c *Client) Port(ctx context.Context, index uint32) (command.PortInfo, error) {
	if err := c.enter(ctx); err != nil {
		return command.PortInfo{}, err
	}
	defer c.host.unlock()
	a, err := c.adapter(index)
	if err != nil {
		return command.PortInfo{}, err
	}
	return a.portInfo(), nil
}

func (a *adapter) portInfo() command.PortInfo {
	i := command.PortInfo{State: uint8(mad.PortDown), Physical: uint8(mad.PhysicalDisabled), NodeGUID: a.nodeGUID(),
		MaxMTU: uint16(ib.MTU4096.Bytes())}
	if a.up() {
		i.State, i.Physical = uint8(mad.PortActive), uint8(mad.PhysicalLinkUp)
	}
	if a.ib != nil {
		p := a.ib.Settings()
		i.LMC, i.SMSL, i.LID, i.SMLID, i.Width, i.SubnetTimeout = p.LMC, p.SMSL, uint16(p.LID), uint16(p.SMLID), p.Width, p.SubnetTimeout
		i.Lane, i.Capabilities, i.Prefix = uint32(p.Speed.LaneMbps()), p.Capabilities, p.Prefix
		if p.MaxMTU.Valid() {
			i.MaxMTU = uint16(p.MaxMTU.Bytes())
		}
		if a.enabled {
			i.State, i.Physical = uint8(p.State), uint8(p.Physical)
		}
	}
	for n, k := range a.engine.PKeys() {
		if n == len(i.PKeys) {
			break
		}
		i.PKeys[n], i.PKeyCount = uint16(k), uint32(n+1)
	}
	return i
}

// Snapshot returns the state of everything.
func (h *Host) Snapshot() Snapshot { return h.snapshot(true) }

// Overview is Snapshot without the queue pairs, which may be many.
func (h *Host) Overview() Snapshot { return h.snapshot(false) }

func (h *Host) snapshot(qps bool) Snapshot {
	h.lock()
	defer h.unlock()
	h.foldAll()
	var s Snapshot
	for _, a := range h.adapters {
		if a.virtual() { // Functions has them
			continue
		}
		one := a.snapshot()
		if qps {
			one.QPs = a.qpStatus()
		}
		s.Adapters = append(s.Adapters, one)
	}
	for _, c := range h.clients {
		used, _ := c.arena.Used()
		s.Clients = append(s.Clients, ClientStatus{
			Name: c.cfg.Name, PID: c.cfg.PID, UID: c.cfg.UID, Attached: c.cfg.Attached, MemoryPath: c.cfg.MemoryPath,
			Function:   c.functionName(),
			ArenaBytes: used, Memory: c.cfg.Account.Usage(budget.Memory), Descriptors: c.cfg.Account.Usage(budget.Descriptors),
			Objects: ObjectCounts{
				PD: c.pds.Live(), MR: c.mrs.Live(), MW: c.mws.Live(), CQ: c.cqs.Live(), SRQ: c.srqs.Live(),
				QP: c.qps.Live(), AH: c.ahs.Live(), CM: c.cms.Live(),
			},
		})
	}
	return s
}

func (a *adapter) snapshot() AdapterStatus {
	status := a.links.Status()
	s := AdapterStatus{
		Addrs: a.links.Addrs(), SourcePorts: status.SourcePorts, Frames: status.Frames,
		Info: a.info(), Name: a.name, NodeGUID: a.nodeGUID(), MAC: a.mac,
		Enabled: a.enabled, Up: a.up(), NoRDMA: a.noRDMA(), Wire: a.wireStatus(),
		Path: a.path, GIDs: a.gids.List(),
		Link: a.linkStats(), Retransmits: a.engine.Counters().RetransmittedPackets, Counters: a.counters(), Objects: a.objects,
		LLDP: a.lldpStatus(), Priorities: a.priorities(), Flow: a.flowStatus(),
	}
	if set := a.links.Impairment(); set.Enabled() {
		s.Impairment = set.String()
	}
	return s
}

// qpStatus returns the queue pairs, sorted by number.
func (a *adapter) qpStatus() []QPStatus {
	var out []QPStatus
	for _, q := range a.byNumber {
		if q.tq != nil {
			out = append(out, q.status())
		}
	}
	slices.SortFunc(out, func(x, y QPStatus) int { return int(x.Number) - int(y.Number) })
	return out
}

func (q *qp) status() QPStatus {
	i := q.adapter.engine.Query(q.tq)
	s := QPStatus{
		Number: q.number, Type: i.Type, State: i.Attr.State, Client: q.client.cfg.Name, PID: q.client.cfg.PID,
		RemoteQPN: i.Attr.DestQPN, Path: i.Path, MTU: i.Attr.MTU, SendPosted: i.SendPosted, RecvPosted: i.RecvPosted,
		Peer: netip.Addr{},
	}
	if q.lease != nil {
		s.Returned = q.lease.Returned(q.tq)
	}
	s.Limit = q.tq.LimitOf()
	s.Rate, s.Limited = q.adapter.engine.Rate(q.adapter.host.now(), q.tq)
	if r := q.tq.Route(); r != nil {
		s.Peer, s.SrcPort = r.Dst, r.SrcPort
		if r.IB.DLID != 0 {
			s.Peer, s.PeerLID = netip.Addr{}, uint16(r.IB.DLID)
			if !r.IB.DGID.IsZero() {
				s.Peer = r.IB.DGID.Addr()
			}
		}
	}
	return s
}
