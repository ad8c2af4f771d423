package device

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/fabric"
	"github.com/softvpi/softvpi/internal/function/rdma/gid"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/subnet"
	"github.com/softvpi/softvpi/internal/subnet/partition"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// informed is a program at a port of the fabric that has subscribed to all traps (IBA 15.2.5.12).
type informed struct {
	f  *ibFabric
	at fabric.Place

	mu       sync.Mutex
	answered bool
	seen     map[uint64]bool // by transaction, because a report that is not answered comes again
	notices  []mad.Notice
}

func (s *informed) Take(_ clock.Time, at fabric.Place, p *fabric.Packet) bool {
	if at != s.at || p.MAD[1] != mad.ClassSubnetAdm {
		return false
	}
	m, err := mad.ParseSA(p.MAD[:])
	if err != nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch m.Method {
	case mad.MethodGetResp:
		s.answered = m.Status == mad.StatusOK
	case mad.MethodReport:
		if n, err := mad.ParseNotice(m.Data[:]); err == nil && !s.seen[m.TransactionID] {
			s.seen[m.TransactionID] = true
			s.notices = append(s.notices, n)
		}
	default:
		return false
	}
	return true
}

// subscribe runs an informed program at a host without an adapter, and returns when its subscription was answered.
func (f *ibFabric) subscribe(host int) *informed {
	f.t.Helper()
	s := &informed{f: f, at: fabric.Place{Node: host, Port: 1}, seen: map[uint64]bool{}}
	f.t.Cleanup(f.Attend(s))
	inform := mad.InformInfo{LIDBegin: 0xffff, IsGeneric: true, Subscribe: true, Type: 0xffff, TrapNumber: 0xffff, QPN: ib.QPGSI,
		ProducerType: 0xffffff}
	await.Eventually(f.t, "the subscription is answered", func() bool {
		i := f.port(host)
		if i.MasterSMLID != 0 && i.PortState == mad.PortActive {
			m := mad.NewSA(mad.MethodSet, mad.AttrInformInfo, 0, 77)
			inform.Append(m.Data[:0])
			p := fabric.Packet{SLID: i.LID, DLID: i.MasterSMLID, SQP: ib.QPGSI, DQP: ib.QPGSI}
			m.Append(p.MAD[:0])
			f.Carry(s.at, &p)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.answered
	})
	return s
}

// notice waits for the report of a trap and returns it.
func (s *informed) notice(number uint16) (n mad.Notice) {
	s.f.t.Helper()
	await.Eventually(s.f.t, fmt.Sprintf("trap %d is reported", number), func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		i := slices.IndexFunc(s.notices, func(n mad.Notice) bool { return n.TrapNumber == number })
		if i < 0 {
			return false
		}
		n = s.notices[i]
		s.notices = slices.Delete(s.notices, i, i+1)
		return true
	})
	return n
}

// port returns the PortInfo of a host's port.
func (f *ibFabric) port(host int) (i mad.PortInfo) {
	f.Do(func(_ clock.Time, n *fabric.Fabric) { i = n.PortInfo(fabric.Place{Node: host, Port: 1}) })
	return i
}

func partitions(t *testing.T, text string) *partition.Config {
	t.Helper()
	p, err := partition.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestViolationsAreReported: a packet with a wrong P_Key or Q_Key, or a subnet management packet with a wrong M_Key,
// is counted at the port and sent to the subnet manager as a trap, which represses it and reports it to the
// subscribers (IBA 10.9.4, 14.2.4, 14.2.5.1, 14.3.9, 15.4.3).
func TestViolationsAreReported(t *testing.T) {
	t.Parallel()
	f := newIBFabric(t, 4, subnet.Config{
		Partitions: partitions(t, "Default=0x7fff : ALL=limited, SELF=full;\nOurs=0x0007 : ALL=full;\n"),
		Enforce:    subnet.EnforceOff, MKey: 0x77, MKeyProtect: 1,
	})
	h, g := newHost(t, Config{Seed: 1}), newHost(t, Config{Seed: 2})
	a, b := newProgram(t, h, f.add(h, 1, AdapterConfig{})), newProgram(t, g, f.add(g, 2, AdapterConfig{}))
	s := f.subscribe(3)
	const qkey = 7
	src, dst := a.buffer(64), b.buffer(256)
	datagrams := func(row uint32) (x, y *pair) {
		x, y = a.qp(command.CreateQP{Type: command.UD}, a.cq(16)), b.qp(command.CreateQP{Type: command.UD}, b.cq(16))
		x.toDatagramsIn(row, qkey)
		y.toDatagramsIn(1, qkey)
		y.postRecv(1, dst.sge(0, 256))
		return x, y
	}
	check := func(name string, number, times uint16, count func(*mad.PortInfo) uint16, want mad.TrapKey) {
		t.Helper()
		n := s.notice(number)
		from, to := f.port(1), f.port(2)
		want.LID1, want.LID2 = from.LID, to.LID
		if got := mad.ParseTrapKey(&n.DataDetails); got != want || n.IssuerLID != to.LID || n.Type != mad.NoticeSecurity ||
			n.ProducerType != uint32(mad.NodeCA) ||
			n.IssuerGID != ib.GID(gid.Of(gid.LinkLocal, b.host.adapters[b.adapter].ib.Settings().GUIDs[0]).As16()) {
			t.Errorf("%s: the report is %+v of %+v, want %+v", name, got, n, want)
		}
		if got := count(&to); got != times {
			t.Errorf("%s: the port counts %d, want %d", name, got, times)
		}
		await.Eventually(f.t, name+": the trap is repressed", func() (over bool) {
			f.Do(func(_ clock.Time, n *fabric.Fabric) { over = n.TrapDeadline() == clock.Never })
			return over
		})
	}

	x, y := datagrams(1)
	a.check(x.sendTo(b.addr, y.q.Number, qkey+1, src.sge(0, 8)))
	check("Q_Key", mad.TrapBadQKey, 1, func(i *mad.PortInfo) uint16 { return i.QKeyViolations },
		mad.TrapKey{Key: qkey + 1, QP1: ib.QPN(x.q.Number), QP2: ib.QPN(y.q.Number)})

	x, y = datagrams(1)
	to := f.port(2)
	ah, err := a.c.CreateAH(bg, command.CreateAH{PD: a.pd, AV: command.AddressVector{Addr: command.AddrFrom(b.addr), LID: uint16(to.LID),
		Path: command.PathGlobal}})
	a.check(err)
	wr := ring.SendWR{Op: ring.OpSend, NumSGE: 1, AH: uint32(ah), RemoteQPN: y.q.Number, QKey: qkey + 2}
	wr.SGE[0] = src.sge(0, 8)
	x.post(wr)
	check("Q_Key with a GRH", mad.TrapBadQKey, 2, func(i *mad.PortInfo) uint16 { return i.QKeyViolations },
		mad.TrapKey{Key: qkey + 2, QP1: ib.QPN(x.q.Number), QP2: ib.QPN(y.q.Number),
			GID1: ib.GIDFromAddr(a.addr), GID2: ib.GIDFromAddr(b.addr)})

	x, y = datagrams(0) // in the default partition neither is a full member
	a.check(x.sendTo(b.addr, y.q.Number, qkey, src.sge(0, 8)))
	check("P_Key", mad.TrapBadPKey, 1, func(i *mad.PortInfo) uint16 { return i.PKeyViolations },
		mad.TrapKey{Key: 0x7fff, QP1: ib.QPN(x.q.Number), QP2: ib.QPN(y.q.Number)})

	from := f.port(3)
	smp := mad.NewSMP(mad.MethodSet, mad.AttrPortInfo, 0, 5)
	smp.MKey = 0x78
	p := fabric.Packet{SLID: from.LID, DLID: to.LID}
	smp.Append(p.MAD[:0])
	f.Carry(fabric.Place{Node: 3, Port: 1}, &p)
	n := s.notice(mad.TrapBadMKey)
	if k := mad.ParseTrapMKey(&n.DataDetails); k.LID != to.LID || k.MKey != 0x78 || k.Method != mad.MethodSet ||
		k.AttributeID != mad.AttrPortInfo || n.Type != mad.NoticeSecurity {
		t.Errorf("M_Key: the report is %+v of %+v", k, n)
	}
	if i := f.port(2); i.MKeyViolations != 1 {
		t.Errorf("M_Key: the port counts %d, want 1", i.MKeyViolations)
	}
}

// TestPartitionIsTakenAway: connections in a partition that the subnet manager takes away end. Two programs that
// moved their data themselves have to stop; what they send then goes to the fabric, and nobody acknowledges it.
func TestPartitionIsTakenAway(t *testing.T) {
	for name, enforce := range map[string]subnet.Enforcement{"switches see to it": subnet.EnforceBoth,
		"adapters see to it": subnet.EnforceOff} {
		t.Run(name, func(t *testing.T) {
			with := "Default=0x7fff : ALL=limited, SELF=full;\nOurs=0x0007 : ALL=full;\n"
			f := newIBFabric(t, 3, subnet.Config{Partitions: partitions(t, with), Enforce: enforce})
			l := &delegation{t: t, h: newHost(t, Config{Seed: 1})}
			i, j := f.add(l.h, 1, AdapterConfig{}), f.add(l.h, 2, AdapterConfig{})
			l.a, l.b = neighbourTo(t, l.h, i), neighbourTo(t, l.h, j)
			l.ma, l.baseA = l.a.region()
			l.mb, l.baseB = l.b.region()
			l.cqA, l.cqB = l.a.p.cq(64), l.b.p.cq(64)
			l.c = &connected{a: l.a.p.qp(command.CreateQP{}, l.cqA), b: l.b.p.qp(command.CreateQP{}, l.cqB)}
			l.c.a.connectByLID(l.c.b, 1)
			l.c.b.connectByLID(l.c.a, 1)
			l.a.p.c.Doorbell(l.c.a.q.Handle)
			l.path(3)
			f.stop()
			f.manage(subnet.Config{Partitions: partitions(t, "Default=0x7fff : ALL=limited, SELF=full;\nOurs=0x0007 : SELF=full;\n"),
				Enforce: enforce})
			l.path(1)
			write := ring.SendWR{ID: 3, Op: ring.OpWrite, Flags: ring.Signaled, NumSGE: 1, RemoteAddr: l.baseB, RKey: l.mb.RKey}
			write.SGE[0] = ring.SGE{Addr: l.baseA, Length: 64, LKey: l.ma.LKey}
			l.c.a.post(write)
			if e := l.cqA.next(); e.ID != 3 || e.Status != ring.RetryExceeded {
				t.Errorf("the write ended with %v, want retries exceeded", e.Status)
			}
			if s := l.c.a.info().Attr.State; s != command.Err {
				t.Errorf("the queue pair is in state %v, want error", s)
			}
			if binary.LittleEndian.Uint64(l.b.data) != 0 {
				t.Error("data arrived through a partition that was taken away")
			}
			got := f.port(2).PKeyViolations
			if (got > 0) != (enforce == subnet.EnforceOff) {
				t.Errorf("the port counts %d packets with wrong P_Keys; want some only where the adapters enforce partitions", got)
			}
		})
	}
}

// connectByLID connects an RC queue pair to another by its LID, with the P_Key in row and few retries.
func (q *pair) connectByLID(to *pair, row uint32) {
	q.p.t.Helper()
	port, err := to.p.c.Port(bg, to.p.adapter)
	q.p.check(err)
	q.connectBy(to, row, command.AddressVector{LID: port.LID})
}

// connectBy does what connectByLID does, with a given address vector.
func (q *pair) connectBy(to *pair, row uint32, by command.AddressVector) {
	q.p.t.Helper()
	for _, m := range []command.ModifyQP{
		{Mask: command.MaskState | command.MaskPKey | command.MaskAccess, State: command.Init, PKeyIndex: row, Access: 0xf},
		{Mask: command.MaskState | command.MaskRoute | command.MaskMTU | command.MaskDestQPN | command.MaskRQPSN |
			command.MaskResponderResources | command.MaskMinRNRTimer,
			State: command.RTR, Route: by, MTU: 1024, DestQPN: to.q.Number, ResponderResources: 1},
		{Mask: command.MaskState | command.MaskSQPSN | command.MaskTimeout | command.MaskRetry | command.MaskRNRRetry |
			command.MaskInitiatorDepth,
			State: command.RTS, Timeout: 14, Retry: 2, InitiatorDepth: 1},
	} {
		m.QP = q.q.Handle
		q.p.check(q.p.c.ModifyQP(bg, m))
	}
}
