package fabric

import (
	"fmt"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// Sizes of what carries data.
const (
	// MaxFrame is the longest packet from LRH to ICRC: the variant CRC belongs to a link, and is not part of a frame here.
	MaxFrame = minFrame + moreHeaders + 4096
	minFrame = ib.LRHLen + ib.BTHLen + 4
	// moreHeaders is what may stand in a frame beside its payload and these: a GRH and the extended headers.
	moreHeaders = ib.GRHLen + 64
	// laneBuffer is what a port holds of one virtual lane, in bytes: the credits that it grants.
	laneBuffer = 4 * MaxFrame
	// untimedBuffer is the same where packets take no time: a program at a port takes many at once.
	untimedBuffer = 64 * MaxFrame
	// sendQueue is how many packets of a lane an adapter has waiting at its port.
	sendQueue = 64
	lanes     = 15 // data virtual lanes at most
)

// linkLatency is what a link takes beside the time of its bits: some meters of cable, and a switch's pipeline.
const linkLatency = 100 * time.Nanosecond

// frameError says what of a frame keeps it from being sent.
type frameError struct {
	Field string
	Got   int
	Want  string
}

// Error implements error.
func (e *frameError) Error() string {
	return fmt.Sprintf("frame: %s is %d, want %s", e.Field, e.Got, e.Want)
}

// Parcel is a packet on its way. A multicast one is in several queues at once, each with a parcel of its own.
type Parcel struct {
	frame  [MaxFrame]byte
	length int
	vl     uint8
	hops   uint8      // switches that it has come through
	held   hold       // the buffer that it takes up
	since  clock.Time // when it came into the switch
	next   *Parcel    // in the one list in which it is
}

// parcels is a list of packets in their order.
type parcels struct {
	first, last *Parcel
	count       int
}

func (l *parcels) add(p *Parcel) {
	if p.next = nil; l.first == nil {
		l.first = p
	} else {
		l.last.next = p
	}
	l.last = p
	l.count++
}

// remove takes the first one out, which there must be.
func (l *parcels) remove() *Parcel {
	p := l.first
	l.first, p.next = p.next, nil
	l.count--
	return p
}

// hold is room in the buffer of the port by which a packet came; with several parcels of one packet it is shared.
type hold struct {
	port   int32  // noPort: it came from a program
	epoch  uint32 // of the link by which it came
	shared *int   // how many parcels are left; nil: one
}

// bytes is the room that the packet takes in a buffer.
func (p *Parcel) bytes() int { return p.length }

func (p *Parcel) lrh() ib.LRH { return ib.LRH(p.frame[:ib.LRHLen]) }

// bth is the packet's base transport header, behind a GRH where there is one.
func (p *Parcel) bth() ib.BTH {
	at := p.transport()
	return ib.BTH(p.frame[at : at+ib.BTHLen])
}

// transport is where the BTH begins.
func (p *Parcel) transport() int {
	if p.lrh().NextHeader() == ib.LNHGlobal {
		return ib.LRHLen + ib.GRHLen
	}
	return ib.LRHLen
}

// portLanes is what a port needs to carry data. It is there from the first packet on.
type portLanes struct {
	out     [lanes]laneOut
	arrived parcels // for the program at the port
	plugged bool    // there is one
	fresh   bool    // it stands in dataPlane.news
	changed bool    // what the port is set to has changed since News
	wants   bool    // Transmit has refused a packet for want of room in the queue of a lane
	wantsIn bool    // or in arrived, for one to the port itself
	room    bool    // there is room since
	asked   uint64  // how often clients were asked to register again
	arbiter arbiter
	sending bool
	blocked clock.Time // since when packets wait for credits alone; 0: none do
	epoch   uint32     // of the link: what was under way when it went down is lost
}

// laneOut is one virtual lane of a port towards its link.
type laneOut struct {
	queue   parcels
	used    int // bytes of the other end's buffer that are taken
	drops   int // in a row, for HOQLife
	stalled clock.Time
	first   clock.Time // since when the first of the queue is that
	watched bool       // an event will look at it
}

func (p *port) data() *portLanes {
	if p.lanes == nil {
		p.lanes = &portLanes{}
	}
	return p.lanes
}

// dataPlane is what is under way in all of the fabric.
type dataPlane struct {
	events  eventQueue
	soon    row
	numbers uint64
	free    *Parcel
	untimed bool
	claim   func(now clock.Time, at Place, p *Packet) bool // nil: nobody
	news    []int32
	icrc    ib.ICRCScratch
	packet  Packet // a management datagram of a parcel that is looked at
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

func (d *dataPlane) give(p *Parcel) {
	p.next = d.free
	d.free = p
}

// Untimed makes links and switches take no time, so that a packet goes as far as there is room at once, and gives ports
// more room. Credits, queues and what else has times of its own stay as they are. It is for a fabric that has
// not carried any packet.
func (f *Fabric) Untimed() { f.data.untimed = true }

// room is what a port holds of one lane, in bytes.
func (f *Fabric) room() int {
	if f.data.untimed {
		return untimedBuffer
	}
	return laneBuffer
}

// Plug says whether a program is at a port for its data. What comes to ports without one is dropped. A port that
// TakeDown has taken down comes up again with its program.
func (f *Fabric) Plug(now clock.Time, at Place, in bool) {
	f.traps.now = now
	p := f.port(at)
	l := p.data()
	for l.plugged = in; !in && l.arrived.count > 0; {
		f.release(now, l.arrived.remove())
	}
	if in && p.dark {
		p.dark = false
		f.train(p)
	}
}

// TakeDown takes the link of a port down, as when the machine around it is switched off. It stays down until a program is
// plugged in there again.
func (f *Fabric) TakeDown(now clock.Time, at Place) {
	f.traps.now = now
	p := f.port(at)
	p.dark = true
	if p.peer != noPort {
		f.lose(p)
	}
}

// Transmit takes a packet, from its LRH to its ICRC, from the program at a port into the port's queue. False: that is
// full, and News tells of room. The packet is in up to three pieces, the LRH in the first. The virtual
// lane in the LRH is set here. A packet that its port drops, as one of a service level without a lane, is taken. One to a LID of the
// port itself arrives there. The error is a *frameError.
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
	if h := q.lrh(); h.SL() != sl || h.DLID() != lid { // memory that somebody else writes to
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

// full tells whether the port has no room for a packet to itself, or else to a lane of its link.
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

// send takes a packet of the port's own on its way.
func (f *Fabric) send(now clock.Time, n *node, p *port, q *Parcel) {
	if n.kind == mad.NodeSwitch {
		f.relay(now, n, p, q)
		return
	}
	f.enqueue(now, p, q)
}

// owns tells whether a LID is one of the port's.
func (p *port) owns(lid ib.LID) bool {
	return lid != ib.LIDPermissive && !multicast(lid) && p.matches(lid)
}

// check refuses what no port of an adapter sends (IBA 7.7 and 9.2): what it says of itself must be true.
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

// Collect takes packets that came to a port, at most as many as fit into out, and returns their number. Until it is
// given to Release, a packet keeps its room at the port, so that whoever does not release is sent no more than fits.
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

// Waiting is how many packets are there for Collect.
func (f *Fabric) Waiting(at Place) int {
	if l := f.port(at).lanes; l != nil {
		return l.arrived.count
	}
	return 0
}

// Corrupt counts a packet of the program at a port that came with a wrong variant CRC, and was not taken for that.
func (f *Fabric) Corrupt(at Place) { f.port(at).count(ctrSymbolErrors, 1) }

// Release gives packets back that Collect took.
func (f *Fabric) Release(now clock.Time, taken []*Parcel) {
	f.traps.now = now
	for i, q := range taken {
		f.release(now, q)
		taken[i] = nil
	}
}

// Bytes is the packet from its LRH to its ICRC, until it is released.
func (p *Parcel) Bytes() []byte { return p.frame[:p.length] }

// mostEvents is how much one Advance does at most. Tables that send copies around in circles could else keep it for ever.
const mostEvents = 1 << 16

// Advance does what is due at a moment: packets arrive, links become free. There may be more to do than it does at once,
// as Deadline then says.
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

// Deadline is when Advance is wanted next.
func (f *Fabric) Deadline() clock.Time {
	if !f.data.soon.empty() {
		return f.traps.now
	}
	if len(f.data.events) == 0 {
		return clock.Never
	}
	return f.data.events[0].at
}

// tooLong tells whether a frame has certainly more payload than the port may send.
func tooLong(p *port, length int) bool {
	return length > minFrame+moreHeaders+p.info.NeighborMTU.Bytes()
}

// dataLanes is the number of data lanes that a code of VLCap or OperationalVLs means (IBA 14.2.5.6).
func dataLanes(code uint8) uint8 {
	switch code {
	case 1, 2, 3, 4:
		return 1 << (code - 1)
	case 5:
		return lanes
	}
	return 1
}

// laneOf is the virtual lane of a service level, for packets that came in by a port.
func (p *port) laneOf(in uint8, sl uint8) uint8 {
	if p.tables == nil || p.tables.slToVL == nil {
		return eachLane[sl&15]
	}
	if int(in) >= len(p.tables.slToVL) {
		in = 0
	}
	return p.tables.slToVL[in][sl&15]
}

// wireTime is how long a packet takes on the port's link (IBA volume 2, 5.2: 8b/10b up to QDR, 64b/66b above), with
// the variant CRC and the delimiters.
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
