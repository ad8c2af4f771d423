package rack

import (
	"context"
	"errors"
	"slices"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/fabric"
	"github.com/softvpi/softvpi/internal/fabric/topology"
	"github.com/softvpi/softvpi/internal/subnet"
	"github.com/softvpi/softvpi/internal/subnet/service"
	"github.com/softvpi/softvpi/wire/mad"
)

// manager is a port of the rack with a subnet manager in the rack's process.
type manager struct {
	rack    *Rack
	at      fabric.Place
	service *service.Service
	packet  fabric.Packet // on its way out
}

// Manage runs a subnet manager at a port until the context ends. The error is that of service.New, or what Tell of the
// configuration ended it with.
func (r *Rack) Manage(ctx context.Context, at fabric.Place, cfg service.Config) error {
	m := &manager{rack: r, at: at}
	var err error
	if m.service, err = service.New(m, cfg); err != nil {
		return err
	}
	leave := r.Attend(m)
	defer leave()
	r.mu.Lock()
	r.managers = append(r.managers, m)
	r.mu.Unlock()
	defer m.retire()
	r.Do(func(_ clock.Time, f *fabric.Fabric) { f.SetIsSM(at, true) })
	defer r.Do(func(_ clock.Time, f *fabric.Fabric) { f.SetIsSM(at, false) })
	if err = m.service.Run(ctx); errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}

// ManagerPlace is where a subnet manager of the rack's own is best: at a switch, so that no adapter takes it away with its
// link, or else at the first node.
func ManagerPlace(t *topology.Topology) fabric.Place {
	for i := range t.Nodes {
		if t.Nodes[i].Type == mad.NodeSwitch {
			return fabric.Place{Node: i, Port: 0}
		}
	}
	return fabric.Place{Node: 0, Port: 1}
}

// Take implements Taker: what is a subnet manager's business, and comes to its port.
func (m *manager) Take(_ clock.Time, at fabric.Place, p *fabric.Packet) bool {
	if at != m.at || !ForManager(p) {
		return false
	}
	q := subnet.Packet{LID: p.SLID, QPN: p.SQP, LocalQPN: p.DQP, SL: p.SL, PKeyIndex: p.PKeyIndex, MAD: p.MAD}
	if m.rack.turning {
		m.service.Queue(&q)
	} else {
		m.service.Deliver(&q)
	}
	return true
}

// retire takes the manager from those that carriers work for.
func (m *manager) retire() {
	m.rack.mu.Lock()
	defer m.rack.mu.Unlock()
	m.rack.managers = slices.DeleteFunc(slices.Clone(m.rack.managers), func(o *manager) bool { return o == m })
}

// CarryOn is Carry for who works for many programs and has no lock that Takers want: a short question that it brings to a
// subnet manager in the rack is answered here and now where that can be.
func (r *Rack) CarryOn(from fabric.Place, p *fabric.Packet) fabric.Result {
	now, _ := r.Lock()
	r.turning = len(r.managers) > 0
	result := r.carryLocked(now, from, p)
	r.turning = false
	managers := r.managers
	r.Unlock()
	for _, m := range managers {
		m.service.Serve()
	}
	return result
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

// Now implements service.Port.
func (m *manager) Now() clock.Time { return m.rack.Now() }

// Send implements service.Port. It is called by whoever works for the manager, one at a time.
func (m *manager) Send(p *subnet.Packet) (lost bool, err error) {
	m.packet = fabric.Packet{DLID: p.LID, SQP: p.LocalQPN, DQP: p.QPN, SL: p.SL, PKeyIndex: p.PKeyIndex, MAD: p.MAD}
	if p.MAD[1] == mad.ClassSubnetDir {
		m.packet.SLID = p.LID
	}
	return m.rack.Carry(m.at, &m.packet) == fabric.Dropped && answered(p.MAD[3]), nil
}

// answered tells whether what a method asks for is answered.
func answered(method uint8) bool {
	return method == mad.MethodGet || method == mad.MethodSet || method == mad.MethodReport
}
