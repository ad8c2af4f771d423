package device

import (
	"bytes"
	"net/netip"
	"testing"

	"github.com/softvpi/softvpi/internal/encap"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/link/udp"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/ib"
)

// forger sends packets as a local user can: from the address of an adapter, but another UDP port.
type forger struct {
	t     *testing.T
	link  link.Link
	encap *encap.Encap
	route frame.Route
	out   [1]frame.Out
}

func newForger(t *testing.T, src, dst netip.Addr) *forger {
	l, err := udp.Open(udp.Config{Addr: src, Port: 40123, SourcePorts: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	f := &forger{t: t, link: l, route: frame.Route{Src: src, Dst: dst, DstPort: eth.PortRoCEv2}}
	if f.encap, err = encap.New(encap.RoCEv2, []netip.Addr{src}, l.Capabilities(), 40123); err != nil {
		t.Fatal(err)
	}
	if err := l.Prepare(&f.route); err != nil {
		t.Fatal(err)
	}
	return f
}

// write sends a packet that writes payload to memory of the queue pair.
func (f *forger) write(to uint32, psn ib.PSN, at uint64, key uint32, payload []byte) {
	o := &f.out[0]
	o.Reset(&f.route)
	o.Payload = payload
	head := o.Head[frame.HeadRoom:]
	ib.BTH(head).Encode(ib.RCWriteOnly, false, false, 0, ib.PKeyDefault, ib.QPN(to), psn)
	ib.RETH(head[ib.BTHLen:]).Encode(at, key, uint32(len(payload)))
	o.HeadEnd = frame.HeadRoom + ib.BTHLen + ib.RETHLen
	f.encap.Seal(f.out[:])
	if n, err := f.link.Send(f.out[:]); n != 1 || err != nil {
		f.t.Fatalf("sent %d packets: %v", n, err)
	}
}

// TestForgedFromAnotherPort: a local user with an ordinary socket, who even knows the PSN that a connection expects,
// has none of his packets carried out, because they come from another port than the peer's. They are counted, and the
// connection goes on. With the check off they are the peer's.
func TestForgedFromAnotherPort(t *testing.T) {
	for _, off := range []bool{false, true} {
		c := pairs(t, networks[0], AdapterConfig{Path: PathWire, AnySourcePort: off})
		src, dst := c.a.p.buffer(64), c.b.p.buffer(4096)
		wr := ring.SendWR{ID: 1, Op: ring.OpWrite, Flags: ring.Signaled, NumSGE: 1, RemoteAddr: dst.addr(0), RKey: dst.mem.RKey}
		wr.SGE[0] = src.sge(0, 64)
		c.a.post(wr)
		wantSuccess(t, c.a.cq.wait(), 1, ring.CQWrite)
		info := c.b.info()
		f := newForger(t, c.a.p.addr, c.b.p.addr)
		evil := bytes.Repeat([]byte{0xee}, 64)
		next := ib.PSN(info.Attr.RQPSN).Next()
		for k := range 64 { // the first is the one expected
			f.write(info.Number, next.Add(uint32(k)), dst.addr(1024), dst.mem.RKey, evil)
		}
		done := func() bool {
			if off {
				return bytes.Equal(dst.b[1024:1088], evil)
			}
			return counter(t, c.b.p, "Packets from the wrong UDP port") == 64
		}
		if !await.Until(func() bool { c.b.p.c.Poll(1); return done() }) {
			t.Fatalf("check off %v: %d packets count as from a wrong port", off, counter(t, c.b.p, "Packets from the wrong UDP port"))
		}
		if off {
			continue
		}
		if bytes.Contains(dst.b, evil[:1]) {
			t.Error("a forged packet was carried out")
		}
		operations(t, c)
	}
}
