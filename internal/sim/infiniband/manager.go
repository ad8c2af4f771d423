package infiniband

import (
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/fabric"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/sim"
	"github.com/softvpi/softvpi/internal/subnet"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// Manager is a subnet manager at a port of a simulated fabric. It sends management datagrams only.
type Manager struct {
	At fabric.Place
	SM *subnet.SM

	fabric *Fabric
	port   *sim.Port
	busy   bool
	out    [32]subnet.Packet
}

var _ sim.Engine = (*Manager)(nil)

// Manager starts a subnet manager at a port. The port may have an engine for its data besides.
func (f *Fabric) Manager(at fabric.Place, cfg subnet.Config) (*Manager, error) {
	sm, err := subnet.New(cfg)
	if err != nil {
		return nil, err
	}
	m := &Manager{At: at, SM: sm, fabric: f}
	f.managers[at] = m
	f.SetIsSM(at, true)
	f.Node.Wake()
	m.port = f.network.Add(frame.LIDAddr(0), m)
	sm.Start(f.network.Now())
	m.port.Wake()
	return m, nil
}

// Port returns the manager's place in the network, to wake it after a call of its SM.
func (m *Manager) Port() *sim.Port { return m.port }

// Kill ends the manager without notice. Its port still says that it has one.
func (m *Manager) Kill() {
	if m.fabric.managers[m.At] == m {
		delete(m.fabric.managers, m.At)
	}
	m.SM = nil
}

func (m *Manager) receive(now clock.Time, p *fabric.Packet) {
	m.SM.Receive(now, &subnet.Packet{LID: p.SLID, QPN: p.SQP, LocalQPN: p.DQP, SL: p.SL, MAD: p.MAD})
	m.port.Wake()
}

// Receive implements sim.Engine: data is not for the manager.
func (m *Manager) Receive(clock.Time, []frame.In) {}

// Advance implements sim.Engine.
func (m *Manager) Advance(now clock.Time) {
	if m.SM != nil {
		m.SM.Advance(now)
	}
}

// Transmit implements sim.Engine. It sends the management datagrams of one turn, and no packets of data.
func (m *Manager) Transmit(now clock.Time, _ []frame.Out) int {
	m.busy = false
	if m.SM == nil {
		return 0
	}
	n := m.SM.Transmit(now, m.out[:])
	for i := range m.out[:n] {
		m.busy = true
		p := &m.out[i]
		q := fabric.Packet{DLID: p.LID, SQP: p.LocalQPN, DQP: p.QPN, SL: p.SL, MAD: p.MAD}
		if p.MAD[1] == mad.ClassSubnetDir {
			q.SLID = ib.LIDPermissive
		}
		m.fabric.Manage(now, m.At, &q)
	}
	return 0
}

// Pending reports whether there may be more to send now.
func (m *Manager) Pending() bool { return m.busy }

// Deadline implements sim.Engine.
func (m *Manager) Deadline() clock.Time {
	if m.SM == nil {
		return clock.Never
	}
	return m.SM.Deadline()
}
