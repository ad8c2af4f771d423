package simulate

import (
	"math"
	"math/bits"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/fabric/ethernet"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/simulate/scenario"
	"github.com/softvpi/softvpi/internal/transport/congestion"
	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/ib"
)

// leanSending is the state of a flow at a lean sender.
type leanSending struct {
	total  int64      // packets; MaxInt64: without end
	next   int64      // the first that has not been sent, or must be again
	acked  int64      // the first that has not been acknowledged
	most   int64      // the first that has never been sent
	free   clock.Time // when its reaction point has let it send the next packet, and knows of nothing since
	moved  clock.Time
	window window   // how many it may have on the way since it has lost one
	behind *sending // the next in the queue of those that may send
	react  *congestion.ReactionPoint
}

// leanReceiving is its state at the receiver.
type leanReceiving struct {
	expected int64 // the next that the receiver takes
	beyond   int64 // the last that has come behind a gap, which it has refused; 0: there is none
	answer   congestion.NotificationPoint
}

// notice is a short packet that a lean host owes.
type notice struct {
	flow   *receiving
	opcode ib.Opcode
	refuse bool
	psn    int64
}

// pace is when a flow may send.
type pace struct {
	at   clock.Time
	flow *sending
}

func (p pace) Before(o pace) bool {
	return p.at < o.at || p.at == o.at && p.flow.number < o.flow.number
}

// leanHost is a host without verbs: its flows have packets, acknowledgements for some of them, go back to a packet that was lost, and
// have the reaction points of DCQCN.
type leanHost struct {
	*shard
	node    int // in the shard
	nic     *scenario.NIC
	timeout time.Duration

	ready   [frame.Priorities]fifo // flows that may send
	sends   uint8                  // priorities with such
	full    uint8                  // priorities at which the station has no room
	held    [frame.Priorities]ethernet.Ref
	holds   uint8 // priorities at which a frame is held
	notices []notice
	told    int // of notices
	paced   heap[pace]
	active  []*sending // that wait for acknowledgements
	check   clock.Time
	last    last
	own     [bthAt]byte  // what the headers of its frames have in common
	framed  *sending     // the flow that sent last; nil: none has
	packet  [afterB]byte // of its packets, which differ by their BTH
}

// fifo is a queue of flows.
type fifo struct{ first, last *sending }

func newLeanHost(sh *shard, node int) *leanHost {
	nic := sh.r.s.NICs[node]
	h := &leanHost{shard: sh, node: int(sh.r.n.at[node].node), nic: nic, timeout: ib.AckTimeout(nic.Timeout), check: clock.Never}
	sh.r.n.head(h.own[:], node)
	return h
}

func (h *leanHost) begin(now clock.Time, f *sending) {
	x, mtu := f.lean, int64(f.mtu)
	x.total = math.MaxInt64
	if f.Bytes > 0 {
		x.total = (f.Bytes + mtu - 1) / mtu
	}
	x.moved = now
	h.active = append(h.active, f)
	h.check = clock.Min(h.check, now.Add(h.timeout))
	h.enqueue(f)
}

func (h *leanHost) enqueue(f *sending) {
	q := &h.ready[f.Priority]
	if q.first == nil {
		q.first = f
		h.sends |= 1 << f.Priority
	} else {
		q.last.lean.behind = f
	}
	q.last = f
}

func (h *leanHost) dequeue(priority uint8) *sending {
	q := &h.ready[priority]
	f := q.first
	if q.first = f.lean.behind; q.first == nil {
		q.last = nil
		h.sends &^= 1 << priority
	}
	f.lean.behind = nil
	return f
}

// expect and over implement host: there is nothing to do.
func (h *leanHost) expect(clock.Time, *receiving) {}
func (h *leanHost) over(clock.Time, *receiving)   {}

func (h *leanHost) room(priorities uint8) { h.full &^= priorities }

func (h *leanHost) deadline() clock.Time {
	if len(h.paced) > 0 {
		return clock.Min(h.check, h.paced[0].at)
	}
	return h.check
}

func (h *leanHost) take(now clock.Time, r ethernet.Ref) (turn bool) {
	turn = true
	b := h.Store.Head(r)
	bth := ib.BTH(b[bthAt:])
	to := bth.DestQP()
	switch f := h.sender(to); {
	case f == nil:
		h.data(now, h.receiver(to), b, h.Store.Len(r)-headers)
		turn = len(h.notices) > 0
	case bth.Opcode() == ib.CNP:
		h.notified(now, f)
	default:
		h.acknowledged(now, f, follow(f.lean.acked, bth.PSN()), ib.AETH(b[afterB:]).Syndrome() != 0)
	}
	h.Store.Drop(r)
	return turn
}

// follow returns the number of a packet from its 24 bits, near another.
func follow(near int64, psn ib.PSN) int64 {
	return near + int64(int32((uint32(psn)-uint32(near))<<8)>>8)
}

// data takes a packet with a payload.
func (h *leanHost) data(now clock.Time, f *receiving, b []byte, bytes int) {
	h.last.receives = f
	x, b := f.lean, b[:afterB]
	bth := ib.BTH(b[bthAt:])
	if eth.Marked(eth.IPv4(b[ipAt:]).ToS()) {
		f.marked++
		if h.nic.Congestion.Notify>>f.Priority&1 != 0 && x.answer.Answer(now, h.nic.Congestion.CNPInterval) {
			h.notices = append(h.notices, notice{flow: f, opcode: ib.CNP})
		}
	}
	psn := follow(x.expected, bth.PSN())
	switch {
	case psn > x.expected: // some were lost
		again := psn <= x.beyond // the sender has gone back, and what it was asked for is lost again
		first := x.beyond == 0
		if x.beyond = psn; first || again {
			h.notices = append(h.notices, notice{f, ib.RCAcknowledge, true, x.expected})
		}
		return
	case psn == x.expected:
		x.expected++
		x.beyond = 0
		h.arrived(now, f, bytes)
	}
	if bth.AckReq() {
		h.notices = append(h.notices, notice{f, ib.RCAcknowledge, false, x.expected})
	}
}

// acknowledged takes an acknowledgement of all packets before one, which must be sent again if it is refused.
func (h *leanHost) acknowledged(now clock.Time, f *sending, psn int64, refused bool) {
	x := f.lean
	if psn < x.acked || psn > x.most {
		return
	}
	full := x.full()
	if psn > x.acked {
		x.window.grow(psn - x.acked)
		x.acked, x.moved = psn, now
		x.next = max(x.next, psn)
	}
	switch {
	case refused:
		h.back(f, full)
	case full && x.next < x.total && !x.full():
		h.enqueue(f)
	}
}

// back makes a flow send again from the first packet that is not acknowledged, and have fewer on the way. full says that it waits for
// acknowledgements, and not for its turn.
func (h *leanHost) back(f *sending, full bool) {
	x := f.lean
	idle := full || x.next == x.total
	x.window.lost(x.next - x.acked)
	x.next = x.acked
	if idle && x.next < x.total {
		h.enqueue(f)
	}
}

func (h *leanHost) notified(now clock.Time, f *sending) {
	f.cnps++
	c := &h.nic.Congestion
	if c.React>>f.Priority&1 == 0 {
		return
	}
	if f.lean.react == nil {
		f.lean.react = congestion.NewReactionPoint(&c.Reaction)
	}
	f.lean.react.Notified(now)
	f.lean.free = clock.Never
}

func (h *leanHost) turn(now clock.Time) {
	if h.check <= now {
		h.expire(now)
	}
	for len(h.paced) > 0 && h.paced[0].at <= now {
		f := h.paced.pop().flow
		if at := f.lean.react.NextSend(now); at > now {
			h.paced.push(pace{at, f})
			continue
		}
		f.lean.free = now
		h.enqueue(f)
	}
	for set := h.holds &^ h.full; set != 0; set &= set - 1 {
		p := uint8(bits.TrailingZeros8(set))
		h.holds &^= 1 << p
		h.hand(now, p, h.held[p])
	}
	if len(h.notices) > 0 {
		for h.told < len(h.notices) && h.tell(now, &h.notices[h.told]) {
			h.told++
		}
		if h.told == len(h.notices) {
			h.notices, h.told = h.notices[:0], 0
		}
	}
	for open := h.sends &^ h.full; open != 0; open = h.sends &^ h.full {
		h.send(now, uint8(bits.Len8(open)-1))
	}
}

// expire sends again what has not been acknowledged for long, and forgets flows that are complete.
func (h *leanHost) expire(now clock.Time) {
	h.check = clock.Never
	kept := h.active[:0]
	for _, f := range h.active {
		x := f.lean
		if x.acked == x.total {
			continue
		}
		kept = append(kept, f)
		if x.next > x.acked && now >= x.moved.Add(h.timeout) {
			x.moved = now
			h.back(f, x.full())
		}
		h.check = clock.Min(h.check, max(x.moved.Add(h.timeout), now+1))
	}
	h.active = kept
}

// hand gives a frame to the station, or keeps it until that has room.
func (h *leanHost) hand(now clock.Time, priority uint8, r ethernet.Ref) {
	if !h.SendAt(now, h.node, priority, r) {
		h.held[priority] = r
		h.holds |= 1 << priority
		h.full |= 1 << priority
	}
}

// tell sends an acknowledgement or a notification; false: there is no room.
func (h *leanHost) tell(now clock.Time, n *notice) bool {
	c := &h.nic.Congestion
	class := n.flow.Priority << 5
	length := afterB + ib.AETHLen
	if n.opcode == ib.CNP {
		class, length = c.CNPDSCP<<2, afterB+ib.CNPReservedLen
	}
	priority := class >> 5
	if h.full>>priority&1 != 0 {
		return false
	}
	r, b := h.Store.Reserve(length, ib.ICRCLen)
	clear(b[afterB:])
	h.address(b, n.flow.number, n.flow.mac, n.flow.peer, class)
	bth := ib.BTH(b[bthAt:])
	bth.Encode(n.opcode, false, false, 0, pkey, sendingNumber(n.flow.back), ib.PSN(n.psn)&ib.PSNMask)
	if n.opcode == ib.CNP {
		bth.SetBECN(true)
	} else if n.refuse {
		ib.AETH(b[afterB:]).SetSyndrome(ib.NAKSequence)
	}
	h.hand(now, priority, r)
	return true
}

// send sends a packet of the flow that comes next at a priority.
func (h *leanHost) send(now clock.Time, priority uint8) {
	f := h.dequeue(priority)
	h.last.sends = f
	x := f.lean
	if x.next == x.total { // what had to be sent again has been acknowledged meanwhile
		return
	}
	if x.react != nil && x.free != now {
		if at := x.react.NextSend(now); at > now {
			h.paced.push(pace{at, f})
			return
		}
	}
	bytes := int(f.mtu)
	if f.Bytes > 0 {
		bytes = int(min(int64(bytes), f.Bytes-x.next*int64(bytes)))
	}
	if h.framed != f {
		h.frame(f)
	}
	r, b := h.Store.Reserve(afterB, bytes+ib.ICRCLen)
	*(*[afterB]byte)(b) = h.packet
	ask := x.next == x.total-1 || x.window.size == x.next-x.acked+1 || (x.next+1)%int64(h.nic.AckEvery) == 0
	ib.BTH(b[bthAt:]).Encode(ib.RCWriteMiddle, false, ask, 0, pkey, receivingNumber(f.there), ib.PSN(x.next)&ib.PSNMask)
	h.hand(now, priority, r)
	f.packets++
	h.packets++
	if x.next < x.most {
		f.again++
	}
	x.next++
	x.most = max(x.most, x.next)
	h.sent(now, f, bytes)
}

// sent counts what a flow has sent against its rate, and says when it sends next.
func (h *leanHost) sent(now clock.Time, f *sending, bytes int) {
	x := f.lean
	if x.react != nil {
		x.react.Sent(now, bytes+headers+4, h.nic.Congestion.Slack)
		x.free = clock.Never
	}
	if x.next == x.total || x.full() {
		return
	}
	if x.react != nil {
		if at := x.react.NextSend(now); at > now {
			h.paced.push(pace{at, f})
			return
		}
		x.free = now
	}
	h.enqueue(f)
}
