package simulate

import (
	"net/netip"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/simulate/workload"
	"github.com/softvpi/softvpi/internal/transport"
	"github.com/softvpi/softvpi/wire/ib"
)

// rcSending is the state of a flow at the host of the queue pair that sends. It is that one's send queue.
type rcSending struct {
	route      frame.Route
	qp         *transport.QP
	taken      int64  // bytes, by the queue pair
	posted     int64  // bytes
	most       int64  // the first packet that has not been sent
	key        uint32 // of the memory of all hosts
	unfinished int32  // writes
}

// rcReceiving is its state at the other host.
type rcReceiving struct {
	route    frame.Route
	qp       *transport.QP
	expected int64         // the next packet that arrives in order
	ahead    map[int64]int // bytes of packets that have arrived behind a gap; nil: there was none
}

// Next implements transport.SendQueue.
func (x *rcSending) Next(wr *transport.SendWR) (bool, error) {
	n := min(message, x.posted-x.taken)
	if n == 0 {
		return false, nil
	}
	x.taken += n
	wr.Route, wr.As = nil, nil
	wr.Work = ring.Work{Op: ring.OpWrite, Flags: ring.Signaled, NumSGE: 1, RemoteAddr: memoryAt, RKey: x.key}
	wr.Elements()[0] = ring.SGE{Addr: memoryAt, Length: uint32(n), LKey: x.key}
	return true, nil
}

// Release implements transport.SendQueue.
func (x *rcSending) Release(int) {}

// Pending implements transport.SendQueue.
func (x *rcSending) Pending() (int, error) {
	return int((x.posted - x.taken + message - 1) / message), nil
}

// nothing is the send and receive queue of queue pairs that have none.
type nothing struct{}

func (nothing) Next(*transport.SendWR) (bool, error) { return false, nil }
func (nothing) Release(int)                          {}
func (nothing) Pending() (int, error)                { return 0, nil }

// noReceives is the receive queue of all queue pairs, to which nobody sends messages.
type noReceives struct{}

func (noReceives) Next(*ring.RecvWR) (bool, error) { return false, nil }
func (noReceives) Pending() (int, error)           { return 0, nil }

// begin connects a queue pair with one of the other host, and posts the first writes.
func (h *rcHost) begin(now clock.Time, f *sending) {
	x := &rcSending{route: h.towards(f.Flow, f.number, f.peer, f), key: h.region.Key}
	var err error
	if x.qp, err = h.create(now, x, f.number, receivingNumber(f.there), f.mtu, &x.route); err != nil {
		h.r.refused(now, err)
		return
	}
	f.rc = x
	for range deep {
		h.post(f)
	}
	h.connect(now, f, false)
}

// expect implements host: it connects a queue pair with one that sends.
func (h *rcHost) expect(now clock.Time, f *receiving) {
	x := &rcReceiving{route: h.towards(f.Flow, f.number, f.peer, f)}
	var err error
	if x.qp, err = h.create(now, nothing{}, f.number, sendingNumber(f.back), int32(h.r.s.MTU(f.Flow)), &x.route); err != nil {
		h.r.refused(now, err)
		return
	}
	f.rc = x
}

// towards returns the route of packets of half a flow to the other host.
func (h *rcHost) towards(f *workload.Flow, number int32, peer [4]byte, half frame.Path) frame.Route {
	return frame.Route{Src: h.addr, Dst: netip.AddrFrom4(peer), SrcPort: sourcePort(number), TrafficClass: f.Priority << 5,
		Priority: f.Priority, Path: half}
}

// create creates a queue pair that is connected with half of a flow, and sends by a route.
func (h *rcHost) create(now clock.Time, s transport.SendQueue, flow int32, dest ib.QPN, mtu int32, x *frame.Route) (*transport.QP, error) {
	q, err := h.engine.CreateQP(now, transport.QPConfig{Type: command.RC, PD: pd, Send: s, Recv: noReceives{},
		Context: uint64(flow)})
	if err != nil {
		return nil, err
	}
	return q, h.ready(now, q, uint32(dest), mtu, x)
}

// ready brings a queue pair to where it sends.
func (h *rcHost) ready(now clock.Time, q *transport.QP, dest uint32, mtu int32, to *frame.Route) error {
	const (
		toInit = command.MaskState | command.MaskPKey | command.MaskAccess
		toRTR  = command.MaskState | command.MaskRoute | command.MaskMTU | command.MaskDestQPN | command.MaskRQPSN |
			command.MaskResponderResources | command.MaskMinRNRTimer
		toRTS = command.MaskState | command.MaskSQPSN | command.MaskTimeout | command.MaskRetry | command.MaskRNRRetry |
			command.MaskInitiatorDepth
	)
	for _, m := range []command.ModifyQP{
		{Mask: toInit, State: command.Init, Access: uint32(memory.RemoteWrite)},
		{Mask: toRTR, State: command.RTR, MTU: uint32(mtu), DestQPN: dest, ResponderResources: 1, MinRNRTimer: 1},
		{Mask: toRTS, State: command.RTS, Timeout: h.nic.Timeout, Retry: 7, RNRRetry: 7, InitiatorDepth: 1},
	} {
		var r *frame.Route
		if m.State == command.RTR {
			r = to
		}
		if err := h.engine.Modify(now, q, m, r); err != nil {
			return err
		}
	}
	return nil
}

// post posts the next write of a flow, if there is one.
func (h *rcHost) post(f *sending) {
	x := f.rc
	n := int64(message)
	if f.Bytes > 0 {
		n = min(n, f.Bytes-x.posted)
	}
	if n == 0 {
		return
	}
	x.posted += n
	x.unfinished++
	h.engine.Doorbell(x.qp)
}

// settle takes completions.
func (h *rcHost) settle(now clock.Time) {
	completed := h.completed[:]
	for n := h.engine.Completions(completed); n > 0; n = h.engine.Completions(completed) {
		for i := range completed[:n] {
			c := &completed[i]
			f := h.r.flows[c.Context].sending
			x := f.rc
			x.unfinished--
			if c.Status != ring.Success {
				f.failed = true
			} else {
				h.post(f)
			}
			if x.unfinished == 0 {
				h.end(now, f)
			}
		}
	}
}

// end destroys the queue pairs of a flow.
func (h *rcHost) end(now clock.Time, f *sending) {
	h.engine.Destroy(now, f.rc.qp)
	f.rc = nil
	h.connect(now, f, true)
}

// over implements host.
func (h *rcHost) over(now clock.Time, f *receiving) {
	if f.rc != nil {
		h.engine.Destroy(now, f.rc.qp)
		f.rc = nil
	}
}
