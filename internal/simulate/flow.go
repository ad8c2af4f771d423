package simulate

import (
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/simulate/workload"
	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/ib"
)

// flow is a flow of a run, whose two halves are in the shards of its hosts.
type flow struct {
	*sending
	*receiving
}

// sending is a flow as its sender has it: what both kinds of hosts count, and their own state.
type sending struct {
	*workload.Flow
	number  int32
	host    int32   // of the sender, by its number in the shard
	there   uint32  // number of the other half in its shard
	peer    [4]byte // address of the receiver
	mac     eth.MAC // of the receiver, or of the switch that routes
	failed  bool    // a write has ended with an error
	waits   int32   // how many flows must end before
	mtu     int32
	began   clock.Time // Never: not yet
	packets uint64     // with a payload that have been sent
	again   uint64     // of them more than once
	cnps    uint64     // that have arrived

	lean *leanSending // nil: it has a queue pair
	rc   *rcSending
}

// Release implements frame.Path: both halves are what is kept for the route of their packets.
func (*sending) Release()   {}
func (*receiving) Release() {}

// receiving is a flow as its receiver has it.
type receiving struct {
	*workload.Flow
	number int32
	host   int32   // of the receiver, by its number in the shard
	back   uint32  // number of the other half in its shard
	peer   [4]byte // address of the sender
	mac    eth.MAC // of the sender, or of the switch that routes
	shard  *shard
	ended  clock.Time // when its last byte had arrived; Never: not yet
	got    int64      // bytes that have arrived in order
	marked uint64     // packets that have arrived with a mark

	lean *leanReceiving
	rc   *rcReceiving
}

// Halves of flows have numbers as queue pairs have, which frames carry: those that send have the highest bit.
const (
	firstHalf  = 16
	senderHalf = 1 << 23
)

func receivingNumber(i uint32) ib.QPN { return ib.QPN(firstHalf + i) }
func sendingNumber(i uint32) ib.QPN   { return ib.QPN(senderHalf | firstHalf + i) }

// sender returns the sender's half that a frame is for; nil: it is for the receiver's.
func (h *shard) sender(n ib.QPN) *sending {
	if n&senderHalf == 0 {
		return nil
	}
	return &h.sends[n&^senderHalf-firstHalf]
}

// receiver returns the receiver's half that a frame is for, which is for none of a sender.
func (h *shard) receiver(n ib.QPN) *receiving { return &h.receives[n-firstHalf] }

// halve makes the flows of a scenario, those of a host beside each other in its shard.
func (r *Run) halve() {
	all, hosts := r.s.Flows.All, r.s.Graph.Hosts
	sends, receives := make([]int, len(hosts)), make([]int, len(hosts)) // of each host: how many, and then the number of the next
	for i := range all {
		sends[all[i].From]++
		receives[all[i].To]++
	}
	many := make([]struct{ sends, receives int }, len(r.n.shards))
	for i, node := range hosts {
		x := &many[r.n.at[node].shard]
		sends[i], x.sends = x.sends, x.sends+sends[i]
		receives[i], x.receives = x.receives, x.receives+receives[i]
	}
	for i := range r.n.shards {
		r.n.shards[i].hold(many[i].sends, many[i].receives)
	}
	r.flows = make([]flow, len(all))
	for i := range all {
		f := &all[i]
		from, to := r.n.at[hosts[f.From]], r.n.at[hosts[f.To]]
		a, b := &r.n.shards[from.shard], &r.n.shards[to.shard]
		n, m := sends[f.From], receives[f.To]
		sends[f.From]++
		receives[f.To]++
		a.sends[n] = sending{Flow: f, number: int32(i), host: from.node, there: uint32(m), waits: f.Waits, mtu: int32(r.s.MTU(f)),
			peer: r.n.addrs[hosts[f.To]].As4(), mac: r.n.next(hosts[f.From], hosts[f.To]), began: clock.Never, lean: a.sends[n].lean}
		b.receives[m] = receiving{Flow: f, number: int32(i), host: to.node, back: uint32(n), shard: b,
			peer: r.n.addrs[hosts[f.From]].As4(), mac: r.n.next(hosts[f.To], hosts[f.From]), ended: clock.Never, lean: b.receives[m].lean}
		r.flows[i] = flow{&a.sends[n], &b.receives[m]}
		if f.Waits == 0 {
			a.starts.push(start{f.Start, int32(i)})
		}
	}
}

// hold makes room for so many halves of flows.
func (h *shard) hold(sends, receives int) {
	h.sends, h.receives = make([]sending, sends), make([]receiving, receives)
	if !h.r.s.Lean {
		return
	}
	x, y := make([]leanSending, sends), make([]leanReceiving, receives)
	for i := range x {
		h.sends[i].lean = &x[i]
	}
	for i := range y {
		h.receives[i].lean = &y[i]
	}
}

// start is when a flow starts.
type start struct {
	at   clock.Time
	flow int32
}

func (s start) Before(o start) bool { return s.at < o.at || s.at == o.at && s.flow < o.flow }

// heap is things in the order of before, the first of which is at its beginning.
type heap[T interface{ Before(T) bool }] []T

func (h *heap[T]) push(x T) {
	*h = append(*h, x)
	a := *h
	i := len(a) - 1
	for i > 0 {
		up := (i - 1) / 4
		if !x.Before(a[up]) {
			break
		}
		a[i] = a[up]
		i = up
	}
	a[i] = x
}

// pop removes the first, which must be there.
func (h *heap[T]) pop() T {
	a := *h
	first, last := a[0], len(a)-1
	x := a[last]
	a = a[:last]
	*h = a
	if last == 0 {
		return first
	}
	i := 0
	for {
		low := 4*i + 1
		if low >= last {
			break
		}
		for c, end := low+1, min(low+4, last); c < end; c++ {
			if a[c].Before(a[low]) {
				low = c
			}
		}
		if !a[low].Before(x) {
			break
		}
		a[i] = a[low]
		i = low
	}
	a[i] = x
	return first
}
