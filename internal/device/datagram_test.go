package device

import (
	"errors"
	"net/netip"
	"sync"
	"testing"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/testbed/loopback"
	"github.com/softvpi/softvpi/wire/ib"
)

// toDatagrams takes a UD QP to RTS.
func (q *pair) toDatagrams(qkey uint32) { q.toDatagramsIn(0, qkey) }

// toDatagramsIn does what toDatagrams does, with the P_Key in the given row of the partition table.
func (q *pair) toDatagramsIn(row, qkey uint32) {
	q.p.t.Helper()
	for _, m := range []command.ModifyQP{
		{Mask: command.MaskState | command.MaskPKey | command.MaskQKey, State: command.Init, PKeyIndex: row, QKey: qkey},
		{Mask: command.MaskState, State: command.RTR},
		{Mask: command.MaskState | command.MaskSQPSN, State: command.RTS},
	} {
		m.QP = q.q.Handle
		q.p.check(q.p.c.ModifyQP(bg, m))
	}
}

func (q *pair) sendTo(to netip.Addr, qpn, qkey uint32, s ring.SGE) error {
	ah, err := q.p.c.CreateAH(bg, command.CreateAH{PD: q.p.pd, AV: command.AddressVector{Addr: command.AddrFrom(to)}})
	if err != nil {
		return err
	}
	wr := ring.SendWR{Op: ring.OpSend, Flags: ring.Signaled, NumSGE: 1, AH: uint32(ah), RemoteQPN: qpn, QKey: qkey}
	wr.SGE[0] = s
	q.post(wr)
	return nil
}

// TestDatagrams: datagrams reach a QP and a multicast group, and each receive begins with 40 bytes for the GRH (IBA
// 11.4.1.2). A QP that has left the group gets no more of its datagrams.
func TestDatagrams(t *testing.T) {
	const qkey = 0x1234
	for _, n := range networks {
		t.Run(n.name, func(t *testing.T) {
			x, y := n.make(t, AdapterConfig{})
			a, b := x.qp(command.CreateQP{Type: command.UD}, x.cq(16)), y.qp(command.CreateQP{Type: command.UD}, y.cq(16))
			a.toDatagrams(qkey)
			b.toDatagrams(qkey)
			src, dst := x.buffer(64), y.buffer(256)
			copy(src.b, "datagram")
			get := func(to string) {
				t.Helper()
				e := b.cq.next()
				wantSuccess(t, e, 1, ring.CQRecv)
				grh := to == "to the group" || !y.host.onFabric.Load() // datagrams within a subnet have none
				if e.ByteLen != 40+8 || string(dst.b[40:48]) != "datagram" || e.SrcQP != a.q.Number || e.Flags&ring.HasGRH != 0 != grh {
					t.Errorf("%s: %d bytes %q from %#x, flags %#x", to, e.ByteLen, dst.b[40:48], e.SrcQP, e.Flags)
				}
			}
			b.postRecv(1, dst.sge(0, 256))
			x.check(a.sendTo(y.addr, b.q.Number, qkey, src.sge(0, 8)))
			wantSuccess(t, a.cq.next(), 0, ring.CQSend)
			get("to the QP")

			group := netip.AddrFrom4([4]byte{239, y.addr.As4()[1], y.addr.As4()[2], y.addr.As4()[3]})
			err := y.c.AttachMulticast(bg, b.q.Handle, command.AddrFrom(group))
			if errors.Is(err, &command.Error{Code: command.Unsupported}) {
				t.Skipf("this machine has no multicast: %v", err)
			}
			y.check(err)
			b.postRecv(1, dst.sge(0, 256))
			clear(dst.b)
			x.check(a.sendTo(group, 0xffffff, qkey, src.sge(0, 8)))
			wantSuccess(t, a.cq.next(), 0, ring.CQSend)
			get("to the group")
			y.check(y.c.DetachMulticast(bg, b.q.Handle, command.AddrFrom(group)))
			wantCode(t, y.c.DetachMulticast(bg, b.q.Handle, command.AddrFrom(group)), command.NotFound)
			wantCode(t, y.c.AttachMulticast(bg, b.q.Handle, command.AddrFrom(y.addr)), command.Invalid)
		})
	}
}

// TestResolveDatagramQP: in the UDP port space a connection request resolves a datagram QP by SIDR, to its number and
// Q_Key.
func TestResolveDatagramQP(t *testing.T) {
	x, y := networks[0].make(t, AdapterConfig{})
	a, b := x.qp(command.CreateQP{Type: command.UD}, x.cq(16)), y.qp(command.CreateQP{Type: command.UD}, y.cq(16))
	l, err := y.c.CMCreate(bg, command.CMCreate{Adapter: command.AnyAdapter, Space: command.UDP})
	y.check(err)
	at, err := y.c.CMBind(bg, l, command.Endpoint{})
	y.check(err)
	y.check(y.c.CMListen(bg, l, 4))
	id, err := x.c.CMCreate(bg, command.CMCreate{Adapter: x.adapter, Space: command.UDP})
	x.check(err)
	at.Addr = command.AddrFrom(y.addr)
	x.dial(command.CMConnect{ID: id, QP: a.q.Handle, Remote: at})
	e := y.event(command.EventConnectRequest)
	y.check(y.c.CMAccept(bg, command.CMAccept{ID: e.NewID, QP: b.q.Handle}))
	r := x.event(command.EventConnectResponse)
	if r.Param.QPN != b.q.Number || r.Param.QKey != ib.QKeyRDMAUDP {
		t.Errorf("resolved QP %#x with Q_Key %#x, want %#x with %#x", r.Param.QPN, r.Param.QKey, b.q.Number, ib.QKeyRDMAUDP)
	}
	a.toRTS(t)
	src, dst := x.buffer(64), y.buffer(128)
	b.postRecv(1, dst.sge(0, 128))
	x.check(a.sendTo(y.addr, r.Param.QPN, r.Param.QKey, src.sge(0, 8)))
	wantSuccess(t, b.cq.next(), 1, ring.CQRecv)
}

// toRTS checks that the QP is in RTS. It does not wait: the CM sets the QP up before it raises its event.
func (q *pair) toRTS(t testing.TB) {
	t.Helper()
	if s := q.info().Attr.State; s != command.RTS {
		t.Fatalf("QP in state %d after the CM's event, want RTS", s)
	}
}

// slowOwner is memory that is reached by copies which end later, as the memory of a program with a copier of its own.
type slowOwner struct {
	mu    sync.Mutex
	base  uint64
	b     []byte
	queue []memory.Transfer
	room  int
}

func (*slowOwner) Read([]byte, uint64) error  { return memory.ErrGone }
func (*slowOwner) Write(uint64, []byte) error { return memory.ErrGone }
func (*slowOwner) Blocking() bool             { return false }
func (*slowOwner) Limit() int                 { return 64 << 10 }
func (*slowOwner) Flush()                     {}

func (o *slowOwner) Start(t *memory.Transfer) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.queue) >= o.room {
		return false
	}
	o.queue = append(o.queue, *t)
	return true
}

// Finish carries out one transfer per call, so that the engine always has one to wait for.
func (o *slowOwner) Finish(out []memory.Finished) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.queue) == 0 || len(out) == 0 {
		return 0
	}
	t := o.queue[0]
	o.queue = o.queue[1:]
	out[0] = memory.Finished{Tag: t.Tag}
	at := o.b[t.Addr-o.base:]
	switch t.Kind {
	case memory.CopyRead:
		copy(t.Data, at)
	case memory.CopyWrite:
		copy(at, t.Data)
	case memory.CopyFetchAdd:
		out[0].Old = uint64(at[0])
		at[0] += byte(t.Swap)
	default:
		out[0].Err = memory.ErrGone
	}
	return 1
}

// TestMemoryOfSlowOwners: memory that only its owner can reach takes part in every operation, also when the owner
// takes few transfers at a time.
func TestMemoryOfSlowOwners(t *testing.T) {
	for _, path := range []PathPolicy{PathWire, PathAuto} {
		t.Run(path.String(), func(t *testing.T) {
			h := newHost(t, Config{Seed: 1})
			owner := &slowOwner{b: make([]byte, 1<<20), base: 1 << 40, room: 2}
			reach := func(r command.RegisterMemory) (Reached, error) {
				if r.Base == owner.base {
					return Reached{Remote: owner, Path: 3}, nil
				}
				return ownMemory(r)
			}
			x := newProgramWith(t, h, h.add(t, AdapterConfig{Addr: loopback.Addr(), Path: path}), ClientConfig{Name: "x", Reach: reach})
			y := newProgramWith(t, h, h.add(t, AdapterConfig{Addr: loopback.Addr(), Path: path}), ClientConfig{Name: "y", Reach: reach})
			c := connect(x.idleQP(), y.idleQP())
			const size = 300_000
			remote, err := y.c.RegisterMemory(bg, command.RegisterMemory{PD: y.pd, Access: uint32(allRights), Base: owner.base,
				Length: 1 << 20})
			y.check(err)
			if remote.Path != 3 {
				t.Errorf("path %d, want 3", remote.Path)
			}
			src := x.buffer(size)
			fill(src.b, 3)
			wr := ring.SendWR{ID: 1, Op: ring.OpWrite, Flags: ring.Signaled, NumSGE: 1, RemoteAddr: owner.base, RKey: remote.RKey}
			wr.SGE[0] = src.sge(0, size)
			c.a.post(wr)
			wantSuccess(t, c.a.cq.next(), 1, ring.CQWrite)
			if string(owner.b[:size]) != string(src.b) {
				t.Fatal("write: bytes differ")
			}
			clear(src.b)
			wr.ID, wr.Op = 2, ring.OpRead
			c.a.post(wr)
			wantSuccess(t, c.a.cq.next(), 2, ring.CQRead)
			if string(owner.b[:size]) != string(src.b) {
				t.Fatal("read: bytes differ")
			}
			if h.Snapshot().Adapters[y.adapter].Objects.MR != 1 {
				t.Error("the adapter does not count one region")
			}
		})
	}
}
