package interop

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/link/packet"
	"github.com/softvpi/softvpi/verbs"
	"github.com/softvpi/softvpi/wire/eth"
)

// sizes of messages around the path MTU of either segment, and long ones.
var sizes = []int{0, 1, 3, 1023, 1024, 1025, 4095, 4096, 4097, 65537, 1 << 20, 8 << 20}

// testVerbs runs every operation of the RC service, with each side as the initiator, over connections set up by
// either side.
func testVerbs(t *testing.T, g *guest) {
	for i, f := range families {
		most := sizes
		if (i == 0) != (g.mtu == 1500) {
			most = sizes[:len(sizes)-1] // the longest over IPv4 at one MTU, and over IPv6 at the other
		}
		t.Run(f.name, func(t *testing.T) {
			a := newAdapter(t, f.ours)
			p := g.peer(t)
			mem := p.region(memorySize, "lwrab")
			for _, way := range []struct {
				name    string
				connect func(testing.TB, *adapter, *peer, family, verbs.ConnParam, string) *couple
			}{{"weconnect", weConnect}, {"theyconnect", theyConnect}} {
				t.Run(way.name, func(t *testing.T) {
					a.t, p.t = t, t
					c := way.connect(t, a, p, f, all, "")
					long := most
					if way.name == "theyconnect" {
						long = []int{1025, 65537} // the packets are the same whoever connected
					}
					for _, n := range long {
						t.Run(fmt.Sprintf("ours/%d", n), func(t *testing.T) { ourMessages(t, c, mem, n) })
						t.Run(fmt.Sprintf("theirs/%d", n), func(t *testing.T) { theirMessages(t, c, mem, n) })
					}
					t.Run("atomics/ours", func(t *testing.T) { ourAtomics(t, c, mem) })
					t.Run("atomics/theirs", func(t *testing.T) { theirAtomics(t, c, mem) })
					t.Run("queue/ours", func(t *testing.T) { ourQueue(t, c, mem) })
					t.Run("queue/theirs", func(t *testing.T) { theirQueue(t, c, mem) })
					t.Run("gather", func(t *testing.T) { gather(t, c, mem) })
					t.Run("invalidate/theirs", func(t *testing.T) { theirInvalidate(t, c, mem) })
					a.t, p.t = t, t
					c.close()
					// Using an invalid key ends the connection.
					t.Run("invalidate/ours", func(t *testing.T) {
						a.t, p.t = t, t
						ourInvalidate(t, way.connect(t, a, p, f, all, ""), mem)
					})
					t.Run("srq", func(t *testing.T) {
						a.t, p.t = t, t
						sharedReceives(t, a, p, f, mem, way.connect)
					})
					a.t, p.t = t, t
				})
			}
			a.t, p.t = t, t
			usedFrames(t, a, f.ours)
		})
	}
}

// usedFrames checks that short packets were sent as Ethernet frames, if the system supports that, so that the capture
// includes frames.
func usedFrames(t *testing.T, a *adapter, addr netip.Addr) {
	ifi, err := net.InterfaceByName("tap0")
	ok(t, err)
	p, err := packet.Open(packet.Config{Addr: addr, Port: eth.PortRoCEv2, Interface: ifi.Index})
	if err != nil || os.Getenv("SOFTVPI_FRAMES") == packet.Off.String() {
		t.Logf("without frames: %v", err)
		return
	}
	p.Close()
	list, err := a.dev.Counters()
	ok(t, err)
	n := 0
	for _, c := range list {
		if strings.HasPrefix(c.Name, "Link frames ") {
			if n++; c.Value == 0 {
				t.Errorf("%s: 0", c.Name)
			}
		}
	}
	if n != 2 {
		t.Errorf("%d counters of frames, want 2", n)
	}
}

// in makes t the test of the couple, and returns its ends.
func (c *couple) in(t testing.TB) (*end, *peer) {
	c.us.adapter.t, c.them.t = t, t
	return c.us, c.them
}

const immediate = 0x11223344

// ourMessages sends, writes and reads n bytes from our side.
func ourMessages(t *testing.T, c *couple, mem region, n int) {
	us, them := c.in(t)
	local := us.mr.Bytes()[:n]
	sge := []verbs.SGE{us.mr.SGE(0, n)}

	fill(local, n+1)
	them.do("recv id=%d mr=%d len=%d wr=1", c.id, mem.mr, n)
	us.send(verbs.SendWR{ID: 1, Op: verbs.OpSend, SGE: sge})
	us.next(verbs.Success)
	if w := them.one(c.id, wcSuccess); int(w.length) != n || w.opcode != wcRecv || w.flags&wcFlagImm != 0 {
		t.Fatalf("send of %d bytes arrives as %+v", n, w)
	}
	mem.check(0, n, n+1)

	fill(local, n+2)
	them.do("recv id=%d mr=%d len=%d wr=2", c.id, mem.mr, n)
	us.send(verbs.SendWR{ID: 2, Op: verbs.OpSendImm, Imm: immediate, Flags: verbs.Solicited, SGE: sge})
	us.next(verbs.Success)
	if w := them.one(c.id, wcSuccess); int(w.length) != n || w.imm != immediate || w.flags&wcFlagImm == 0 {
		t.Fatalf("send with immediate of %d bytes arrives as %+v", n, w)
	}
	mem.check(0, n, n+2)

	fill(local, n+3)
	us.send(verbs.SendWR{ID: 3, Op: verbs.OpWrite, RemoteAddr: mem.addr, RKey: uint32(mem.rkey), SGE: sge})
	us.next(verbs.Success)
	mem.check(0, n, n+3)

	fill(local, n+4)
	them.do("recv id=%d mr=%d len=0 wr=4", c.id, mem.mr)
	us.send(verbs.SendWR{ID: 4, Op: verbs.OpWriteImm, Imm: immediate, RemoteAddr: mem.addr, RKey: uint32(mem.rkey), SGE: sge})
	us.next(verbs.Success)
	if w := them.one(c.id, wcSuccess); int(w.length) != n || w.imm != immediate || w.opcode != wcRecvWrite {
		t.Fatalf("write with immediate of %d bytes arrives as %+v", n, w)
	}
	mem.check(0, n, n+4)

	mem.fill(0, n, n+5)
	us.send(verbs.SendWR{ID: 5, Op: verbs.OpRead, RemoteAddr: mem.addr, RKey: uint32(mem.rkey), SGE: sge})
	if w := us.next(verbs.Success); int(w.ByteLen) != n {
		t.Fatalf("read of %d bytes completes with %d", n, w.ByteLen)
	}
	check(t, local, n+5)

	if n > 0 && n <= 64 {
		inline := make([]byte, n)
		fill(inline, n+6)
		us.send(verbs.SendWR{ID: 6, Op: verbs.OpWrite, RemoteAddr: mem.addr, RKey: uint32(mem.rkey), Inline: inline})
		us.next(verbs.Success)
		mem.check(0, n, n+6)
	}
}

// theirMessages has the peer send, write and read n bytes.
func theirMessages(t *testing.T, c *couple, mem region, n int) {
	us, them := c.in(t)
	local := us.mr.Bytes()[:n]
	post := func(op string, wr int, more string) {
		t.Helper()
		them.do("send id=%d op=%s mr=%d len=%d wr=%d %s", c.id, op, mem.mr, n, wr, more)
		them.one(c.id, wcSuccess)
	}
	remote := fmt.Sprintf("raddr=%d rkey=%d", us.mr.RemoteAddr(), us.mr.RKey())

	mem.fill(0, n, n+1)
	us.recv(1, us.mr.SGE(0, n))
	post("send", 1, "")
	if w := us.next(verbs.Success); int(w.ByteLen) != n || w.Op != verbs.CompletedRecv {
		t.Fatalf("send of %d bytes arrives as %+v", n, w)
	}
	check(t, local, n+1)

	mem.fill(0, n, n+2)
	us.recv(2, us.mr.SGE(0, n))
	post("sendimm", 2, fmt.Sprintf("imm=%d flags=o", immediate))
	if w := us.next(verbs.Success); int(w.ByteLen) != n || w.Imm != immediate || w.Flags&verbs.WithImm == 0 ||
		w.Flags&verbs.WasSolicited == 0 {
		t.Fatalf("send with immediate of %d bytes arrives as %+v", n, w)
	}
	check(t, local, n+2)

	mem.fill(0, n, n+3)
	post("write", 3, remote)
	check(t, local, n+3)

	mem.fill(0, n, n+4)
	us.recv(4)
	post("writeimm", 4, fmt.Sprintf("imm=%d %s", immediate, remote))
	if w := us.next(verbs.Success); int(w.ByteLen) != n || w.Imm != immediate || w.Op != verbs.CompletedRecvWrite {
		t.Fatalf("write with immediate of %d bytes arrives as %+v", n, w)
	}
	check(t, local, n+4)

	fill(local, n+5)
	post("read", 5, remote)
	mem.check(0, n, n+5)
}

func ourAtomics(t *testing.T, c *couple, mem region) {
	us, them := c.in(t)
	for i, s := range []struct {
		wr       verbs.SendWR
		old, now uint64
	}{
		{verbs.SendWR{Op: verbs.OpFetchAdd, Add: 5}, 0xfffffffffffffffe, 3},
		{verbs.SendWR{Op: verbs.OpCompareSwap, Compare: 3, Swap: 0x0102030405060708}, 3, 0x0102030405060708},
		{verbs.SendWR{Op: verbs.OpCompareSwap, Compare: 4, Swap: 9}, 0x0102030405060708, 0x0102030405060708},
	} {
		if s.wr.Op == verbs.OpFetchAdd {
			them.do("poke mr=%d off=64 data=%x", mem.mr, binary.LittleEndian.AppendUint64(nil, s.old))
		}
		s.wr.RemoteAddr, s.wr.RKey, s.wr.SGE = mem.addr+64, uint32(mem.rkey), []verbs.SGE{us.mr.SGE(0, 8)}
		s.wr.ID = uint64(200 + i)
		us.send(s.wr)
		if w := us.next(verbs.Success); w.ID != s.wr.ID {
			t.Fatalf("%v %d completes as %+v", s.wr.Op, s.wr.ID, w)
		}
		if old := binary.LittleEndian.Uint64(us.mr.Bytes()); old != s.old {
			t.Errorf("%v: old value is %#x, want %#x", s.wr.Op, old, s.old)
		}
		if now := binary.LittleEndian.Uint64(them.do("peek mr=%d off=64 len=8", mem.mr).bytes(t, "data")); now != s.now {
			t.Errorf("%v: value is %#x, want %#x", s.wr.Op, now, s.now)
		}
	}
}

func theirAtomics(t *testing.T, c *couple, mem region) {
	us, them := c.in(t)
	word := us.mr.Bytes()[64:72]
	binary.LittleEndian.PutUint64(word, 0xfffffffffffffffe)
	for _, s := range []struct {
		op       string
		old, now uint64
	}{
		{"op=fadd add=5", 0xfffffffffffffffe, 3},
		{"op=cas cmp=3 swap=0x0102030405060708", 3, 0x0102030405060708},
		{"op=cas cmp=4 swap=9", 0x0102030405060708, 0x0102030405060708},
	} {
		them.do("send id=%d %s mr=%d len=8 wr=1 raddr=%d rkey=%d", c.id, s.op, mem.mr, us.mr.RemoteAddr()+64, us.mr.RKey())
		them.one(c.id, wcSuccess)
		if old := binary.LittleEndian.Uint64(them.do("peek mr=%d off=0 len=8", mem.mr).bytes(t, "data")); old != s.old {
			t.Errorf("%s: old value is %#x, want %#x", s.op, old, s.old)
		}
		if now := binary.LittleEndian.Uint64(word); now != s.now {
			t.Errorf("%s: value is %#x, want %#x", s.op, now, s.now)
		}
	}
}

const (
	queued = 48
	piece  = 3000
)

// ourQueue keeps many requests of every kind in progress, with more reads and atomics than may be outstanding at a
// time. They complete in order, and a fenced send contains what the read before it fetched.
func ourQueue(t *testing.T, c *couple, mem region) {
	us, them := c.in(t)
	fill(us.mr.Bytes()[:queued*piece], 1)
	half := queued / 3
	mem.fill(4<<20, half*piece, 2)
	them.do("poke mr=%d off=%d data=0000000000000000", mem.mr, 7<<20)
	them.do("recv id=%d mr=%d off=%d len=%d wr=100 n=1", c.id, mem.mr, 6<<20, piece)
	for i := range half {
		us.send(verbs.SendWR{ID: uint64(3 * i), Op: verbs.OpWrite, SGE: []verbs.SGE{us.mr.SGE(i*piece, piece)},
			RemoteAddr: mem.addr + uint64(i*piece), RKey: uint32(mem.rkey)})
		us.send(verbs.SendWR{ID: uint64(3*i + 1), Op: verbs.OpRead, SGE: []verbs.SGE{us.mr.SGE(4<<20+i*piece, piece)},
			RemoteAddr: mem.addr + 4<<20 + uint64(i*piece), RKey: uint32(mem.rkey)})
		us.send(verbs.SendWR{ID: uint64(3*i + 2), Op: verbs.OpFetchAdd, Add: 1, SGE: []verbs.SGE{us.mr.SGE(7<<20+8*i, 8)},
			RemoteAddr: mem.addr + 7<<20, RKey: uint32(mem.rkey)})
	}
	us.send(verbs.SendWR{ID: 3 * uint64(half), Op: verbs.OpSend, Flags: verbs.Fence, SGE: []verbs.SGE{us.mr.SGE(4<<20, piece)}})
	for i := range 3*half + 1 {
		if w := us.next(verbs.Success); w.ID != uint64(i) {
			t.Fatalf("request %d completes where %d is due", w.ID, i)
		}
	}
	mem.check(0, half*piece, 1)
	check(t, us.mr.Bytes()[4<<20:][:half*piece], 2)
	for i := range half {
		if v := binary.LittleEndian.Uint64(us.mr.Bytes()[7<<20+8*i:]); v != uint64(i) {
			t.Errorf("fetch and add %d finds %d", i, v)
		}
	}
	them.one(c.id, wcSuccess)
	mem.check(6<<20, piece, 2)
}

// theirQueue is ourQueue with the peer as the initiator.
func theirQueue(t *testing.T, c *couple, mem region) {
	us, them := c.in(t)
	const n = queued / 3
	rkey := us.mr.RKey()
	base := us.mr.RemoteAddr()
	binary.LittleEndian.PutUint64(us.mr.Bytes()[7<<20:], 0)
	mem.fill(0, n*piece, 1)
	fill(us.mr.Bytes()[4<<20:][:n*piece], 2)
	them.do("send id=%d op=write mr=%d off=0 len=%d wr=0 n=%d stride=%d raddr=%d rkey=%d", c.id, mem.mr, piece, n, piece, base, rkey)
	them.do("send id=%d op=read mr=%d off=%d len=%d wr=%d n=%d stride=%d raddr=%d rkey=%d", c.id, mem.mr, 4<<20, piece, n, n, piece,
		base+4<<20, rkey)
	them.do("poke mr=%d off=%d data=%s", mem.mr, 7<<20, strings.Repeat("ee", 8*n))
	for i := range n {
		them.do("send id=%d op=fadd add=1 mr=%d off=%d len=8 wr=%d raddr=%d rkey=%d", c.id, mem.mr, 7<<20+8*i, 2*n+i, base+7<<20, rkey)
	}
	for i, w := range them.poll(c.id, 3*n) {
		if w.status != wcSuccess || w.wr != uint64(i) {
			t.Fatalf("completion %d of the peer is %+v", i, w)
		}
	}
	check(t, us.mr.Bytes()[:n*piece], 1)
	mem.check(4<<20, n*piece, 2)
	if v := binary.LittleEndian.Uint64(us.mr.Bytes()[7<<20:]); v != n {
		t.Errorf("the counter is %d after %d fetch and adds", v, n)
	}
	olds := them.do("peek mr=%d off=%d len=%d", mem.mr, 7<<20, 8*n).bytes(t, "data")
	for i := range n {
		if v := binary.LittleEndian.Uint64(olds[8*i:]); v != uint64(i) {
			t.Errorf("fetch and add %d of the peer finds %d", i, v)
		}
	}
}

// gather sends from and receives into several pieces, whose boundaries are not those of packets.
func gather(t *testing.T, c *couple, mem region) {
	us, them := c.in(t)
	whole := make([]byte, 5000)
	fill(whole, 9)
	b := us.mr.Bytes()
	copy(b[10000:], whole[:1])
	copy(b[20000:], whole[1:2500])
	copy(b[30000:], whole[2500:])
	them.do("recv id=%d mr=%d len=5000 wr=1", c.id, mem.mr)
	us.send(verbs.SendWR{Op: verbs.OpSend, SGE: []verbs.SGE{us.mr.SGE(10000, 1), us.mr.SGE(20000, 2499), us.mr.SGE(30000, 2500)}})
	us.next(verbs.Success)
	them.one(c.id, wcSuccess)
	mem.check(0, 5000, 9)

	clear(b[:40000])
	us.recv(1, us.mr.SGE(10000, 1), us.mr.SGE(20000, 2499), us.mr.SGE(30000, 2500))
	them.do("send id=%d op=send mr=%d len=5000 wr=1", c.id, mem.mr)
	them.one(c.id, wcSuccess)
	us.next(verbs.Success)
	check(t, append(append(append([]byte(nil), b[10000]), b[20000:22499]...), b[30000:32500]...), 9)
}

// theirInvalidate binds a type 2 window of ours, through which the peer writes, and which it then invalidates by a
// send.
func theirInvalidate(t *testing.T, c *couple, mem region) {
	us, them := c.in(t)
	w, err := us.pd.AllocWindow(verbs.WindowType2)
	ok(t, err)
	us.send(verbs.SendWR{Op: verbs.OpBind, Bind: verbs.Bind{Window: w, MR: us.mr, Addr: us.mr.Addr() + 4096, Length: 4096,
		Access: verbs.RemoteWrite}})
	us.next(verbs.Success)
	mem.fill(0, 4096, 3)
	them.do("send id=%d op=write mr=%d len=4096 wr=1 raddr=%d rkey=%d", c.id, mem.mr, us.mr.Addr()+4096, w.RKey())
	them.one(c.id, wcSuccess)
	check(t, us.mr.Bytes()[4096:8192], 3)
	us.recv(1, us.mr.SGE(0, 16))
	them.do("send id=%d op=sendinv mr=%d len=16 wr=2 rkey=%d", c.id, mem.mr, w.RKey())
	them.one(c.id, wcSuccess)
	if wc := us.next(verbs.Success); wc.Flags&verbs.WithInvalidated == 0 || wc.Imm != w.RKey() {
		t.Errorf("send with invalidate arrives as %+v, want key %#x", wc, w.RKey())
	}
	ok(t, w.Close())
}

// ourInvalidate is the same the other way round; afterwards the window's key is no longer valid.
func ourInvalidate(t *testing.T, c *couple, mem region) {
	us, them := c.in(t)
	key := uint32(them.do("bind id=%d mr=%d off=4096 len=4096 access=wr", c.id, mem.mr).num(t, "rkey"))
	through := verbs.SendWR{Op: verbs.OpWrite, SGE: []verbs.SGE{us.mr.SGE(0, 4096)}, RemoteAddr: mem.addr + 4096, RKey: key}
	fill(us.mr.Bytes()[:4096], 5)
	us.send(through)
	us.next(verbs.Success)
	mem.check(4096, 4096, 5)
	them.do("recv id=%d mr=%d len=16 wr=1", c.id, mem.mr)
	us.send(verbs.SendWR{Op: verbs.OpSendInvalidate, InvalidateKey: key, SGE: []verbs.SGE{us.mr.SGE(0, 16)}})
	us.next(verbs.Success)
	if w := them.one(c.id, wcSuccess); w.flags&wcFlagInv == 0 || w.imm != key {
		t.Errorf("send with invalidate arrives as %+v, want key %#x", w, key)
	}
	us.send(through)
	us.next(verbs.RemoteAccess)
	c.drop()
}

// sharedReceives has QPs of each side take their receives from a shared queue.
func sharedReceives(t *testing.T, a *adapter, p *peer, f family, mem region,
	connect func(testing.TB, *adapter, *peer, family, verbs.ConnParam, string) *couple) {
	const qps, size = 3, 1500
	srq, err := a.pd.CreateSRQ(verbs.SRQConfig{Depth: 16, MaxSGE: 1})
	ok(t, err)
	a.srq = srq
	var list []*couple
	for range qps {
		list = append(list, connect(t, a, p, f, all, "srq=1"))
	}
	a.srq = nil
	for i := range 2 * qps {
		ok(t, srq.PostRecv(&verbs.RecvWR{ID: uint64(i), SGE: []verbs.SGE{a.mr.SGE(i*size, size)}}))
	}
	mem.fill(0, size, 6)
	for i, c := range list {
		for range 2 {
			p.do("send id=%d op=send mr=%d len=%d wr=1", c.id, mem.mr, size)
			p.one(c.id, wcSuccess)
			w := c.us.next(verbs.Success)
			check(t, a.mr.Bytes()[w.ID*size:][:size], 6)
		}
		fill(a.mr.Bytes()[:size], i)
		p.do("recv id=%d mr=%d off=%d len=%d wr=2", c.id, mem.mr, size, size)
		c.us.send(verbs.SendWR{Op: verbs.OpSend, SGE: []verbs.SGE{a.mr.SGE(0, size)}})
		c.us.next(verbs.Success)
		p.one(c.id, wcSuccess)
		mem.check(size, size, i)
	}
	for _, c := range list {
		c.close()
	}
	ok(t, srq.Close())
}
