package encap

import (
	"bytes"
	"testing"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/wire/ib"
	"pgregory.net/rapid"
)

// A packet whose payload was received apart passes the check of the ICRC, and fails it, as
// the same packet in one piece does.
func TestPayloadReceivedApart(t *testing.T) {
	for _, v := range []struct {
		name  string
		route *frame.Route
	}{
		{"IPv4", &frame.Route{Src: v4a, Dst: v4b, SrcPort: 50000, DstPort: 4791}},
		{"IPv6", &frame.Route{Src: v6a, Dst: v6b, SrcPort: 50000, DstPort: 4791}},
	} {
		t.Run(v.name, func(t *testing.T) {
			from, to := open(t, RoCEv2, socket, v.route.Src), open(t, RoCEv2, socket, v.route.Dst)
			rapid.Check(t, func(t *rapid.T) {
				payload := bytes.Repeat(rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "payload"), rapid.IntRange(1, 1100).Draw(t, "words"))
				var o frame.Out
				fill(&o, v.route, payload)
				sealed := []frame.Out{o}
				from.Seal(sealed)
				whole := datagram(&sealed[0], uint16(rapid.IntRange(0, 1).Draw(t, "segment")))
				if rapid.Bool().Draw(t, "corrupt") {
					at := rapid.IntRange(ib.BTHLen, len(whole.Data)-1).Draw(t, "at")
					whole.Data[at] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
				}
				apart := whole
				end := ib.BTHLen + len(payload)
				apart.Data = append(bytes.Clone(whole.Data[:ib.BTHLen]), whole.Data[end:]...)
				apart.Payload = bytes.Clone(whole.Data[ib.BTHLen:end])
				a, b := []frame.In{whole}, []frame.In{apart}
				before := to.Counters()
				na := to.Open(a)
				middle := to.Counters()
				if nb := to.Open(b); nb != na {
					t.Fatalf("%d of the packet in one piece, %d apart", na, nb)
				}
				after := to.Counters()
				if middle.ICRCIDInferred-before.ICRCIDInferred != after.ICRCIDInferred-middle.ICRCIDInferred ||
					middle.ICRCErrors-before.ICRCErrors != after.ICRCErrors-middle.ICRCErrors {
					t.Fatalf("counted %+v, %+v and %+v", before, middle, after)
				}
				if na == 1 && (!bytes.Equal(b[0].Data, a[0].Data[:ib.BTHLen]) || !bytes.Equal(b[0].Payload, a[0].Data[ib.BTHLen:])) {
					t.Fatal("the packets differ")
				}
			})
		})
	}
}
