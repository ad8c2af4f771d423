package live

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
	packet  fabric.Packet // being sent
}

// Manage runs a subnet manager at a port until the context ends. It looks every subnet.DefaultSweep, unless the
// configuration says how often: a switch sends no trap about what happens before it knows its manager (IBA 14.3.1). The
// error is that of service.New, or the one that the configuration's Tell returned.
func (r *Rack) Manage(ctx context.Context, at fabric.Place, cfg service.Config) error {
	if cfg.Subnet.Sweep == 0 {
		cfg.Subnet.Sweep = subnet.DefaultSweep
	}
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

// ManagerPlace returns the best port for the rack's own subnet manager: a switch's, so that no adapter
// takes it down with its link, or else that of the first node.
func ManagerPlace(t *topology.Topology) fabric.Place {
	for i := range t.Nodes {
		if t.Nodes[i].Type == mad.NodeSwitch {
			return fabric.Place{Node: i, Port: 0}
		}
	}
	return fabric.Place{Node: 0, Port: 1}
}

// Take implements Taker: it takes what is for a subnet manager and arrives at its port.
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

// retire removes the manager from those that CarryOn serves.
func (m *manager) retire() {
	m.rack.mu.Lock()
	defer m.rack.mu.Unlock()
	m.rack.managers = slices.DeleteFunc(slices.Clone(m.rack.managers), func(o *manager) bool { return o == m })
}

// CarryOn is Carry for callers that serve many programs and hold no lock that Takers need: if possible, a
// short query to a subnet manager in the rack is answered right away.
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

// ForManager reports whether a datagram that arrived at a subnet manager's port is for the manager, not
// for others there that query it: its own reports and responses of subnet administration are not.
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

// Offsets of the RMPP fields that say what a packet of a transfer is (IBA 13.6.2), and the response bit of
// a method.
const (
	rmppType   = 25
	rmppFlags  = 26
	rmppActive = 1
	answer     = 0x80
)

// Now implements service.Port.
func (m *manager) Now() clock.Time { return m.rack.Now() }

// Send implements service.Port. Whoever works for the manager calls it, one goroutine at a time.
func (m *manager) Send(p *subnet.Packet) (lost bool, err error) {
	m.packet = fabric.Packet{DLID: p.LID, SQP: p.LocalQPN, DQP: p.QPN, SL: p.SL, PKeyIndex: p.PKeyIndex, MAD: p.MAD}
	if p.MAD[1] == mad.ClassSubnetDir {
		m.packet.SLID = p.LID
	}
	return m.rack.Carry(m.at, &m.packet) == fabric.Dropped && answered(p.MAD[3]), nil
}

// Flush implements service.Port: Send holds nothing back.
func (m *manager) Flush() error { return nil }

// answered reports whether requests with that method are answered.
func answered(method uint8) bool {
	return method == mad.MethodGet || method == mad.MethodSet || method == mad.MethodReport
}
