package device

import (
	"context"
	"net/netip"
	"slices"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device/handle"
	"github.com/softvpi/softvpi/internal/function/raw"
	"github.com/softvpi/softvpi/internal/port"
	"github.com/softvpi/softvpi/internal/transport"
	"github.com/softvpi/softvpi/wire/eth"
)

// mostFlows is how many flows the raw packet queue pairs of an adapter have at most: every frame is compared with their rules.
const mostFlows = 256

// rawPackets is what the raw packet queue pairs of an adapter share. Its function is at the port while there are any.
type rawPackets struct {
	f       *raw.Function
	station *port.Station
	qps     int
	flows   int
	before  raw.Counters // of functions that are gone
}

// flow is a flow of a raw packet queue pair, or of a spread.
type flow struct {
	handle command.Handle
	a      *adapter
	of     *[]*flow  // the list that it is in: its owner's
	o      *raw.Flow // nil once the adapter was disabled
	ears   [][6]byte // what the link hands up for it
}

// checkRaw reports why a client may have no raw packet queue pair on an adapter.
func (c *Client) checkRaw(a *adapter) error {
	switch {
	case c.cfg.NoRawPackets:
		return command.Errorf(command.Access, "raw packet queue pairs are for programs of the driver's user and of root")
	case a.cfg.NoRawPackets:
		return command.Errorf(command.Unsupported, "adapter %q: queues of frames are switched off by the registry key *PacketDirect", a.name)
	case a.ib != nil || !a.links.All()[0].Whole():
		return command.Errorf(command.Unsupported, "adapter %q has no wire of whole Ethernet frames, which raw packet queue pairs need", a.name)
	}
	return a.checkVirtualRaw()
}

// joinRaw puts the function at the port, for one more queue pair.
func (a *adapter) joinRaw() {
	r := &a.raw
	if r.qps++; r.qps > 1 {
		return
	}
	a.port.raw++
	r.f = raw.New(a.engine)
	r.station = a.port.Attach(r.f, port.Station{MAC: a.mac, Kind: port.Steered, UDPPort: a.cfg.UDPPort, At: a.at,
		Carried: &a.carried.other})
	r.station.Plug(a.links.All()[0].Wire, netip.Addr{}, nil)
	r.station.Join(a.station)
	a.guardRaw()
	a.cut()
	a.resizeRaw()
	a.rewired()
}

// leaveRaw takes it away with the last queue pair.
func (a *adapter) leaveRaw() {
	r := &a.raw
	if r.qps--; r.qps > 0 {
		return
	}
	a.port.raw--
	r.before = r.counters()
	a.port.forget(r.station)
	a.port.Detach(r.station)
	r.f, r.station = nil, nil
	a.rewired()
}

// resizeRaw tells the queue pairs how long frames may be now, tagged ones too.
func (a *adapter) resizeRaw() {
	if a.raw.f != nil {
		a.engine.SetWire(transport.Wire{MAC: a.mac, Longest: a.longestFrame(), Priority: a.port.framePriority()})
	}
}

// counters returns what was counted since the adapter was added.
func (r *rawPackets) counters() raw.Counters {
	t := r.before
	if r.f != nil {
		c := r.f.Counters()
		t.Steered += c.Steered
		t.Leftover += c.Leftover
		t.Malformed += c.Malformed
	}
	return t
}

// CreateFlow implements command.Extended.
func (c *Client) CreateFlow(ctx context.Context, r command.CreateFlow) (command.Handle, error) {
	if err := raw.Check(&r); err != nil {
		return 0, err
	}
	if err := c.enter(ctx); err != nil {
		return 0, err
	}
	defer c.host.finish()
	o, err := c.steer(r)
	if err != nil {
		return 0, err
	}
	a := o.a
	if err := a.checkVirtualFlow(&r); err != nil {
		return 0, err
	}
	if err := c.room(a, "flows", a.raw.flows, mostFlows); err != nil {
		return 0, err
	}
	if err := o.listen(); err != nil {
		return 0, err
	}
	if o.handle, err = c.flows.Add(o); err != nil {
		o.unlisten()
		return 0, err
	}
	*o.of = append(*o.of, o)
	a.raw.f.Add(o.o)
	a.raw.flows++
	return o.handle, nil
}

// steer returns a flow to the queue pair or the spread that it names.
func (c *Client) steer(r command.CreateFlow) (*flow, error) {
	if handle.Kind(r.QP) == command.KindRSS {
		s := c.spreads.Get(r.QP)
		switch {
		case s == nil:
			return nil, notFound("RSS", r.QP)
		case s.s == nil:
			return nil, command.Errorf(command.Removed, "the adapter was disabled")
		}
		return &flow{a: s.a, of: &s.flows, o: &raw.Flow{Rule: r, Spread: s.s}}, nil
	}
	q, err := c.rawPair(r.QP)
	if err != nil {
		return nil, err
	}
	return &flow{a: q.adapter, of: &q.flows, o: &raw.Flow{Rule: r, QP: q.tq}}, nil
}

// rawPair returns a raw packet queue pair that works.
func (c *Client) rawPair(h command.Handle) (*qp, error) {
	q, err := c.pair(h)
	if err == nil && q.tq.Type() != command.RawPacket {
		err = command.Errorf(command.Invalid, "QP is of type %d, want %d (raw packet)", q.tq.Type(), command.RawPacket)
	}
	return q, err
}

// SetFrameFlags implements command.Extended.
func (c *Client) SetFrameFlags(ctx context.Context, r command.SetFrameFlags) error {
	if bad := (r.Flags | r.Mask) &^ command.FrameQPFlags; bad != 0 {
		return command.Errorf(command.Invalid, "Flags or Mask has %#x, want bits of %#x", bad, command.FrameQPFlags)
	}
	if err := c.enter(ctx); err != nil {
		return err
	}
	defer c.host.finish()
	q, err := c.rawPair(r.QP)
	if err != nil {
		return err
	}
	q.tq.SetFrameFlags(r.Flags, r.Mask)
	return nil
}

// FlowCounters implements command.Extended.
func (c *Client) FlowCounters(ctx context.Context, h command.Handle) (command.FlowCounters, error) {
	if err := c.enter(ctx); err != nil {
		return command.FlowCounters{}, err
	}
	defer c.host.unlock()
	o := c.flows.Get(h)
	switch {
	case o == nil:
		return command.FlowCounters{}, notFound("flow", h)
	case o.o == nil:
		return command.FlowCounters{}, command.Errorf(command.Removed, "the adapter was disabled")
	}
	return o.o.Counters, nil
}

// FramePort implements command.Extended.
func (c *Client) FramePort(ctx context.Context, index uint32) (command.FramePort, error) {
	a, err := c.begin(ctx, index)
	if err != nil {
		return command.FramePort{}, err
	}
	defer c.host.unlock()
	if err := c.checkRaw(a); err != nil {
		return command.FramePort{}, err
	}
	return command.FramePort{MAC: a.mac, Offloads: command.FrameChecksums | command.FrameLargeSends | command.FrameRSS | command.FrameFlags,
		Longest: uint32(a.longestFrame())}, nil
}

// longestFrame returns the length of the longest frame that the wire carries, without FCS: with a tag.
func (a *adapter) longestFrame() int { return a.links.MTU() + eth.EthernetLen + eth.VLANLen }

// listen makes the link hand up what the flow is for: everything to the adapter's MAC and to groups, and to the one MAC that its
// rule names.
func (o *flow) listen() error {
	a, r := o.a, &o.o.Rule
	want := [][6]byte{a.mac}
	all := [6]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	if dst := r.Value.Dst; r.Mask.Dst == all && dst != a.mac && dst[0]&1 == 0 && dst != [6]byte{} {
		want = append(want, dst)
	}
	address := a.links.All()[0]
	for _, mac := range want {
		if err := address.Listen(mac); err != nil {
			o.unlisten()
			return command.Errorf(command.Exhausted, "flow: %v", err)
		}
		o.ears = append(o.ears, mac)
	}
	return nil
}

func (o *flow) unlisten() {
	address := o.a.links.All()[0]
	for _, mac := range o.ears {
		address.Unlisten(mac)
	}
	o.ears = nil
}

// end ends the flow; its handle remains.
func (o *flow) end() {
	if o.o == nil {
		return
	}
	a := o.a
	a.raw.f.Remove(o.o)
	a.raw.flows--
	o.unlisten()
	o.o = nil
	*o.of = slices.DeleteFunc(*o.of, func(f *flow) bool { return f == o })
}

func (c *Client) destroyFlow(h command.Handle) error {
	o := c.flows.Get(h)
	if o == nil {
		return notFound("flow", h)
	}
	o.end()
	c.flows.Remove(h)
	return nil
}
