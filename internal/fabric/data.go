package fabric

import (
	"fmt"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// Sizes in the data plane.
const (
	// MaxFrame is the length of the longest packet, from LRH to ICRC. The variant CRC belongs to a link
	// and is not part of a frame.
	MaxFrame = minFrame + moreHeaders + 4096
	minFrame = ib.LRHLen + ib.BTHLen + 4
	// moreHeaders is the space for other headers in a frame: a GRH and the extended headers.
	moreHeaders = ib.GRHLen + 64
	// laneBuffer is a port's buffer for one virtual lane, in bytes: the credits that it grants.
	laneBuffer = 4 * MaxFrame
	// untimedBuffer is the same if packets take no time, because then a program at a port receives many at
	// once.
	untimedBuffer = 64 * MaxFrame
	// sendQueue is how many packets of a lane an adapter can have waiting at its port.
	sendQueue = 64
	lanes     = 15 // maximum of data virtual lanes
)

// linkLatency is what a link takes in addition to the time of its bits: some metres of cable, and a
// switch's pipeline.
const linkLatency = 100 * time.Nanosecond

// portLanes is what a port needs to carry data. It is allocated with the first packet.
type portLanes struct {
	out     [lanes]laneOut
	arrived parcels // for the program at the port
	plugged bool    // there is a program
	fresh   bool    // it is in dataPlane.news
	changed bool    // the port's settings have changed since News
	wants   bool    // Transmit has refused a packet because the queue of a lane was full
	wantsIn bool    // or arrived was, for a packet to the port itself
	room    bool    // there has been room since
	asked   uint64  // how often clients were asked to reregister
	arbiter arbiter
	sending bool
	blocked clock.Time // since when packets wait only for credits; 0: none do
	epoch   uint32     // of the link: packets of an earlier epoch were lost when it went down
}

// laneOut is one virtual lane of a port towards its link.
type laneOut struct {
	queue   parcels
	used    int // bytes occupied in the other end's buffer
	drops   int // consecutive drops because of HOQLife
	stalled clock.Time
	first   clock.Time // since when the first packet has been at the head of the queue
	watched bool       // an event will check it
}

func (p *port) data() *portLanes {
	if p.lanes == nil {
		p.lanes = &portLanes{}
	}
	return p.lanes
}

// dataPlane is the state of all data in the fabric.
type dataPlane struct {
	events  eventQueue
	soon    row
	numbers uint64
	free    *Parcel
	untimed bool
	claim   func(now clock.Time, at Place, p *Packet) bool // nil: nobody
	news    []int32
	icrc    ib.ICRCScratch
	packet  Packet // the management datagram in the parcel being examined
}

func (d *dataPlane) take() *Parcel {
	p := d.free
	if p == nil {
		p = new(Parcel)
	} else {
		d.free = p.next
	}
	p.next, p.hops, p.held = nil, 0, hold{port: noPort}
	return p
}

// Untimed makes links and switches take no time, so that a packet advances at once as far as there is
// room, and enlarges the ports' buffers. Credits, queues and other timers remain as they are. Call it
// before the fabric carries any packet.
func (f *Fabric) Untimed() { f.data.untimed = true }

// room returns the size of a port's buffer for one lane, in bytes.
func (f *Fabric) room() int {
	if f.data.untimed {
		return untimedBuffer
	}
	return laneBuffer
}

// Plug says whether a program is at a port for its data. What arrives at ports without one is dropped. A
// port taken down by TakeDown comes up again when a program is plugged in.
func (f *Fabric) Plug(now clock.Time, at Place, in bool) {
	f.traps.now = now
	p := f.port(at)
	l := p.data()
	for l.plugged = in; !in && l.arrived.count > 0; {
		f.release(now, l.arrived.remove())
	}
	if !in {
		f.SetVirtual(now, at, nil)
	}
	if in && p.dark {
		p.dark = false
		f.train(p)
	}
}

// TakeDown takes the link of a port down, as when the machine around it is switched off. It stays down
// until a program is plugged in there again.
func (f *Fabric) TakeDown(now clock.Time, at Place) {
	f.traps.now = now
	p := f.port(at)
	p.dark = true
	if p.peer != noPort {
		f.lose(p)
	}
}

// Transmit queues a packet, from its LRH to its ICRC, from the program at a port. False: the queue is
// full, and News will tell when there is room. The packet is in up to three pieces, with the LRH in the
// first; Transmit sets its virtual lane. A packet that its port drops, such as one of a service level
// without a lane, counts as accepted. One to a LID of the port itself arrives there. The error is a
// *frameError.
func (f *Fabric) Transmit(now clock.Time, at Place, head, payload, tail []byte) (bool, error) {
	f.traps.now = now
	n, p := &f.nodes[at.Node], f.port(at)
	length := len(head) + len(payload) + len(tail)
	if length < minFrame || length > MaxFrame || length%4 != 0 || len(head) < ib.LRHLen {
		return false, &frameError{"length", length, fmt.Sprintf("a multiple of 4 from %d to %d", minFrame, MaxFrame)}
	}
	if n.external(p) {
		return false, &frameError{"port", int(at.Port), "one that packets are for"}
	}
	sl, lid := ib.LRH(head).SL(), ib.LRH(head).DLID()
	own, vl := p.owns(lid), p.laneOf(0, sl)
	if p.full(own, vl) {
		p.lanes.wants, p.lanes.wantsIn = p.lanes.wants || !own, p.lanes.wantsIn || own
		return false, nil
	}
	q := f.data.take()
	q.length = copy(q.frame[:], head)
	q.length += copy(q.frame[q.length:], payload)
	q.length += copy(q.frame[q.length:], tail)
	q.vl, q.since = vl, now
	err := p.check(q)
	if h := q.lrh(); h.SL() != sl || h.DLID() != lid { // somebody else writes to the memory
		err = &frameError{"service level", int(h.SL()), fmt.Sprintf("%d, as before", sl)}
	}
	if err != nil {
		f.data.give(q)
		return false, err
	}
	switch {
	case p.info.PortState != mad.PortActive:
		f.discard(now, p, q, ctrInactiveDiscards)
	case tooLong(p, length):
		f.discard(now, p, q, ctrMTUDiscards)
	case own:
		f.deliver(now, p, q)
	case vl >= dataLanes(p.info.OperationalVLs):
		p.count(ctrXmitDiscards, 1)
		f.release(now, q)
	default:
		f.send(now, n, p, q)
	}
	return true, nil
}

// full reports whether the port has no room for a packet: one to itself, or else one for a lane of its
// link.
func (p *port) full(own bool, vl uint8) bool {
	switch l := p.lanes; {
	case l == nil:
		return false
	case own:
		return l.arrived.count >= sendQueue
	default:
		return vl < lanes && l.out[vl].queue.count >= sendQueue
	}
}

// send sends a port's own packet on its way.
func (f *Fabric) send(now clock.Time, n *node, p *port, q *Parcel) {
	if n.kind == mad.NodeSwitch {
		f.relay(now, n, p, q)
		return
	}
	f.enqueue(now, p, q)
}

// owns reports whether a LID is one of the port's.
func (p *port) owns(lid ib.LID) bool {
	return lid != ib.LIDPermissive && !multicast(lid) && p.matches(lid)
}

// check refuses what no adapter's port sends (IBA 7.7 and 9.2): a packet must be truthful about itself.
func (p *port) check(q *Parcel) error {
	h := q.lrh()
	switch {
	case h.PktLen()*4 != q.length:
		return &frameError{"packet length of the LRH", h.PktLen(), fmt.Sprint(q.length / 4)}
	case h.Version() != 0:
		return &frameError{"link version", int(h.Version()), "0"}
	case h.NextHeader() != ib.LNHLocal && h.NextHeader() != ib.LNHGlobal:
		return &frameError{"next header of the LRH", int(h.NextHeader()), "2 or 3, a packet of the InfiniBand transport"}
	case h.NextHeader() == ib.LNHGlobal && q.length < minFrame+ib.GRHLen:
		return &frameError{"length", q.length, fmt.Sprintf("at least %d with a GRH", minFrame+ib.GRHLen)}
	case q.bth().DestQP() == ib.QPSMI:
		return &frameError{"destination queue pair", 0, "another than 0, to which only management datagrams go"}
	case p.info.PortState == mad.PortActive && !p.owns(h.SLID()):
		return &frameError{"source LID", int(h.SLID()), fmt.Sprintf("one of the %d of the port from %d on", 1<<p.info.LMC, p.info.LID)}
	}
	return nil
}

// Collect takes packets that have arrived at a port, at most as many as fit into out, and returns their
// number. A packet occupies the port's buffer until it is given to Release, so that a program that does
// not release gets no more than fits.
func (f *Fabric) Collect(now clock.Time, at Place, out []*Parcel) int {
	f.traps.now = now
	l := f.port(at).lanes
	if l == nil {
		return 0
	}
	n := min(len(out), l.arrived.count)
	for i := range out[:n] {
		out[i] = l.arrived.remove()
	}
	f.roomier(f.port(at), &l.wantsIn, l.arrived.count)
	return n
}

// Waiting returns how many packets are ready for Collect.
func (f *Fabric) Waiting(at Place) int {
	if l := f.port(at).lanes; l != nil {
		return l.arrived.count
	}
	return 0
}

// Corrupt counts a packet from the program at a port that was refused because of a wrong variant CRC.
func (f *Fabric) Corrupt(at Place) { f.port(at).count(ctrSymbolErrors, 1) }

// Release gives back packets that Collect took.
func (f *Fabric) Release(now clock.Time, taken []*Parcel) {
	f.traps.now = now
	for i, q := range taken {
		f.release(now, q)
		taken[i] = nil
	}
}

// mostEvents limits the work of one Advance. Forwarding tables that send copies in circles could otherwise
// keep it busy forever.
const mostEvents = 1 << 16

// Advance does what is due now: packets arrive, links become free. There may be more to do than it does at
// once; Deadline then says so.
func (f *Fabric) Advance(now clock.Time) {
	f.traps.now = now
	for range mostEvents {
		switch {
		case !f.data.soon.empty():
			f.happen(now, *f.data.soon.pop())
		case len(f.data.events) > 0 && !now.Before(f.data.events[0].at):
			e := f.data.events.pop()
			f.traps.now = e.at
			f.happen(e.at, e)
		default:
			f.traps.now = now
			return
		}
	}
	f.traps.now = now
}

// Deadline returns when Advance must be called next.
func (f *Fabric) Deadline() clock.Time {
	if !f.data.soon.empty() {
		return f.traps.now
	}
	if len(f.data.events) == 0 {
		return clock.Never
	}
	return f.data.events[0].at
}

// tooLong reports whether a frame certainly has more payload than the port may send.
func tooLong(p *port, length int) bool {
	return length > minFrame+moreHeaders+p.info.NeighborMTU.Bytes()
}

// dataLanes returns the number of data lanes for a code of VLCap or OperationalVLs (IBA 14.2.5.6).
func dataLanes(code uint8) uint8 {
	switch code {
	case 1, 2, 3, 4:
		return 1 << (code - 1)
	case 5:
		return lanes
	}
	return 1
}

// laneOf returns the virtual lane of a service level, for packets that arrived at port in.
func (p *port) laneOf(in uint8, sl uint8) uint8 {
	if p.tables == nil || p.tables.slToVL == nil {
		return eachLane[sl&15]
	}
	if int(in) >= len(p.tables.slToVL) {
		in = 0
	}
	return p.tables.slToVL[in][sl&15]
}

// wireTime returns how long a packet takes on the port's link, including the variant CRC and the
// delimiters (IBA volume 2, 5.2: 8b/10b up to QDR, 64b/66b above).
func (f *Fabric) wireTime(p *port, length int) time.Duration {
	i := &p.info
	speed := i.ActiveSpeed()
	mbps := speed.LaneMbps() * 0.8
	if p.ext.LinkSpeedActive == mad.FDR10 {
		speed = mad.SpeedFDR10
	}
	if speed > mad.SpeedQDR {
		mbps = speed.LaneMbps() * 64 / 66
	}
	return time.Duration(float64((length+4)*8) * 1000 / (mbps * float64(max(mad.Lanes(i.LinkWidthActive), 1))))
}
