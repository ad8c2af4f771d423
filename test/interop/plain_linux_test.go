package interop

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/softvpi/softvpi/verbs"
)

// plain is how two QPs are joined without a connection manager.
type plain struct {
	typ      verbs.QPType
	mtu      int
	psn      uint32 // of our first packet; the peer's first is one more
	timeout  int
	retry    int
	rnrRetry int
	depth    int    // number of reads and atomics that may be outstanding
	theirQPN uint32 // if it is not the peer's own QP
	ourQPN   uint32
}

var typeNames = map[verbs.QPType]string{verbs.RC: "rc", verbs.UC: "uc", verbs.UD: "ud"}

// patientTimeout is the time-out of queue pairs whose requests are answered sooner or later: 1 s, seven times. With 14, as many programs
// have it, half a second without a processor on either side is the end of all retries.
const patientTimeout = 18

// join creates a QP on both sides and joins them.
func join(t testing.TB, a *adapter, p *peer, f family, x plain) *couple {
	t.Helper()
	if x.timeout == 0 {
		x.timeout, x.retry, x.rnrRetry, x.depth = patientTimeout, 7, 7, 16
	}
	e := a.end(x.typ)
	q := p.do("qp type=%s", typeNames[x.typ])
	theirs, mine := uint32(q.num(t, "qpn")), e.qp.Number()
	if x.theirQPN != 0 {
		theirs = x.theirQPN
	}
	if x.ourQPN != 0 {
		mine = x.ourQPN
	}
	psn2 := (x.psn + 1) & 0xffffff

	access := verbs.RemoteWrite
	if x.typ == verbs.RC {
		access |= verbs.RemoteRead | verbs.RemoteAtomic
	}
	rtr := verbs.MaskState | verbs.MaskAV | verbs.MaskMTU | verbs.MaskDestQPN | verbs.MaskRQPSN
	rts := verbs.MaskState | verbs.MaskSQPSN
	if x.typ == verbs.RC {
		rtr |= verbs.MaskResponderResources | verbs.MaskMinRNRTimer
		rts |= verbs.MaskTimeout | verbs.MaskRetry | verbs.MaskRNRRetry | verbs.MaskInitiatorDepth
	}
	ok(t, e.qp.Modify(verbs.QPAttr{State: verbs.StateInit, Access: access}, verbs.MaskState|verbs.MaskPKeyIndex|verbs.MaskAccess))
	ok(t, e.qp.Modify(verbs.QPAttr{State: verbs.StateRTR, AV: verbs.AddressVector{Addr: f.theirs}, MTU: x.mtu,
		DestQPN: theirs, RQPSN: psn2, ResponderResources: 16, MinRNRTimer: 12}, rtr))
	ok(t, e.qp.Modify(verbs.QPAttr{State: verbs.StateRTS, SQPSN: x.psn, Timeout: uint8(x.timeout), Retry: uint8(x.retry),
		RNRRetry: uint8(x.rnrRetry), InitiatorDepth: uint8(x.depth)}, rts))

	p.do("rtr id=%s addr=%s qpn=%d psn=%d mtu=%d rr=16", q["id"], f.ours, mine, x.psn, x.mtu)
	p.do("rts id=%s psn=%d timeout=%d retry=%d rnr=%d depth=%d", q["id"], psn2, x.timeout, x.retry, x.rnrRetry, x.depth)
	return &couple{e, p, q.num(t, "id")}
}

// rxeAhead is how many packets the peer sends in a row where nobody acknowledges them, so that Soft-RoCE is sure to complete them. It
// stops while more than 64 of a QP's packets are in its kernel, and notes that it did behind its look at their number (rxe_requester,
// need_req_skb). If all of them leave in between, as on a processor that was taken away, the last one (rxe_skb_tx_dtor) sees no note, and
// the rest of the message waits for the next request. RC has a timer for that. It is half of 64, as packets of the exchange before may
// not have left yet.
const rxeAhead = 32

// testPlain runs QPs that are joined by hand: every path MTU, PSNs that wrap, and the UC and UD services.
func testPlain(t *testing.T, g *guest) {
	for _, f := range families {
		t.Run(f.name, func(t *testing.T) {
			a := newAdapter(t, f.ours)
			p := g.peer(t)
			mem := p.region(memorySize, "lwra")
			largest := 1024
			if g.mtu == 9000 {
				largest = 4096
			}
			for mtu := 256; mtu <= largest; mtu *= 2 {
				t.Run(fmt.Sprintf("rc/mtu%d", mtu), func(t *testing.T) {
					a.t, p.t = t, t
					// The PSN wraps within the first messages.
					c := join(t, a, p, f, plain{typ: verbs.RC, mtu: mtu, psn: 0xfffffd})
					ourMessages(t, c, mem, 5*mtu+3)
					theirMessages(t, c, mem, 5*mtu+3)
					ourAtomics(t, c, mem)
					theirAtomics(t, c, mem)
					c.drop()
				})
				t.Run(fmt.Sprintf("uc/mtu%d", mtu), func(t *testing.T) {
					a.t, p.t = t, t
					c := join(t, a, p, f, plain{typ: verbs.UC, mtu: mtu, psn: 0xfffffd})
					for _, n := range []int{0, 1, mtu, 3*mtu + 1, 65537} {
						unreliable(t, c, mem, n, mtu)
					}
					c.drop()
				})
			}
			t.Run("ud", func(t *testing.T) {
				a.t, p.t = t, t
				datagrams(t, a, p, f, mem, largest)
			})
			a.t, p.t = t, t
		})
	}
}

// unreliable sends and writes n bytes each way over UC, the peer those that it may send in a row. Nothing is lost here, and each message is
// awaited before the next.
func unreliable(t *testing.T, c *couple, mem region, n, mtu int) {
	defer func() {
		if t.Failed() {
			t.Logf("a message of %d bytes", n)
		}
	}()
	us, them := c.us, c.them
	sge := []verbs.SGE{us.mr.SGE(0, n)}
	fill(us.mr.Bytes()[:n], n+1)
	them.do("recv id=%d mr=%d len=%d wr=1", c.id, mem.mr, n)
	us.send(verbs.SendWR{Op: verbs.OpSendImm, Imm: immediate, SGE: sge})
	us.next(verbs.Success)
	if w := them.one(c.id, wcSuccess); int(w.length) != n || w.imm != immediate {
		t.Fatalf("UC send of %d bytes arrives as %+v", n, w)
	}
	mem.check(0, n, n+1)

	fill(us.mr.Bytes()[:n], n+2)
	them.do("recv id=%d mr=%d len=0 wr=2", c.id, mem.mr)
	us.send(verbs.SendWR{Op: verbs.OpWriteImm, Imm: immediate, SGE: sge, RemoteAddr: mem.addr, RKey: uint32(mem.rkey)})
	us.next(verbs.Success)
	if w := them.one(c.id, wcSuccess); int(w.length) != n || w.opcode != wcRecvWrite {
		t.Fatalf("UC write of %d bytes arrives as %+v", n, w)
	}
	mem.check(0, n, n+2)

	n = min(n, rxeAhead*mtu)
	mem.fill(0, n, n+3)
	us.recv(3, us.mr.SGE(0, n))
	them.do("send id=%d op=sendimm imm=%d mr=%d len=%d wr=3", c.id, immediate, mem.mr, n)
	them.one(c.id, wcSuccess)
	if w := us.next(verbs.Success); int(w.ByteLen) != n || w.Imm != immediate {
		t.Fatalf("UC send of %d bytes arrives as %+v", n, w)
	}
	check(t, us.mr.Bytes()[:n], n+3)

	mem.fill(0, n, n+4)
	us.recv(4)
	them.do("send id=%d op=writeimm imm=%d mr=%d len=%d wr=4 raddr=%d rkey=%d", c.id, immediate, mem.mr, n, us.mr.RemoteAddr(),
		us.mr.RKey())
	them.one(c.id, wcSuccess)
	if w := us.next(verbs.Success); int(w.ByteLen) != n || w.Op != verbs.CompletedRecvWrite {
		t.Fatalf("UC write of %d bytes arrives as %+v", n, w)
	}
	check(t, us.mr.Bytes()[:n], n+4)
}

const qkey = 0x11111111

// datagrams sends UD messages each way. The receiver finds the sender's addresses in the 40 bytes before the data;
// for IPv4 in the last 20 of them.
func datagrams(t *testing.T, a *adapter, p *peer, f family, mem region, largest int) {
	e := a.end(verbs.UD)
	e.ready(qkey)
	q := p.do("qp type=ud qkey=%d", qkey)
	id := q.num(t, "id")
	p.do("rtr id=%d", id)
	p.do("rts id=%d psn=0xffffff", id)
	p.do("ah id=%d addr=%s", id, f.ours)
	ah, err := a.pd.CreateAH(verbs.AddressVector{Addr: f.theirs})
	ok(t, err)
	for _, n := range []int{0, 1, 100, largest} {
		fill(a.mr.Bytes()[:n], n+1)
		p.do("recv id=%d mr=%d len=%d wr=1", id, mem.mr, n+grh)
		e.send(verbs.SendWR{Op: verbs.OpSendImm, Imm: immediate, AH: ah, RemoteQPN: uint32(q.num(t, "qpn")), RemoteQKey: qkey,
			SGE: []verbs.SGE{a.mr.SGE(0, n)}})
		e.next(verbs.Success)
		if w := p.one(id, wcSuccess); int(w.length) != n+grh || w.srcQP != e.qp.Number() || w.imm != immediate || w.flags&wcFlagGRH == 0 {
			t.Fatalf("datagram of %d bytes arrives as %+v", n, w)
		}
		mem.check(grh, n, n+1)
		wantAddrs(t, p.do("peek mr=%d off=0 len=%d", mem.mr, grh).bytes(t, "data"), f.ours.AsSlice(), f.theirs.AsSlice())

		mem.fill(0, n, n+2)
		e.recv(2, a.mr.SGE(0, n+grh))
		p.do("send id=%d op=send mr=%d len=%d wr=2 qpn=%d qkey=%d", id, mem.mr, n, e.qp.Number(), qkey)
		p.one(id, wcSuccess)
		if w := e.next(verbs.Success); int(w.ByteLen) != n+grh || uint64(w.SrcQP) != q.num(t, "qpn") || w.Flags&verbs.WithGRH == 0 {
			t.Fatalf("datagram of %d bytes arrives as %+v", n, w)
		}
		check(t, a.mr.Bytes()[grh:][:n], n+2)
		wantAddrs(t, a.mr.Bytes()[:grh], f.theirs.AsSlice(), f.ours.AsSlice())
	}
	// A datagram with another Q_Key is dropped (IBA 10.2.5); the one after it arrives.
	e.recv(3, a.mr.SGE(0, 100+grh))
	p.do("send id=%d op=send mr=%d len=3 wr=3 qpn=%d qkey=%d", id, mem.mr, e.qp.Number(), qkey+1)
	p.do("send id=%d op=send mr=%d len=4 wr=4 qpn=%d qkey=%d", id, mem.mr, e.qp.Number(), qkey)
	if w := e.next(verbs.Success); w.ByteLen != grh+4 {
		t.Errorf("%d bytes arrive, want those of the datagram with our Q_Key", w.ByteLen-grh)
	}
	p.poll(id, 2)
	e.drop()
	p.do("destroy id=%d", id)
	ok(t, ah.Close())
}

// wantAddrs checks that the header of a datagram ends with these addresses.
func wantAddrs(t testing.TB, header, source, destination []byte) {
	t.Helper()
	if want := append(bytes.Clone(source), destination...); !bytes.HasSuffix(header, want) {
		t.Errorf("the 40 bytes are %x, want addresses %x at the end", header, want)
	}
}
