package simulate

import (
	"time"
	"unsafe"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/clock/due"
	"github.com/softvpi/softvpi/internal/fabric/aggregation"
	"github.com/softvpi/softvpi/internal/fabric/ethernet"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/transport"
	"github.com/softvpi/softvpi/wire/eth"
)

// host is what is at a station.
type host interface {
	// begin starts a flow of the host, which has a turn then.
	begin(now clock.Time, f *sending)
	// expect prepares the host for a flow that begins at another, and over says that it has ended there.
	expect(now clock.Time, f *receiving)
	over(now clock.Time, f *receiving)
	// take takes a frame that has arrived, which is the host's from now on. It has a turn then, if it wants one.
	take(now clock.Time, r ethernet.Ref) (turn bool)
	// room says that the station has room again at some priorities. The host has a turn then.
	room(priorities uint8)
	// turn does what is due and sends what may be sent.
	turn(now clock.Time)
	// deadline is when the host wants its next turn.
	deadline() clock.Time
	// prefetch asks for the memory of the host, in steps (shard.foresee).
	prefetch(step int)
}

// shard is a part of the network, with its own time: it goes on without the others as long as nothing can arrive that they have not
// sent yet.
type shard struct {
	ethernet.Fabric
	r      *Run
	number int
	side   int // of the network: all that it has links to are on the other, where there are two
	nodes  int
	now    clock.Time
	reach  time.Duration // by which its hosts and switches may be apart; 0: they go on together
	// hint is how much later a host is told of a flow that begins at another of the shard: before the first packet can arrive, and behind
	// what it may have done already.
	hint  time.Duration
	macs  []eth.MAC // of hosts
	hosts []host    // by node: hosts come first
	exits [][]exit
	boxes []*box // of what leaves
	feeds []*box // of what comes

	bonds *aggregation.Bonds // of nodes that speak LACP; nil: none does
	joins []joined

	starts  heap[start]
	due     due.Times // of hosts
	touched []int32
	waiting []bool // by host: it is among those that were touched

	sends    []sending // halves of flows
	receives []receiving
	notes    []note     // for other shards
	heard    heap[note] // of other shards

	out       [waiting]frame.Out // what all engines send with, so that it stays in the caches
	completed [16]transport.Completion

	packets   uint64 // with a payload that were sent
	complete  int    // flows that have ended here
	turns     int    // in the last window
	unwatched int    // turns since somebody was asked whether to go on
}

// note tells another shard that a flow begins or has ended. It is on its way as long as a frame, so that when it is heard does not
// depend on how far shards go on at a time.
type note struct {
	at   clock.Time
	flow int32
	over bool
}

func (n note) Before(o note) bool {
	return n.at < o.at || n.at == o.at && (n.flow < o.flow || n.flow == o.flow && o.over && !n.over)
}

// settle makes room for hosts, which are there now.
func (h *shard) settle() {
	h.due, h.waiting, h.touched = due.New(len(h.hosts)), make([]bool, len(h.hosts)), make([]int32, 0, len(h.hosts))
	h.Deliver = func(now clock.Time, at ethernet.End, f ethernet.Ref) {
		if turn := h.hosts[at.Node].take(now, f); !turn && h.reach > 0 {
			h.turns++
			return
		}
		h.touch(int32(at.Node))
	}
	if take := h.Deliver; h.r.s.Learning {
		h.Deliver = func(now clock.Time, at ethernet.End, f ethernet.Ref) {
			if !h.mine(at.Node, f) { // it was flooded
				h.Store.Drop(f)
				return
			}
			take(now, at, f)
		}
	}
	h.Away = h.away
}

// mine reports whether a frame is for the host at which it has arrived.
func (h *shard) mine(host int, f ethernet.Ref) bool { return eth.MAC(h.Store.Head(f)) == h.macs[host] }

func (h *shard) touch(host int32) {
	if !h.waiting[host] {
		h.waiting[host] = true
		h.touched = append(h.touched, host)
	}
}

// first returns when something happens next.
func (h *shard) first() clock.Time { return clock.Min(h.Deadline(), h.wanted()) }

// wanted returns when something happens next that is no affair of the links and switches alone.
func (h *shard) wanted() clock.Time {
	at := clock.Min(h.due.First(), h.begins())
	if h.bonds != nil {
		at = clock.Min(at, h.bonds.Deadline())
	}
	return at
}

// pass lets everything happen until a time.
func (h *shard) pass(until clock.Time) {
	h.foresee(until)
	h.turns = 0
	h.collect()
	if h.reach > 0 {
		h.byTurns(until)
	} else {
		h.together(until)
	}
	h.now = max(h.now, until)
}

// together lets everything happen until a time, in the order of time.
func (h *shard) together(until clock.Time) {
	for at, stirred := h.next(until); at <= until; at, stirred = h.next(until) {
		h.now = max(h.now, at)
		if !stirred {
			if !h.begin() {
				return
			}
			h.Advance(h.now)
		}
		if h.step(); !h.breathe() {
			return
		}
	}
}

// next returns when there is something to do that is not the affair of links and switches alone, or a time after until. What happens
// before at these, as most does, is over then. stirred: they have something for hosts, and what happens at them at that time is over too.
func (h *shard) next(until clock.Time) (at clock.Time, stirred bool) {
	wanted := h.wanted()
	if h.bonds != nil { // which have a say in what links do
		return clock.Min(wanted, h.Deadline()), false
	}
	before := clock.Min(wanted, until.Add(1))
	for at = h.Deadline(); at < before; at = h.Deadline() {
		if h.Advance(at); len(h.touched) > 0 || h.HasRoom() {
			return at, true
		}
	}
	return clock.Min(wanted, at), false
}

// breathe asks now and then whether to go on.
func (h *shard) breathe() bool {
	if h.unwatched < beat {
		return true
	}
	h.unwatched = 0
	return h.r.breathe()
}

// begin starts what is to begin now; false: the run is over.
func (h *shard) begin() bool {
	now := h.now
	for len(h.heard) > 0 && h.heard[0].at <= now {
		x := h.heard.pop()
		h.tell(now, h.r.flows[x.flow].receiving, x.over)
	}
	for len(h.starts) > 0 && h.starts[0].at <= now {
		f := h.r.flows[h.starts.pop().flow].sending
		if len(h.starts) == 0 {
			h.starts = nil // which may have been all flows
		}
		f.began = now
		h.hosts[f.host].begin(now, f)
		h.touch(f.host)
		if h.unwatched++; !h.breathe() {
			return false
		}
	}
	if h.bonds != nil {
		h.bonds.Advance(now)
	}
	return true
}

// step lets hosts do what is due now, and take what has arrived.
func (h *shard) step() {
	now := h.now
	for h.due.First() <= now {
		i := h.due.Next()
		h.touch(int32(i))
		if h.due.Rest(i) > now { // it gets its next time below, and mostly no other one is due
			break
		}
		h.due.Set(i, clock.Never)
	}
	for node, priorities, ok := h.Room(); ok; node, priorities, ok = h.Room() {
		h.hosts[node].room(priorities)
		h.touch(int32(node))
	}
	for i := 0; i < len(h.touched); i++ { // turns touch others
		k := h.touched[i]
		h.waiting[k] = false
		h.hosts[k].turn(now)
		h.due.Set(int(k), h.hosts[k].deadline())
	}
	h.turns += len(h.touched)
	h.unwatched += len(h.touched)
	h.touched = h.touched[:0]
}

// connect lets the host at the other end of a flow know of it before the first packet can arrive; over: that it has ended.
func (h *shard) connect(now clock.Time, f *sending, over bool) {
	to := h.r.flows[f.number].receiving
	switch {
	case to.shard != h:
		h.notes = append(h.notes, note{now, f.number, over})
	case h.hint > 0 && to.host != f.host:
		h.heard.push(note{now.Add(h.hint), f.number, over})
	default:
		h.tell(now, to, over)
	}
}

// tell tells a host of the shard what connect says.
func (h *shard) tell(now clock.Time, f *receiving, over bool) {
	if over {
		h.hosts[f.host].over(now, f)
	} else {
		h.hosts[f.host].expect(now, f)
	}
}

// arrived counts bytes of a flow that have arrived in order.
func (h *shard) arrived(now clock.Time, f *receiving, bytes int) {
	f.got += int64(bytes)
	if f.Bytes == 0 || f.got < f.Bytes || f.ended != clock.Never {
		return
	}
	f.ended = now
	h.complete++
	for _, i := range h.r.s.Flows.After(int(f.number)) { // which begin at this host (workload.Flow)
		x := h.r.flows[i].sending
		if x.waits--; x.waits == 0 {
			h.starts.push(start{max(x.Start, now), i})
		}
	}
}

// shared is what all hosts of all runs write from and to. Nobody changes it: a payload is where it belongs before it is sent.
var shared [message]byte

// payloadUnit is what places of payloads in the shared memory are counted in: packets but the last of a message have as much or a
// multiple of it.
const payloadUnit = 256

// offset returns where a payload is in the shared memory.
func offset(payload []byte) uint16 {
	if len(payload) == 0 {
		return 0
	}
	return uint16((uintptr(unsafe.Pointer(&payload[0])) - uintptr(unsafe.Pointer(&shared[0]))) / payloadUnit)
}

// payloadAt returns the payload of so many bytes at a place.
func payloadAt(offset uint16, n int) []byte {
	at := min(int(offset)*payloadUnit, message-n)
	return shared[at : at+n]
}
