package ethernet

import (
	"math/bits"
	"unsafe"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/fabric/bridge"
	"github.com/softvpi/softvpi/wire/eth"
)

// Port is one of a switch.
// What frames look at is together, on as few lines of memory as it takes: of a class one for what leaves and one for what comes in, and
// one each from sw, urgent, scheduler and cfg on, which begin where a line does.
type Port struct {
	classes [Priorities]class

	sw      *Switch
	relay   *bridge.RelayPort // nil: it is routed
	perByte uint64            // time of a byte on the wire, ns << 32
	end     clock.Time        // when the frame on the line ends, with rest, which is ns << 32
	free    clock.Time        // when the line is free: the first ns behind that
	rest    uint32
	sending charge // of the frame on the line
	number  uint8
	down    bool
	deaf    bool  // frames that it receives are dropped
	mute    bool  // no frames are sent there
	backlog uint8 // priorities at which frames wait
	seen    uint8 // priorities that have had frames since they were asked for (Fabric.Prefetch)

	urgent []Ref // pauses of the host of a station, and frames of the switch, which go first
	pauses

	_         [(line - (unsafe.Sizeof([]Ref{})+unsafe.Sizeof(pauses{}))%line) % line]byte
	scheduler scheduler
	_         [(line - unsafe.Sizeof(scheduler{})%line) % line]byte
	cfg       PortConfig
	unlearned uint64 // sources of a domain of which there were too many
	flooded   uint64
	dropped   Drops
	_         [(line - (unsafe.Sizeof(PortConfig{})+16+unsafe.Sizeof(Drops{}))%line) % line]byte
}

// line is how long a line of memory is.
const line = 64

// class is what a port has for frames of a priority: where they wait to leave, what those use that came in, and what happens rarely. Three
// lines of memory.
type class struct {
	queue  queue
	group  group
	events events
	_      [16]byte
}

// traffic counts frames.
type traffic struct{ frames, bytes uint64 }

func (t *traffic) add(bytes int) {
	t.frames++
	t.bytes += uint64(bytes)
}

// events are counters of what happens to few frames (PriorityCounters).
type events struct {
	marked, storms                         uint64
	queueDrops, bufferDrops, headroomDrops uint64
	peakHeadroom                           int
}

// counters returns those of the priority, but for its pauses.
func (c *class) counters() PriorityCounters {
	q, g, e := &c.queue, &c.group, &c.events
	return PriorityCounters{InFrames: g.arrived.frames, InBytes: g.arrived.bytes, OutFrames: q.left.frames, OutBytes: q.left.bytes,
		Marked: e.marked, QueueDrops: e.queueDrops, BufferDrops: e.bufferDrops, HeadroomDrops: e.headroomDrops,
		PeakQueue: int(q.peak), PeakHeadroom: e.peakHeadroom, Storms: e.storms}
}

// upper is the priority of each DSCP where it is its upper three bits.
var upper = func() (all [64]uint8) {
	for i := range all {
		all[i] = uint8(i >> 3)
	}
	return all
}()

// newPort returns a port for a configuration that is settled.
func newPort(s *Switch, number int, cfg PortConfig) Port {
	p := Port{sw: s, number: uint8(number), cfg: cfg}
	if cfg.PCP != nil {
		p.cfg.PCP = new(*cfg.PCP)
	}
	if p.cfg.DSCP = nil; cfg.DSCP != nil && *cfg.DSCP != upper { // else nobody has to look there
		p.cfg.DSCP = new(*cfg.DSCP)
	}
	p.perByte = perByteOf(cfg.Rate)
	p.pausing, p.obeys = cfg.groups(), cfg.scope()
	p.follow(0)
	for i := range Priorities {
		g, q := &cfg.Groups[i], &cfg.Queues[i]
		p.classes[i].group = group{xoff: thresholdOf(g.Xoff, g.Alpha), xon: g.Xon}
		p.classes[i].group.room = p.roomOf(i)
		p.classes[i].queue.set(q)
		p.scheduler.quantum[i] = quantum * int(q.Weight)
		if q.Strict {
			p.scheduler.strict |= 1 << i
		}
	}
	return p
}

// priority returns that of a frame that the port receives.
func (p *Port) priority(h *header) uint8 {
	switch {
	case p.cfg.Trust == TrustNone:
	case p.cfg.Trust == TrustDSCP && h.version != 0:
		if p.cfg.DSCP == nil {
			return h.class >> 5
		}
		return p.cfg.DSCP[h.class>>2]
	case h.tagged:
		if p.cfg.PCP == nil {
			return uint8(h.tci >> 13)
		}
		return p.cfg.PCP[h.tci>>13]
	}
	return p.cfg.Default
}

// wake gives the port a turn, as soon as its line is free.
func (p *Port) wake(now clock.Time) {
	if d := &p.sw.due; d.Get(int(p.number)) > now {
		d.Set(int(p.number), max(now, p.free))
	}
}

// turn sends what comes next, if the line is free.
func (p *Port) turn(now clock.Time) {
	if p.free > now {
		p.sw.due.Set(int(p.number), p.free)
		return
	}
	p.sent(now)
	if p.down {
		p.sw.due.Set(int(p.number), clock.Never)
		return
	}
	closed := p.closed(now)
	open := p.backlog &^ closed
	switch {
	case len(p.urgent) > 0:
		p.relayPause(now)
	case p.flow.Ready(now):
		p.signal(now)
	case open != 0:
		p.send(now, p.scheduler.choose(open))
	default:
		p.sw.due.Set(int(p.number), clock.Min(p.flow.Repeats(), p.stall(now)))
		return
	}
	if closed&p.backlog != 0 {
		p.stall(now)
	}
	p.sw.due.Set(int(p.number), p.next())
}

// sent gives back the room of the frame that has left.
func (p *Port) sent(now clock.Time) {
	if p.sending.size > 0 {
		p.giveBack(now)
	}
}

// send puts the first frame of a queue on the line.
func (p *Port) send(now clock.Time, priority uint8) {
	f, n, marked := p.pop(priority)
	p.put(now, priority, f, n, marked)
}

// put puts a frame of n bytes on the line; marked: it has met congestion, or may have.
func (p *Port) put(now clock.Time, priority uint8, f Ref, n int, marked bool) {
	s := p.sw
	p.scheduler.sent(priority, n)
	c := &p.classes[priority]
	c.queue.left.add(n)
	h := &s.store.frames[f]
	dress := !s.crossed && (p.relay != nil || h.tagged)
	if h.refs > 1 { // it waits at other ports too
		h.refs--
		f = s.store.again(f)
	} else {
		p.sending = h.charge
	}
	if marked && (!c.queue.leaving || c.queue.congested(s.cfg.Random)) {
		c.events.marked++
		mark(s.store.Head(f))
	}
	if dress {
		p.dress(f)
		n = s.store.Len(f)
	}
	p.transmit(now, f, n)
}

// lose drops the first frame of a queue.
func (p *Port) lose(now clock.Time, priority uint8) {
	s := p.sw
	f, _, _ := p.pop(priority)
	p.classes[priority].events.queueDrops++
	if h := &s.store.frames[f]; h.refs > 1 {
		h.refs--
		return
	}
	s.leave(now, MostPorts, s.store.frames[f].charge)
	s.store.Drop(f)
}

// dress gives a frame the tag with which it leaves the port, or takes it off.
func (p *Port) dress(f Ref) {
	s := p.sw.store
	h, b := &s.frames[f], s.Head(f)
	tagged := b[macs] == byte(eth.TypeVLAN>>8) && b[macs+1] == byte(eth.TypeVLAN&0xff)
	tags := p.relay != nil && p.relay.Tags(h.vlan)
	switch {
	case tags && tagged:
		b[macs+2], b[macs+3] = b[macs+2]&0xf0|byte(h.vlan>>8), byte(h.vlan)
	case tags:
		s.tag(f, uint16(h.class)<<13|h.vlan)
	case tagged:
		s.untag(f)
	}
}

// transmit puts a frame of n bytes on the line, which is free.
func (p *Port) transmit(now clock.Time, f Ref, n int) {
	p.sw.out = append(p.sw.out, Departure{Frame: f, Port: int(p.number), At: p.occupy(now, n)})
}

// occupy is transmit for whoever takes the frame along. It returns when that arrives at the other end.
func (p *Port) occupy(now clock.Time, n int) clock.Time {
	if p.free < now { // it has been idle
		p.end, p.rest = now, 0
	}
	total := uint64(p.rest) + uint64(max(n, shortest)+onWire)*p.perByte
	p.end += clock.Time(total >> 32)
	p.rest = uint32(total)
	if p.free = p.end; p.rest > 0 {
		p.free++
	}
	return p.free.Add(p.cfg.Delay)
}

// Counters returns the port's.
func (p *Port) Counters(now clock.Time) Counters {
	e := p.flow.Counters(now)
	c := Counters{Flooded: p.flooded, Dropped: p.dropped, Global: e.Global, Ignored: e.Ignored}
	for i := range c.Priority {
		c.Priority[i] = p.classes[i].counters()
		c.Priority[i].Pause = e.Priority[i]
	}
	c.Dropped.Reserved += e.Unknown
	if p.relay != nil {
		c.NotLearned = p.relay.NotLearned() + p.unlearned
	}
	return c
}

// Queued returns how many frames and bytes wait at a priority to leave by the port.
func (p *Port) Queued(priority uint8) (frames, bytes int) {
	q := &p.classes[priority].queue
	return int(q.frames), int(q.bytes)
}

// Buffered returns how many bytes that came in at a priority are in the shared buffer, and in the headroom.
func (p *Port) Buffered(now clock.Time, priority uint8) (shared, headroom int) {
	p.sw.settle(now, MostPorts)
	g := &p.classes[p.groupOf(priority)].group
	return g.shared, g.headroom
}

// Up reports whether the port carries frames.
func (p *Port) Up() bool { return !p.down }

// SetUp lets the port carry frames or not. What waits there is lost when it goes down, with what both ends asked for, and what was
// heard there is forgotten.
func (p *Port) SetUp(now clock.Time, up bool) {
	if p.down != up {
		return
	}
	p.down = !up
	if up {
		p.wake(now)
		return
	}
	for set := p.backlog; set != 0; set &= set - 1 {
		i := uint8(bits.TrailingZeros8(set))
		for p.classes[i].queue.frames > 0 {
			p.lose(now, i)
		}
	}
	for _, f := range p.urgent {
		p.sw.store.Drop(f)
	}
	p.urgent = p.urgent[:0]
	p.flow.Forget(now)
	p.stormy, p.behalf = 0, 0
	p.ask()
	if p.relay != nil && p.sw.isolated(p) {
		p.relay.Forget()
	}
	p.wake(now)
}
