package encap

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/wire/ib"
	"pgregory.net/rapid"
)

// TestOpenNext: packets that are next are accepted or refused as they are without being next, and their payloads are
// copied to their places one behind the other. Other packets stay as they are, and nothing else is written to.
func TestOpenNext(t *testing.T) {
	for _, v := range []struct {
		name  string
		route *frame.Route
	}{
		{"IPv4", &frame.Route{Src: v4a, Dst: v4b, SrcPort: 50000, DstPort: 4791}},
		{"IPv6", &frame.Route{Src: v6a, Dst: v6b, SrcPort: 50000, DstPort: 4791}},
	} {
		t.Run(v.name, func(t *testing.T) {
			placed, payloadBefore := uint64(0), []byte("before")
			from, to, plain := open(t, RoCEv2, socket, v.route.Src), open(t, RoCEv2, socket, v.route.Dst),
				open(t, RoCEv2, socket, v.route.Dst)
			rapid.Check(t, func(t *rapid.T) {
				size := rapid.SampledFrom([]int{256, 1024, 2048}).Draw(t, "size")
				first := ib.PSN(rapid.SampledFrom([]uint32{0, 1000, 0xfffffd}).Draw(t, "first PSN"))
				var a, b []frame.In
				for i := range rapid.IntRange(1, 12).Draw(t, "packets") {
					p := middleOf(t, from, v.route, size, first.Add(uint32(i)))
					a, b = append(a, p), append(b, p)
					b[i].Data = bytes.Clone(p.Data)
					a[i].Payload = payloadBefore // left by a packet that was at this place of the batch
				}
				places := rapid.IntRange(1, 14).Draw(t, "places")
				memory := bytes.Repeat([]byte{0x55}, (places+1)*size)
				next := frame.Next{PSN: first, Src: v.route.Src, Size: size, Memory: memory[: places*size : places*size]}
				next.Head = binary.NativeEndian.Uint64(a[0].Data)
				nb := plain.Open(b)
				if na := to.OpenNext(a, &next); na != nb {
					t.Fatalf("%d packets taken, %d where nothing is next", na, nb)
				}
				want, turn := to.Counters(), first
				placed = want.Placed
				if want.Placed = 0; want != plain.Counters() {
					t.Fatalf("counted %+v, and %+v where nothing is next", want, plain.Counters())
				}
				for i := range a[:nb] {
					payload := a[i].Payload
					if payload == nil {
						payload = a[i].Data[ib.BTHLen:]
					} else if at := int(ib.BTH(a[i].Data[:ib.BTHLen]).PSN().Diff(first)) * size; len(a[i].Data) != ib.BTHLen ||
						&payload[0] != &memory[at] || turn.After(first.Add(uint32(at/size))) {
						t.Fatalf("packet %d is not in its place", i)
					}
					if !bytes.Equal(a[i].Data[:ib.BTHLen], b[i].Data[:ib.BTHLen]) || !bytes.Equal(payload, b[i].Data[ib.BTHLen:]) {
						t.Fatalf("packet %d differs", i)
					}
				}
				if len(bytes.Trim(memory[places*size:], "\x55")) != 0 {
					t.Fatal("something was written behind the places")
				}
			})
			if placed == 0 {
				t.Error("no payload was copied to its place")
			}
		})
	}
}

// middleOf returns a packet in the middle of a write, most likely a correct one.
func middleOf(t *rapid.T, from *Encap, route *frame.Route, size int, psn ib.PSN) frame.In {
	payload := bytes.Repeat(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "payload"), size/16)
	op, qpn, ask, cut := ib.RCWriteMiddle, ib.QPN(0x2a), rapid.Bool().Draw(t, "asks"), 0
	kind := rapid.IntRange(0, 11).Draw(t, "kind")
	switch kind {
	case 0:
		op = ib.RCSendMiddle
	case 1:
		qpn = 0x2b
	case 2:
		psn = psn.Add(uint32(rapid.IntRange(0, 5).Draw(t, "ahead")))
	case 3:
		cut = size / 2
	}
	var o frame.Out
	fill(&o, route, payload[cut:])
	ib.BTH(o.Head[frame.HeadRoom:frame.HeadRoom+ib.BTHLen]).Encode(op, false, ask, 0, ib.PKeyDefault, qpn, psn)
	sealed := []frame.Out{o}
	from.Seal(sealed)
	p := datagram(&sealed[0], uint16(rapid.IntRange(0, 1).Draw(t, "segment")))
	if kind == 4 {
		at := rapid.IntRange(ib.BTHLen, len(p.Data)-1).Draw(t, "at")
		p.Data[at] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
	}
	return p
}
