package device

import (
	"time"

	"github.com/softvpi/softvpi/internal/healing"
)

// overdue is how late an event may be, since those who drive the loop have to get a processor first.
const overdue = time.Second

// Readings appends how far the parts of an adapter have come, for its health checker. What belongs to the port is read of its first
// function. It costs the data path nothing: it reads the counters that are kept anyway. An adapter that is disabled has no parts;
// nor has one whose port broke down, since that was told. The loop is woken: before the next reading each port is to have a turn.
func (h *Host) Readings(index uint32, to []healing.Reading) ([]healing.Reading, error) {
	h.lock()
	defer h.Wake()
	defer h.unlock()
	a, err := h.adapter(index)
	if err != nil || a.port.broken || !a.enabled && !a.nic.on() {
		return to, err
	}
	now := h.now()
	if a.port.functions[0] == a {
		to = append(to, a.port.progress()...)
	}
	to = append(to,
		healing.Reading{Sensor: healing.SendSoftware, Waits: a.enabled && a.engine.Undelivered(), Done: a.completed()})
	for _, q := range h.moderated {
		if q.adapter == a {
			to = append(to, healing.Reading{Sensor: healing.EventQueue, Part: q.ref, Done: uint64(q.ring.Sequence()),
				Waits: q.held > 0 && q.due.Add(overdue) < now && q.ended.Load() == nil})
		}
	}
	return to, nil
}

// progress returns how far a port and its links have come.
func (p *portLoop) progress() []healing.Reading {
	var sent, receiveErrors, sendErrors uint64
	up := false
	for _, a := range p.functions {
		up = up || a.linked()
		s := a.links.Stats()
		sent += s.SentPackets + s.SendErrors
		r, e := a.links.Failures()
		receiveErrors, sendErrors = receiveErrors+r, sendErrors+e
	}
	for _, n := range p.nics {
		up = up || n.on() && n.a.wire.Up
	}
	return []healing.Reading{
		// What the scheduler holds back, because of a pause or a rate, has not left it: what waits for a link may be sent.
		{Sensor: healing.SendHardware, Waits: up && p.blocked(), Done: sent},
		{Sensor: healing.ReceiveCompletion, Done: receiveErrors},
		{Sensor: healing.SendCompletion, Done: sendErrors},
		{Sensor: healing.Health, Waits: p.enabled(), Done: p.turns},
	}
}

// completed returns how many completions the programs of an adapter were given in the completion queues that they have.
func (a *adapter) completed() (n uint64) {
	for _, q := range a.cqs {
		if q != nil {
			n += uint64(q.ring.Produced())
		}
	}
	return n
}

// Breakdown is what is known of a port whose engines have panicked. The port has no turns any more until it is mended.
type Breakdown struct {
	Adapters []uint32 // the functions at the port
	Value    any      // of the panic
	Stack    []byte   // of the goroutine, as Go writes it
}

// AtPort returns the adapters that are functions at the port of one, itself included.
func (h *Host) AtPort(index uint32) (list []uint32) {
	h.lock()
	defer h.unlock()
	a, err := h.adapter(index)
	if err != nil {
		return nil
	}
	for _, o := range a.port.functions {
		if !o.virtual() {
			list = append(list, o.index)
		}
	}
	return list
}

// InUse returns how many queue pairs, completion queues, shared receive queues and memory regions programs have on an adapter.
func (h *Host) InUse(index uint32) int {
	h.lock()
	defer h.unlock()
	a, err := h.adapter(index)
	if err != nil {
		return 0
	}
	o := &a.objects
	return o.QP + o.CQ + o.SRQ + o.MR
}
