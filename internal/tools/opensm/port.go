package opensm

import (
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/subnet"
	"github.com/softvpi/softvpi/internal/subnet/service"
	"github.com/softvpi/softvpi/internal/umad"
)

// port is a port of this machine with a manager.
type port struct {
	t     umad.Transport
	start time.Time
	// brief: the reader itself answers short queries. It must not if the fabric may wait for the reader
	// before it accepts what is sent, as ibsim does.
	brief bool
	out   umad.Datagram
}

// Now implements service.Port.
func (p *port) Now() clock.Time { return clock.Time(time.Since(p.start)) }

// Send implements service.Port.
func (p *port) Send(m *subnet.Packet) (lost bool, err error) {
	d := &p.out // only one goroutine sends at a time
	d.Remote, d.LocalQP, d.MAD = umad.Address{LID: m.LID, QP: m.QPN, SL: m.SL, PKeyIndex: m.PKeyIndex}, m.LocalQPN, m.MAD
	if g, ok := p.t.(umad.Gatherer); ok {
		return false, g.Gather(d)
	}
	return false, p.t.Send(d)
}

// Flush implements service.Port.
func (p *port) Flush() error {
	if g, ok := p.t.(umad.Gatherer); ok {
		return g.Flush()
	}
	return nil
}

// read passes what is received to the manager until the port is closed. It runs in a goroutine of its own,
// so that the fabric never waits for the one that sends.
func (p *port) read(s *service.Service) {
	var d umad.Datagram
	for {
		if err := p.t.Receive(&d); err != nil {
			s.Break(err)
			return
		}
		m := subnet.Packet{LID: d.Remote.LID, QPN: d.Remote.QP, LocalQPN: d.LocalQP, SL: d.Remote.SL, PKeyIndex: d.Remote.PKeyIndex,
			MAD: d.MAD}
		switch {
		case d.Failed:
			s.Failed(&m)
		case p.brief:
			s.Queue(&m)
			s.Serve()
		default:
			s.Deliver(&m)
		}
	}
}
