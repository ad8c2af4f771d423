package cm

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"pgregory.net/rapid"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// TestXRCFields: whatever the two programs ask for, a connection of XRC has the fields of IBA 12.6.5 and 12.6.8 as annex A14
// wants them, checked in the bytes of REQ, REP and DREQ, and both ends agree on what their QPs are to be.
func TestXRCFields(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newPair(nil)
		l, _ := p.b.e.Open(command.IB, 0)
		must := func(err error) {
			if err != nil {
				t.Fatal(err)
			}
		}
		_, err := p.b.e.Bind(l, netip.AddrPortFrom(p.b.addr, 7))
		must(err)
		must(p.b.e.Listen(l, 0))
		id, _ := p.a.e.Open(command.IB, 0)
		c := Connect{
			Remote: netip.AddrPortFrom(p.b.addr, 7), Local: p.a.addr, QPN: rapid.Uint32Range(2, 0xfffffe).Draw(t, "initiator"),
			Type: command.XRCInitiator, SRQ: rapid.Bool().Draw(t, "srq"), NoFlowControl: rapid.Bool().Draw(t, "no flow"),
			ResponderResources: rapid.Byte().Draw(t, "resources"), InitiatorDepth: rapid.Byte().Draw(t, "depth"),
			RetryCount: rapid.ByteMax(7).Draw(t, "retry"), RNRRetry: rapid.ByteMax(7).Draw(t, "rnr"),
			Private: rapid.SliceOfN(rapid.Byte(), 0, mad.REQConsumerData).Draw(t, "private"),
		}
		must(p.a.e.Connect(0, id, c))
		p.collect()
		req := p.take(0)
		b := req.d.MAD[:]
		if got := binary.BigEndian.Uint64(b[32:]); got != 0x013f0007 {
			t.Fatalf("service ID %#x, want port 7 of RDMA_PS_IB", got)
		}
		if b[67]>>1&3 != 3 || b[75]&7 != 1 {
			t.Fatalf("transport service type %d, extended %d, want 3 and 1", b[67]>>1&3, b[75]&7)
		}
		if b[59]|b[71]&7|b[74]&7|b[75]&8|b[67]&1 != 0 {
			t.Fatalf("responder resources %d, retries %d and %d, SRQ %d, flow control %d: want none, nobody sends to an initiator",
				b[59], b[71]&7, b[74]&7, b[75]>>3&1, b[67]&1)
		}
		if b[63] != c.InitiatorDepth || number(b[56:]) != c.QPN || number(b[60:])|number(b[64:]) != 0 {
			t.Fatalf("initiator depth %d, QP %#x, contexts %#x and %#x", b[63], number(b[56:]), number(b[60:]), number(b[64:]))
		}
		p.deliver(req)

		r := p.b.events()[0]
		a := Accept{QPN: rapid.Uint32Range(2, 0xfffffe).Draw(t, "target"), SRQ: rapid.Bool().Draw(t, "target's srq"),
			ResponderResources: rapid.Byte().Draw(t, "target's resources"), InitiatorDepth: rapid.Byte().Draw(t, "target's depth"),
			RNRRetry: rapid.ByteMax(7).Draw(t, "target's rnr")}
		target, err := p.b.e.Accept(0, r.ID, a)
		must(err)
		p.collect()
		rep := p.take(0)
		b = rep.d.MAD[:]
		if number(b[36:]) != 0 || number(b[40:]) != a.QPN {
			t.Fatalf("QP %#x, context %#x: want the target where the context is", number(b[36:]), number(b[40:]))
		}
		if b[49]|b[50]&1 != 0 || b[51]&0x10 == 0 {
			t.Fatalf("initiator depth %d, flow control %d, SRQ %d: want 0, 0, 1", b[49], b[50]&1, b[51]>>4&1)
		}
		if want := min(a.ResponderResources, c.InitiatorDepth); b[48] != want || b[51]>>5 != a.RNRRetry {
			t.Fatalf("responder resources %d, want %d; RNR retries %d, want %d", b[48], want, b[51]>>5, a.RNRRetry)
		}
		p.deliver(rep)

		e := p.a.events()
		if len(e) != 1 || e[0].Type != EventConnectResponse {
			t.Fatalf("the initiator's side has events %v", e)
		}
		initiator := e[0].Conn
		if err := equal(&initiator, &target); err != nil {
			t.Fatal(err)
		}
		if initiator.RetryCount != c.RetryCount || initiator.RNRRetry != a.RNRRetry {
			t.Fatalf("the initiator repeats %d and %d times, want %d, its own, and %d, the target's", initiator.RetryCount, initiator.RNRRetry,
				c.RetryCount, a.RNRRetry)
		}
		must(p.a.e.Establish(0, id, nil))
		p.flow()
		must(p.a.e.Disconnect(0, id, nil))
		p.collect()
		if got := number(p.wire[0].d.MAD[32:]); got != a.QPN {
			t.Fatalf("DREQ for QP %#x, want the target's %#x", got, a.QPN)
		}
	})
}

func number(b []byte) uint32 { return uint32(b[0])<<16 | uint32(b[1])<<8 | uint32(b[2]) }

// TestXRCRequestRoundTrip: what the decoder reads of a REQ and a REP with XRC's fields is what was encoded.
func TestXRCRequestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		req := mad.REQ{TransportType: mad.TransportExtended, ExtendedType: rapid.ByteMax(7).Draw(t, "extended"),
			SRQ: rapid.Bool().Draw(t, "srq"), MaxCMRetries: rapid.ByteMax(15).Draw(t, "retries"),
			LocalQPN: ib.QPN(rapid.Uint32Max(0xffffff).Draw(t, "qpn")), LocalEECN: rapid.Uint32Max(0xffffff).Draw(t, "eecn"),
			RemoteEECN: rapid.Uint32Max(0xffffff).Draw(t, "remote eecn")}
		if got, err := mad.ParseREQ(encoded(&req)[:]); err != nil || got != req {
			t.Fatalf("%+v became %+v, %v", req, got, err)
		}
		rep := mad.REP{LocalQPN: ib.QPN(rapid.Uint32Max(0xffffff).Draw(t, "rep qpn")), SRQ: req.SRQ, LocalEECN: req.LocalEECN}
		if got, err := mad.ParseREP(encoded(&rep)[:]); err != nil || got != rep {
			t.Fatalf("%+v became %+v, %v", rep, got, err)
		}
	})
}
