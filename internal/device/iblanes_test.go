package device

import (
	"testing"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/fabric"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/subnet"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// received returns how many words a host's port has received at service level 3, as its performance agent reports
// (IBA A13.6).
func (f *ibFabric) received(host int) uint64 {
	f.t.Helper()
	at := fabric.Place{Node: host, Port: 1}
	var data [mad.PMADataLen]byte
	mad.PortRcvDataSL.Put(data[:], "PortSelect", 1)
	q := mad.PMARequest{Header: mad.Header{Method: mad.MethodGet, AttributeID: mad.PortRcvDataSL.ID, TransactionID: 1}, Data: data[:]}
	p := fabric.Packet{DLID: f.port(host).LID, SQP: ib.QPGSI, DQP: ib.QPGSI}
	q.Append(p.MAD[:0])
	f.Do(func(now clock.Time, n *fabric.Fabric) {
		if o := n.Send(now, at, &p); o.Result != fabric.Answered {
			f.t.Errorf("the agent of the port does not answer: %v", o.Result)
		}
	})
	a, err := mad.ParsePMA(p.MAD[:])
	if err != nil {
		f.t.Fatal(err)
	}
	return mad.PortRcvDataSL.Get(a.Data, "RcvDataSL3")
}

// TestServiceLevelsAndPathBits: a packet has the service level of its address vector, takes the lane that this level
// maps to, is counted for it, and is dropped where it maps to no lane. Path bits choose among the LIDs of both ports
// (IBA 7.6.6, 11.2.2.1, A13.6).
func TestServiceLevelsAndPathBits(t *testing.T) {
	lanes := subnet.DefaultLanes()
	lanes.SLtoVL[3], lanes.SLtoVL[4] = 1, 15
	f := newIBFabric(t, 3, subnet.Config{LMC: 2, QoS: &subnet.QoS{CA: lanes, Switch: lanes, Router: lanes}})
	h, g := newHost(t, Config{Seed: 1}), newHost(t, Config{Seed: 2})
	a, b := newProgram(t, h, f.add(h, 1, AdapterConfig{})), newProgram(t, g, f.add(g, 2, AdapterConfig{}))
	await.Eventually(f.t, "the service levels are set", func() bool {
		lanes := [16]uint8{}
		f.Do(func(_ clock.Time, n *fabric.Fabric) { lanes = n.Settings(fabric.Place{Node: 1, Port: 1}).SLtoVL })
		return lanes[3] == 1 && lanes[4] == 15
	})
	from, to := f.port(1).LID, f.port(2).LID
	const qkey = 7
	x, y := a.qp(command.CreateQP{Type: command.UD}, a.cq(16)), b.qp(command.CreateQP{Type: command.UD}, b.cq(16))
	x.toDatagrams(qkey)
	y.toDatagrams(qkey)
	src, dst := a.buffer(64), b.buffer(256)
	y.postRecv(1, dst.sge(0, 256))
	for _, sl := range []uint8{4, 3} { // the first is dropped
		for _, path := range []uint8{1, 1 | command.PathGlobal}[:1+sl%2] {
			ah, err := a.c.CreateAH(bg, command.CreateAH{PD: a.pd, AV: command.AddressVector{LID: uint16(to + 2), Path: path, SL: sl,
				Addr: command.AddrFrom(b.addr)}})
			a.check(err)
			wr := ring.SendWR{Op: ring.OpSend, Flags: ring.Signaled, NumSGE: 1, AH: uint32(ah), RemoteQPN: y.q.Number, QKey: qkey}
			wr.SGE[0] = src.sge(0, 8)
			x.post(wr)
			wantSuccess(t, x.cq.next(), 0, ring.CQSend)
			if sl == 4 {
				continue
			}
			e := y.cq.next()
			wantSuccess(t, e, 1, ring.CQRecv)
			if e.SL != 3 || e.PathBits != 2 || ib.LID(e.SLID) != from+1 || (e.Flags&ring.HasGRH != 0) != (path != 1) {
				t.Errorf("%+v, from LID %d by path bits 1 to 2", e, from)
			}
			y.postRecv(1, dst.sge(0, 256))
		}
	}
	l := &connected{a: a.qp(command.CreateQP{}, a.cq(16)), b: b.qp(command.CreateQP{}, b.cq(16))}
	l.a.connectBy(l.b, 0, command.AddressVector{LID: uint16(to + 3), Path: 2, SL: 3})
	l.b.connectBy(l.a, 0, command.AddressVector{LID: uint16(from + 2), Path: 3, SL: 3})
	copy(src.b, "by another path")
	l.b.postRecv(5, dst.sge(0, 64))
	l.a.postSend(6, ring.OpSend, src.sge(0, 15))
	wantSuccess(t, l.b.cq.next(), 5, ring.CQRecv)
	wantSuccess(t, l.a.cq.next(), 6, ring.CQSend)
	if string(dst.b[:15]) != "by another path" {
		t.Errorf("%q arrived", dst.b[:15])
	}
	if n := f.received(2); n < (15+8+12+4)/4 {
		t.Errorf("the port has received %d words at service level 3, want those of one datagram at least", n)
	}
}
