package live

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync/atomic"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/fabric"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// errTaken says that an adapter is already plugged in at a port.
var errTaken = errors.New("an adapter is already plugged in there")

// errNoneFree says that there is no free port for an adapter that does not ask for a particular one.
var errNoneFree = fmt.Errorf("all channel adapters of the fabric are plugged in: %w", errTaken)

// errClosed says that the rack has been closed.
var errClosed = errors.New("the fabric is no longer running")

// Port is an adapter's end of a cable, in the process of its rack. It implements link.InfiniBand.
type Port struct {
	rack    *Rack
	at      fabric.Place
	program string
	notify  func()
	changes atomic.Uint64

	// The rack's lock guards the following fields.
	closed   bool
	out      bool // it is not plugged in
	waits    bool // the receiver has found nothing and waits
	stale    bool // state is out of date
	state    link.Port
	borrowed [maxBorrowed]*fabric.Parcel // frames returned by the last Receive
	count    int
	stats    link.Stats
	virtual  []fabric.VirtualPort // that the adapter wants
}

// maxBorrowed is how many packets one Receive returns at most.
const maxBorrowed = 256

var (
	_ link.InfiniBand   = (*Port)(nil)
	_ link.VirtualPorts = (*Port)(nil)
)

// Plug plugs an adapter in at a port of a channel adapter or router. notify, if any, is called when
// packets have arrived and there were none, when there is room again after a Send that was cut short, and
// when the port has changed. It is called with the rack locked: it must not call the rack or the port. The
// error is or wraps errTaken if another adapter is there.
func (r *Rack) Plug(at fabric.Place, notify func()) (*Port, error) {
	return r.plug(at, "in the fabric's process", notify)
}

// plug is Plug for a program, given the name that it calls itself.
func (r *Rack) plug(at fabric.Place, program string, notify func()) (*Port, error) {
	now, f := r.Lock()
	defer r.Unlock()
	if r.closed {
		return nil, errClosed
	}
	if f.NodeInfo(at).NodeType == mad.NodeSwitch {
		return nil, fmt.Errorf("node %q is a switch; adapters are plugged in at channel adapters", f.Names()[at.Node])
	}
	if r.ports[at] != nil {
		return nil, fmt.Errorf("node %q, port %d: %w", f.Names()[at.Node], at.Port, errTaken)
	}
	if notify == nil {
		notify = func() {}
	}
	p := &Port{rack: r, at: at, program: program, notify: notify, stale: true}
	p.changes.Store(1)
	r.ports[at] = p
	f.Plug(now, at, true)
	return p, nil
}

// Find returns the port of a node, given by id or description; number 0 is its first. Without a node it
// returns the first port of a channel adapter where no adapter is plugged in yet. The error is a
// *fabric.NodeError, or says that there is none.
func (r *Rack) Find(node string, number uint8) (fabric.Place, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if node != "" {
		i, err := r.fabric.Find(node)
		if err != nil {
			return fabric.Place{}, err
		}
		return r.fabric.EndPort(i, number)
	}
	for i := range r.fabric.Names() {
		at, err := r.fabric.EndPort(i, number)
		if err == nil && r.ports[at] == nil && r.fabric.NodeInfo(at).NodeType == mad.NodeCA {
			return at, nil
		}
	}
	return fabric.Place{}, errNoneFree
}

// name returns the id of a place's node.
func (r *Rack) name(at fabric.Place) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.fabric.Names()[at.Node]
}

// Adapter is an adapter that is plugged in.
type Adapter struct {
	Node    string
	Port    uint8
	Program string // that uses it
	State   mad.PortState
	LID     ib.LID
}

// Adapters returns the adapters that are plugged in. The caller holds the lock.
func (r *Rack) Adapters() []Adapter {
	names := r.fabric.Names()
	var all []Adapter
	for at, p := range r.ports {
		s := p.current()
		all = append(all, Adapter{names[at.Node], at.Port, p.program, s.State, s.LID})
	}
	slices.SortFunc(all, func(a, b Adapter) int { return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Port, b.Port)) })
	return all
}

// news handles news of the port.
func (p *Port) news(n fabric.News) {
	if n.Changed {
		p.stale = true
		p.changes.Add(1)
	}
	if n.Changed || n.Room || p.waits {
		p.waits = false
		p.notify()
	}
}

// fall closes the port: its link goes down. The caller holds the lock.
func (p *Port) fall() {
	if p.closed {
		return
	}
	p.closed = true
	f, now := p.rack.fabric, p.rack.Now()
	p.current()
	delete(p.rack.ports, p.at)
	f.Plug(now, p.at, false)
	f.TakeDown(now, p.at)
	p.state.State, p.state.Physical = mad.PortDown, mad.PhysicalDisabled
	p.changes.Add(1)
	p.notify()
}

// SetPlugged pulls the cable out or plugs it in again, as when an adapter is disabled and enabled.
// Meanwhile the port stays reserved for its adapter.
func (p *Port) SetPlugged(in bool) {
	now, f := p.rack.Lock()
	defer p.rack.Unlock()
	if p.closed || p.out == !in {
		return
	}
	p.out = !in
	f.Plug(now, p.at, in)
	if in {
		f.SetVirtual(now, p.at, p.virtual)
	} else {
		f.TakeDown(now, p.at)
	}
	p.stale = true
	p.changes.Add(1)
	p.notify()
}

// Close implements link.Link: the cable is pulled out, and its link goes down.
func (p *Port) Close() error {
	p.rack.Lock()
	defer p.rack.Unlock()
	p.fall()
	return nil
}

// Capabilities implements link.Link.
func (p *Port) Capabilities() link.Capabilities {
	return link.Capabilities{MaxSegments: 1, Raw: true, InfiniBand: true, MTU: ib.MTU4096.Bytes(), Fabric: p}
}

// Prepare implements link.Link. A cable needs no preparation.
func (p *Port) Prepare(r *frame.Route) error {
	return nil
}

// Send implements link.Link. A frame that the port refuses, such as one with another port's LID, counts as
// a send error.
func (p *Port) Send(frames []frame.Out) (int, error) {
	now, f := p.rack.Lock()
	defer p.rack.Unlock()
	if p.closed {
		return 0, net.ErrClosed
	}
	for i := range frames {
		o := &frames[i]
		head := o.Head[o.HeadStart:o.HeadEnd]
		ok, err := f.Transmit(now, p.at, head, o.Payload, o.Tail[:o.TailLen])
		if !ok && err == nil { // what is in transit may make room
			f.Advance(now)
			ok, err = f.Transmit(now, p.at, head, o.Payload, o.Tail[:o.TailLen])
		}
		switch {
		case err != nil:
			p.stats.SendErrors++
		case !ok:
			p.stats.SendBlocked++
			return i, nil
		default:
			p.stats.SentPackets++
			p.stats.SentBursts++
			p.stats.SentBytes += uint64(o.Len())
		}
	}
	return len(frames), nil
}

// Receive implements link.Link. The frames are in the port's buffers, which the next Receive releases.
func (p *Port) Receive(in []frame.In) (int, error) {
	now, f := p.rack.Lock()
	defer p.rack.Unlock()
	if p.closed {
		return 0, net.ErrClosed
	}
	if p.count > 0 {
		f.Release(now, p.borrowed[:p.count])
		f.Advance(now)
	}
	most := min(len(in), len(p.borrowed))
	p.count = f.Collect(now, p.at, p.borrowed[:most])
	for i, q := range p.borrowed[:p.count] {
		in[i] = frame.In{Data: q.Bytes(), Raw: true}
		p.stats.ReceivedBytes += uint64(len(in[i].Data))
	}
	p.stats.ReceivedPackets += uint64(p.count)
	p.waits = p.count < most
	return p.count, nil
}

// Errors implements link.Link: a fabric does not report the packets that it drops.
func (p *Port) Errors([]link.Unreachable) int { return 0 }

// Descriptors implements link.Link: there are none, notify is called instead.
func (p *Port) Descriptors() []int { return nil }

// Stats implements link.Link.
func (p *Port) Stats() link.Stats {
	p.rack.mu.Lock()
	defer p.rack.mu.Unlock()
	return p.stats
}

// Changes implements link.InfiniBand.
func (p *Port) Changes() uint64 { return p.changes.Load() }

// Port implements link.InfiniBand.
func (p *Port) Port() link.Port {
	p.rack.mu.Lock()
	defer p.rack.mu.Unlock()
	return p.current()
}

// current returns the port's current state. The caller holds the lock.
func (p *Port) current() link.Port {
	if p.stale && !p.closed {
		p.state, p.stale = view(p.rack.fabric, p.at), false
		p.state.Fabric = p.rack
	}
	return p.state
}

// view returns a port as its adapter sees it.
func view(f *fabric.Fabric, at fabric.Place) link.Port {
	i, s := f.PortInfo(at), f.Settings(at)
	states, virtualized := f.Virtual(at)
	virtual := make([]link.VirtualPort, len(states))
	for n := range states {
		v := &states[n]
		virtual[n] = link.VirtualPort{Index: v.Index, GUID: v.GUID, State: v.State, LID: v.LID, Reregister: v.Reregister,
			PKeys: slices.Clone(v.PKeys[:link.VirtualKeys])}
	}
	return link.Port{
		Virtual: virtual, Virtualized: virtualized,
		State: i.PortState, Physical: i.PortPhysicalState, LID: i.LID, LMC: i.LMC, SMLID: i.MasterSMLID, SMSL: i.MasterSMSL,
		Prefix: i.GIDPrefix, NodeGUID: f.NodeInfo(at).NodeGUID, GUIDs: s.GUIDs, PKeys: s.PKeys, SLtoVL: s.SLtoVL, MTU: i.NeighborMTU,
		MaxMTU: i.MTUCap,
		Width:  i.LinkWidthActive, Speed: s.Speed, Capabilities: i.CapabilityMask, SubnetTimeout: i.SubnetTimeOut, Reregister: s.Reregister,
	}
}

// Violation implements link.InfiniBand.
func (p *Port) Violation(v link.Violation) {
	p.rack.Do(func(now clock.Time, f *fabric.Fabric) {
		if p.closed {
			return
		}
		k := fabric.KeyViolation{From: v.SLID, To: v.DLID, Key: v.Key, SL: v.SL, FromQP: v.SourceQP, ToQP: v.DestQP, FromGID: v.SGID,
			ToGID: v.DGID}
		switch v.Kind {
		case link.PKeyViolation:
			f.BadPKey(now, p.at, k)
		case link.QKeyViolation:
			f.BadQKey(now, p.at, k)
		}
	})
}

// SetVirtual implements link.VirtualPorts.
func (p *Port) SetVirtual(want []link.VirtualPort) {
	p.rack.Do(func(now clock.Time, f *fabric.Fabric) {
		p.virtual = nil
		for _, v := range want {
			p.virtual = append(p.virtual, fabric.VirtualPort{Index: v.Index, GUID: v.GUID})
		}
		if !p.closed && !p.out {
			f.SetVirtual(now, p.at, p.virtual)
		}
	})
}
