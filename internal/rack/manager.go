package rack

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/fabric"
	"github.com/softvpi/softvpi/internal/subnet"
	"github.com/softvpi/softvpi/wire/mad"
)

// maxWaiting bounds the datagrams that wait for the subnet manager: more are lost, as with a card.
const maxWaiting = 1 << 14

// Manager is a subnet manager at a port of the rack, in its process.
type Manager struct {
	rack *Rack
	at   fabric.Place
	sm   *subnet.SM
	tell func(subnet.Event)

	turn  sync.Mutex // of whoever works for the manager: its goroutine, or a program's carrier
	until clock.Time // when the goroutine looks again

	mu     sync.Mutex
	in     []fabric.Packet
	wake   chan struct{}
	taken  []fabric.Packet
	out    [64]subnet.Packet
	packet fabric.Packet
}

// Manage runs a subnet manager at a port until the context ends. tell, if any, is called with everything that it has to
// say, by one goroutine at a time. The error is that of subnet.New.
func (r *Rack) Manage(ctx context.Context, at fabric.Place, cfg subnet.Config, tell func(subnet.Event)) error {
	sm, err := subnet.New(cfg)
	if err != nil {
		return err
	}
	if tell == nil {
		tell = func(subnet.Event) {}
	}
	m := &Manager{rack: r, at: at, sm: sm, tell: tell, wake: make(chan struct{}, 1)}
	leave := r.Attend(m)
	defer leave()
	r.mu.Lock()
	r.managers = append(r.managers, m)
	r.mu.Unlock()
	defer m.retire()
	r.Do(func(_ clock.Time, f *fabric.Fabric) { f.SetIsSM(at, true) })
	defer r.Do(func(_ clock.Time, f *fabric.Fabric) { f.SetIsSM(at, false) })
	m.run(ctx)
	return nil
}

// ManagerPlace is where a subnet manager of the rack's own is best: at a switch, so that no adapter takes it away with its
// link, or else at the first node.
func ManagerPlace(t *fabric.Topology) fabric.Place {
	for i := range t.Nodes {
		if t.Nodes[i].Type == mad.NodeSwitch {
			return fabric.Place{Node: i, Port: 0}
		}
	}
	return fabric.Place{Node: 0, Port: 1}
}

// Take implements Taker: what is a subnet manager's business, and comes to its port.
func (m *Manager) Take(_ clock.Time, at fabric.Place, p *fabric.Packet) bool {
	if at != m.at || !ForManager(p) {
		return false
	}
	m.mu.Lock()
	if len(m.in) < maxWaiting {
		m.in = append(m.in, *p)
	}
	m.mu.Unlock()
	if !m.rack.turning {
		m.rouse()
	}
	return true
}

// retire takes the manager from those that carriers work for.
func (m *Manager) retire() {
	m.rack.mu.Lock()
	defer m.rack.mu.Unlock()
	m.rack.managers = slices.DeleteFunc(slices.Clone(m.rack.managers), func(o *Manager) bool { return o == m })
}

// CarryOn is Carry for who works for many programs and has no lock that Takers want: a short question that it brings to a
// subnet manager in the rack is answered here and now, since handing it from goroutine to goroutine takes longer than the answer.
func (r *Rack) CarryOn(from fabric.Place, p *fabric.Packet) fabric.Result {
	now, _ := r.Lock()
	r.turning = len(r.managers) > 0
	result := r.CarryLocked(now, from, p)
	r.turning = false
	managers := r.managers
	r.Unlock()
	for _, m := range managers {
		m.inline()
	}
	return result
}

// inline answers what waits for the manager where that is short and nobody is at it. Else its own goroutine is told.
func (m *Manager) inline() {
	m.mu.Lock()
	some, short := len(m.in) > 0, true
	for i := range m.in {
		short = short && brief(&m.in[i])
	}
	m.mu.Unlock()
	if !some {
		return
	}
	if !short || !m.turn.TryLock() {
		m.rouse()
		return
	}
	defer m.turn.Unlock()
	m.receive()
	m.transmit()
	if m.sm.Deadline().Before(m.until) {
		m.rouse()
	}
}

// brief tells whether a datagram is a question about one record.
func brief(p *fabric.Packet) bool {
	return p.MAD[1] == mad.ClassSubnetAdm && p.MAD[3] == mad.MethodGet
}

// ForManager tells whether a datagram that came to the port of a subnet manager is for it, and not for others there, who ask the
// manager as well: what it tells and answers in subnet administration is not.
func ForManager(p *fabric.Packet) bool {
	method := p.MAD[3]
	switch p.MAD[1] {
	case mad.ClassSubnetDir, mad.ClassSubnetLID:
		return true
	case mad.ClassSubnetAdm:
		part := p.MAD[rmppFlags]&rmppActive != 0 && p.MAD[rmppType] != uint8(mad.RMPPData)
		return part || method == mad.MethodReportResp || method&answer == 0 && method != mad.MethodReport
	}
	return false
}

// Where RMPP says what a packet of a transfer is (IBA 13.6.2), and the bit of a method that makes it an answer.
const (
	rmppType   = 25
	rmppFlags  = 26
	rmppActive = 1
	answer     = 0x80
)

func (m *Manager) rouse() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

func (m *Manager) run(ctx context.Context) {
	t := time.NewTimer(0)
	defer t.Stop()
	m.turn.Lock()
	m.sm.Start(m.rack.Now())
	m.turn.Unlock()
	for {
		m.turn.Lock()
		m.work()
		m.until = clock.Min(m.sm.Deadline(), m.rack.Now().Add(time.Hour))
		wait := max(0, m.until.Sub(m.rack.Now()))
		m.turn.Unlock()
		t.Reset(wait)
		select {
		case <-ctx.Done():
			return
		case <-m.wake:
		case <-t.C:
		}
	}
}

// work does what there is to do, until there is nothing. The turn is the caller's.
func (m *Manager) work() {
	for {
		some := m.receive()
		if now := m.rack.Now(); !now.Before(m.sm.Deadline()) {
			m.sm.Advance(now)
		}
		if !m.transmit() && !some {
			return
		}
	}
}

// receive hands the manager what has come; false: that is nothing.
func (m *Manager) receive() bool {
	m.mu.Lock()
	m.taken, m.in = m.in, m.taken[:0]
	m.mu.Unlock()
	for i := range m.taken {
		p := &m.taken[i]
		m.sm.Receive(m.rack.Now(), &subnet.Packet{LID: p.SLID, QPN: p.SQP, LocalQPN: p.DQP, SL: p.SL, MAD: p.MAD})
	}
	return len(m.taken) > 0
}

// transmit sends what the manager has to send, and tells what it has to say; false: it sent nothing.
func (m *Manager) transmit() bool {
	n := m.sm.Transmit(m.rack.Now(), m.out[:])
	for i := range m.out[:n] {
		m.send(&m.out[i])
	}
	for _, e := range m.sm.Events() {
		m.tell(e)
	}
	return n > 0
}

func (m *Manager) send(p *subnet.Packet) {
	m.packet = fabric.Packet{DLID: p.LID, SQP: p.LocalQPN, DQP: p.QPN, SL: p.SL, MAD: p.MAD}
	if p.MAD[1] == mad.ClassSubnetDir {
		m.packet.SLID = p.LID
	}
	if m.rack.Carry(m.at, &m.packet) == fabric.Dropped && answered(p.MAD[3]) {
		m.sm.Failed(m.rack.Now(), p)
	}
}

// answered tells whether what a method asks for is answered.
func answered(method uint8) bool {
	return method == mad.MethodGet || method == mad.MethodSet || method == mad.MethodReport
}
