package device

import (
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/device/notify"
	"github.com/softvpi/softvpi/internal/trace"
)

// SetTrace has the loop write to a ring from now on; nil: to none. Afterwards nobody writes to the one before.
func (h *Host) SetTrace(r *trace.Ring) {
	h.lock()
	defer h.unlock()
	h.trace = r
	for _, a := range h.adapters {
		a.record()
	}
}

// record hands the loop's ring to the engines of an adapter.
func (a *adapter) record() {
	r := trace.NewRecorder(a.host.trace, int16(a.index), wallClock)
	a.trace = r
	a.engine.SetTrace(r)
	a.watch()
	a.cm.SetTrace(r)
	if a.port != nil {
		a.port.SetTrace(r)
	}
}

// recordChange records what subscribers are told of a port.
func (a *adapter) recordChange(flags notify.Flags) {
	switch {
	case flags&notify.Up != 0:
		a.trace.Note(trace.LinkUp, uint32(a.speed()/1e6))
	case flags&(notify.Down|notify.Unknown) != 0:
		a.trace.Note(trace.LinkDown)
	case flags&notify.GIDChange != 0:
		a.trace.Note(trace.AddressesChange, uint32(len(a.gids.List())))
	}
}

func wallClock() int64 { return time.Now().UnixNano() }

// Still calls fn while the loop stands still.
func (h *Host) Still(fn func()) {
	h.lock()
	defer h.unlock()
	fn()
}

// tracedStep is step with a record of a turn in which something happened.
func (p *portLoop) tracedStep(now clock.Time) bool {
	began, before := time.Now(), p.sentPackets()
	worked := p.turn(now)
	if sent := p.sentPackets() - before; (p.arrived > 0 || sent > 0) && len(p.functions) > 0 {
		p.host.trace.Add(trace.Record{
			At: began.UnixNano(), Took: max(1, int64(time.Since(began))), A: uint64(p.arrived), B: sent,
			Component: trace.Loop, Level: trace.Verbose, Adapter: int16(p.functions[0].index),
		})
	}
	return worked
}

// sentPackets returns how many frames have left the port.
func (p *portLoop) sentPackets() (n uint64) {
	for i := range p.Counters().Sent {
		n += p.Counters().Sent[i].Packets
	}
	return n
}
