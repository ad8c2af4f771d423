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
	// sendQueue is how many packets of a lane an adapter has waiting at its port.
	sendQueue = 64
	lanes     = 15 // data virtual lanes at most
)

// linkLatency is what a link takes beside the time of its bits: some meters of cable, and a switch's pipeline.
const linkLatency = 100 * time.Nanosecond

// FrameError says what of a frame keeps it from being sent. Test for it with errors.As.
type FrameError struct {
	Field string
	Got   int
	Want  string
}

// Error implements error.
func (e *FrameError) Error() string {
	return fmt.Sprintf("frame: %s is %d, want %s", e.Field, e.Got, e.Want)
}

// parcel is a packet on its way. A multicast one is in several queues at once, each with a parcel of its own.
type parcel struct {
	frame  [MaxFrame]byte
	length int
	vl     uint8
	held   hold       // the buffer that it takes up
	since  clock.Time // when it came into the switch
	number uint64     // unlike that of any other
	next   *parcel    // in the one list in which it is
}

// parcels is a list of packets in their order.
type parcels struct {
	first, last *parcel
	count       int
}

func (l *parcels) add(p *parcel) {
	if p.next = nil; l.first == nil {
		l.first = p
	} else {
		l.last.next = p
	}
	l.last = p
	l.count++
}

// remove takes the first one out, which there must be.
func (l *parcels) remove() *parcel {
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
func (p *parcel) bytes() int { return p.length }

func (p *parcel) lrh() ib.LRH { return ib.LRH(p.frame[:ib.LRHLen]) }

// portLanes is what a port needs to carry data. It is there from the first packet on.
type portLanes struct {
	out     [lanes]laneOut
	arrived parcels // for the program at the port
	plugged bool    // there is one
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
	numbers uint64
	free    *parcel
}

func (d *dataPlane) take() *parcel {
	p := d.free
	if p == nil {
		p = new(parcel)
	} else {
		d.free = p.next
	}
	d.numbers++
	p.number, p.next, p.held = d.numbers, nil, hold{port: noPort}
	return p
}

func (d *dataPlane) give(p *parcel) {
	p.next = d.free
	d.free = p
}

// Plug says whether a program is at a port for its data. What comes to ports without one is dropped.
func (f *Fabric) Plug(now clock.Time, at Place, in bool) {
	f.traps.now = now
	l := f.port(at).data()
	for l.plugged = in; !in && l.arrived.count > 0; {
		f.release(now, l.arrived.remove())
	}
}

// Transmit takes a packet, from its LRH to its ICRC, from the program at a port into the port's queue. False: that is
// full, and there is room again when Transmitted says so. The virtual lane in the LRH is set here. A packet
// that its port drops, as one of a service level without a lane, is taken. The error is a *FrameError.
func (f *Fabric) Transmit(now clock.Time, at Place, frame []byte) (bool, error) {
	f.traps.now = now
	n, p := &f.nodes[at.Node], f.port(at)
	if len(frame) < minFrame || len(frame) > MaxFrame || len(frame)%4 != 0 {
		return false, &FrameError{"length", len(frame), fmt.Sprintf("a multiple of 4 from %d to %d", minFrame, MaxFrame)}
	}
	h := ib.LRH(frame)
	switch {
	case h.PktLen()*4 != len(frame):
		return false, &FrameError{"packet length of the LRH", h.PktLen(), fmt.Sprint(len(frame) / 4)}
	case h.NextHeader() != ib.LNHLocal && h.NextHeader() != ib.LNHGlobal:
		return false, &FrameError{"next header of the LRH", int(h.NextHeader()), "2 or 3, a packet of the InfiniBand transport"}
	case h.NextHeader() == ib.LNHGlobal && len(frame) < minFrame+ib.GRHLen:
		return false, &FrameError{"length", len(frame), fmt.Sprintf("at least %d with a GRH", minFrame+ib.GRHLen)}
	}
	if p.info.PortState != mad.PortActive {
		p.count(ctrXmitDiscards, 1)
		p.count(ctrInactiveDiscards, 1)
		return true, nil
	}
	if tooLong(p, len(frame)) {
		p.count(ctrXmitDiscards, 1)
		p.count(ctrMTUDiscards, 1)
		return true, nil
	}
	vl := p.laneOf(0, h.SL())
	if vl >= dataLanes(p.info.OperationalVLs) {
		p.count(ctrXmitDiscards, 1)
		return true, nil
	}
	if n.external(p) || p.data().out[vl].queue.count >= sendQueue {
		return false, nil
	}
	q := f.data.take()
	q.length, q.vl, q.since = copy(q.frame[:], frame), vl, now
	f.enqueue(now, p, q)
	return true, nil
}

// Transmitted tells whether Transmit would take a packet of a service level.
func (f *Fabric) Transmitted(at Place, sl uint8) bool {
	p := f.port(at)
	vl := p.laneOf(0, sl)
	return vl >= lanes || p.data().out[vl].queue.count < sendQueue
}

// Receive copies the next packet that came to a port into b, which has at least MaxFrame bytes. 0: there is none. Until it
// is received, a packet keeps its room at the port, so that whoever does not receive is sent no more than fits.
func (f *Fabric) Receive(now clock.Time, at Place, b []byte) int {
	f.traps.now = now
	p := f.port(at)
	if p.lanes == nil || p.lanes.arrived.count == 0 {
		return 0
	}
	q := p.lanes.arrived.remove()
	n := copy(b, q.frame[:q.length])
	f.release(now, q)
	return n
}

// Advance does what is due at a moment: packets arrive, links become free.
func (f *Fabric) Advance(now clock.Time) {
	for len(f.data.events) > 0 && !now.Before(f.data.events[0].at) {
		e := f.data.events.pop()
		f.traps.now = e.at
		f.happen(e)
	}
	f.traps.now = now
}

// Deadline is when Advance is wanted next.
func (f *Fabric) Deadline() clock.Time {
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
