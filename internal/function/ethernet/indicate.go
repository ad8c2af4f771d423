package ethernet

import (
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/function/ethernet/queue"
	"github.com/softvpi/softvpi/internal/moderation"
	"github.com/softvpi/softvpi/internal/offload"
	"github.com/softvpi/softvpi/internal/wait"
)

// Values of keys.
const (
	pollingMethod = 0 // RecvCompletionMethod, SendCompletionMethod
	adaptive      = 2 // RxIntModeration
	asyncThread   = 1 // AsyncReceiveIndicate
	asyncPolling  = 2
)

// receiveQueue is a receive queue. Packets are indicated where the wire has them while the queue is polled, or if an
// interrupt is due; else they wait in its ring.
type receiveQueue struct {
	join    offload.Joiner
	ring    *queue.Ring
	polling bool
	rounds  wait.Rounds
	turn    int        // packets of this turn
	arrived uint32     // packets so far
	waiting uint32     // packets since the last interrupt
	due     clock.Time // when the next interrupt is
	meter   moderation.Meter
	full    bool                     // the host has no room
	yielded bool                     // it has had its turn, and more waits
	moved   bool                     // its share of this turn has ended the polling
	batch   int                      // frames of the batch that is being received, in dropless mode
	kept    [frame.Priorities]uint32 // packets in the ring, by priority
	filled  bool                     // it was filled to its threshold, and is not down to the lower one yet
	progress
	kinds RSSCounters
	c     ReceiveCounters
}

// paceFor returns a pace of packets and microseconds.
func paceFor(count, us int) moderation.Pace {
	return moderation.Pace{Count: uint32(count), Interval: time.Duration(us) * time.Microsecond}
}

// setCompletion sets how packets are indicated and joined.
func (f *Function) setCompletion() {
	c := &f.cfg
	f.pace = paceOf(c)
	f.polling = wait.Polling{On: true, Weight: uint32(c.AverageFactor), Average: uint32(c.AveragePollThreshold),
		Last: uint32(c.ThisPollThreshold)}
	if c.RecvCompletionMethod == pollingMethod {
		f.polling.Rounds = uint32(c.ThreadPoll)
	}
	if n := min(max(c.MaxIndicateDPC, c.MaxIndicateThread), ringSize(c)); n != len(f.waiting) {
		f.waiting = make([]Packet, n)
	}
	for i := range f.receive {
		f.receive[i].join.Join4, f.receive[i].join.Join6 = f.takesLarge(4), f.takesLarge(6)
		f.receive[i].ring.Keep(c.kept())
	}
}

// ringSize returns for how many packets a receive queue has room.
func ringSize(c *Config) int {
	if c.AsyncReceiveIndicate != 0 {
		return c.ReceiveBuffers + c.RfdReservationFactor
	}
	return c.ReceiveBuffers
}

// kept returns for how many packets a ring keeps memory: two thirds of it unless ReturnPacketThreshold says otherwise (WinOF 5.50,
// 4.6.5), and not less than NicMinRfd.
func (c *Config) kept() int {
	n := c.ReturnPacketThreshold
	if n == 0 {
		n = c.ReceiveBuffers * 2 / 3
	}
	return max(n, c.NicMinRfd)
}

// startReceive makes the receive queues.
func (f *Function) startReceive() {
	c := &f.cfg
	f.receive = make([]receiveQueue, len(f.processors))
	for i := range f.receive {
		r := &f.receive[i]
		r.ring, r.due = queue.NewRing(ringSize(c), c.kept()), clock.Never
		r.ring.Share(c.Virtual.pool())
	}
	f.setCompletion()
}

// ReceiveCounters returns the counters of a receive queue, which keep counting.
func (f *Function) ReceiveCounters(q int) *ReceiveCounters { return &f.receive[q].c }

// Memory returns how many bytes the rings of received packets hold.
func (f *Function) Memory() (n int) {
	for i := range f.receive {
		n += f.receive[i].ring.Memory()
	}
	return n
}

// deliver indicates packets that have arrived for a queue, or keeps them.
func (f *Function) deliver(now clock.Time, q int, list []Packet) {
	r := &f.receive[q]
	r.turn += len(list)
	r.arrived += uint32(len(list))
	bytes := 0
	for i := range list {
		bytes += list[i].Len()
	}
	r.c.Packets += uint64(len(list))
	r.c.Bytes += uint64(bytes)
	f.cfg.Virtual.pool().Count(len(list), bytes)
	if f.cfg.AsyncReceiveIndicate == 0 && !r.full && f.at(now, r, len(list)) {
		f.drain(now, q)
		if r.ring.Len() == 0 && len(list) > 0 {
			r.c.LowResources++
			list = list[f.indicate(now, q, list):]
		}
	}
	for i := range list {
		r.keep(f, &list[i])
	}
	f.arm(now, r)
}

// at reports whether packets that arrive now are indicated at once: the queue is polled, or its interrupt is due.
func (f *Function) at(now clock.Time, r *receiveQueue, n int) bool {
	if r.polling {
		return true
	}
	if f.cfg.RecvCompletionMethod == pollingMethod { // the first packet starts polling
		f.interrupt(r)
		r.polling = true
		r.c.Transitions++
		return true
	}
	p := f.paceNow(now, r)
	if r.waiting += uint32(n); p.Interval == 0 || p.Count != 0 && r.waiting >= p.Count || now >= r.due {
		f.interrupt(r)
		return true
	}
	return false
}

// paceNow returns how the interrupts of a queue are delayed now.
func (f *Function) paceNow(now clock.Time, r *receiveQueue) moderation.Pace {
	if f.pace.Adaptive {
		if r.meter.Look(now, r.arrived, f.pace.Low, f.pace.High); !r.meter.Fast {
			return moderation.Pace{}
		}
	}
	return f.pace.Receive
}

// interrupt is an interrupt of a queue.
func (f *Function) interrupt(r *receiveQueue) {
	r.c.Interrupts++
	r.waiting, r.due = 0, clock.Never
}

// keep puts a packet into the ring, or loses it.
func (r *receiveQueue) keep(f *Function, p *Packet) {
	if !r.ring.Put(p, f.cfg.splits()) {
		f.cfg.Virtual.pool().Drop()
		r.c.NoBuffer++
		f.counters.NoBuffer++
		return
	}
	r.kept[p.Priority]++
	r.c.Moderated++
	if r.ring.Len() > f.cfg.ReceiveBuffers {
		r.c.Burst++
	}
}

// arm sets when packets that wait are to be indicated.
func (f *Function) arm(now clock.Time, r *receiveQueue) {
	switch {
	case r.ring.Len() == 0 || r.full:
		r.due = clock.Never
	case r.yielded:
		if r.due = now; !f.polled(r) {
			r.c.Starved++
		}
	case f.cfg.AsyncReceiveIndicate != 0 || r.polling:
		r.due = now
	case r.due == clock.Never:
		r.due = now.Add(f.pace.Receive.Interval)
	}
}

// advanceReceive does what is due for a queue, and ends a round of polling.
func (f *Function) advanceReceive(now clock.Time, q int) {
	r := &f.receive[q]
	if r.due <= now {
		if f.cfg.AsyncReceiveIndicate == 0 && !r.polling && !r.yielded {
			f.interrupt(r)
		}
		f.drain(now, q)
		f.arm(now, r)
	}
	stay := r.rounds.Round(&f.polling, r.turn)
	r.turn = 0
	switch {
	case r.moved: // until an interrupt
		r.moved, r.rounds = false, wait.Rounds{}
	case r.polling:
		r.polling = stay
	case stay && f.cfg.RecvCompletionMethod != pollingMethod: // adaptive: from interrupts to polling while much arrives
		r.polling = true
		r.c.Transitions++
	}
}

// Polls reports whether a queue wants to be polled, that is, whoever drives the function is to keep looking for frames.
func (f *Function) Polls() bool {
	for i := range f.receive {
		if f.receive[i].polling {
			return true
		}
	}
	return false
}

// Ready says that the host has room again for packets of a queue.
func (f *Function) Ready(now clock.Time, q int) {
	r := &f.receive[q]
	r.full = false
	f.drain(now, q)
	f.arm(now, r)
}

// drain begins a queue's turn with what waits in its ring.
func (f *Function) drain(now clock.Time, q int) {
	r := &f.receive[q]
	f.calls = f.cfg.MaxCallsToNdisIndicate
	for r.ring.Len() > 0 && !r.full && f.calls > 0 {
		n := r.ring.Peek(f.waiting[:min(len(f.waiting), f.mostAtOnce(r))])
		took := f.indicate(now, q, f.waiting[:n])
		for i := range f.waiting[:took] {
			r.kept[f.waiting[i].Priority]--
		}
		r.ring.Remove(took)
	}
	r.yielded = r.ring.Len() > 0 && !r.full
}

// polled reports whether the packets of a queue count as received in polling mode.
func (f *Function) polled(r *receiveQueue) bool {
	return r.polling || f.cfg.AsyncReceiveIndicate == asyncPolling
}

// mostAtOnce returns how many packets of a queue are indicated at once.
func (f *Function) mostAtOnce(r *receiveQueue) int {
	if f.polled(r) {
		return f.cfg.MaxIndicateThread
	}
	return f.cfg.MaxIndicateDPC
}

// indicate passes packets to the host, at most mostAtOnce at once, and as often as is left in the turn of their queue, and returns
// how many it took.
func (f *Function) indicate(now clock.Time, q int, list []Packet) (took int) {
	r := &f.receive[q]
	for took < len(list) && f.calls > 0 {
		most := f.mostAtOnce(r)
		part := list[took:min(len(list), took+most)]
		f.calls--
		n := min(max(f.host.Indicate(now, q, part), 0), len(part))
		took += n
		f.indicated(r, n, most)
		if n < len(part) {
			r.full = true
			r.c.Skipped++
			f.watch(now)
			break
		}
	}
	r.yielded = took < len(list) && !r.full
	return took
}

// indicated counts packets that were passed to the host at once, of which there may be so many. As many end the polling of a queue,
// if that is asked for (WinOF 5.50, 5.5.3.9: UponMaxConsumedReceivesMoveToDPC).
func (f *Function) indicated(r *receiveQueue, n, most int) {
	if n == 0 {
		return
	}
	c := &r.c
	if f.polled(r) {
		c.PacketsThread += uint64(n)
		c.IndicationsThread++
	} else {
		c.PacketsDPC += uint64(n)
		c.IndicationsDPC++
	}
	if n == most {
		c.ConsumedMaxReceives++
		if f.cfg.ReceivesMoveToDPC != 0 && r.polling {
			r.polling, r.moved = false, true
		}
	}
	c.Batches[min(n/40, len(c.Batches)-1)]++
}
