package encap

import (
	"net/netip"
	"testing"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/wire/ib"
	"pgregory.net/rapid"
)

// kind is packets of one stream.
type kind struct {
	flow       flow
	head, rest []byte
}

// TestStreamsHaveTheICRCOfTheirPacketsAlone: what is remembered of streams changes no ICRC. Packets of few flows,
// lengths and BTHs make streams return and replace each other, and each must have the ICRC that it has alone.
func TestStreamsHaveTheICRCOfTheirPacketsAlone(t *testing.T) {
	flows := []flow{
		{v4a, v4b, 0xc000, 4791}, {v4b, v4a, 0xc000, 4791}, {v4a, v4b, 0xc001, 4791}, {v4a, v4b, 0xc000, 1021},
		{v6a, v6b, 0xc000, 4791}, {netip.MustParseAddr("fe80::1"), v6b, 0xc000, 4791},
	}
	whole := func(e *Encap, f *flow, length int, id uint16, head, rest []byte) uint32 {
		crc, n := e.begin(f, length, id, head, rest)
		if n < len(head) {
			crc, n = ib.ICRCUpdate(crc, head[n:]), len(head)
		}
		return ib.ICRCUpdate(crc, rest[n-len(head):])
	}
	fresh := func() *Encap { return open(t, RoCEv2, socket, v4a) }
	rapid.Check(t, func(t *rapid.T) {
		e := fresh()
		kinds := make([]kind, rapid.IntRange(1, 6).Draw(t, "kinds"))
		for i := range kinds {
			k := &kinds[i]
			k.flow = rapid.SampledFrom(flows).Draw(t, "flow")
			k.head = make([]byte, rapid.SampledFrom([]int{ib.BTHLen, ib.BTHLen + ib.RETHLen}).Draw(t, "head"))
			k.head[0] = byte(rapid.SampledFrom([]int{6, 7, 8, 10}).Draw(t, "opcode"))
			k.head[7] = byte(rapid.IntRange(0, 40).Draw(t, "queue pair"))
			k.rest = make([]byte, rapid.SampledFrom([]int{0, 4, 64, 300, 1024}).Draw(t, "payload"))
		}
		for range rapid.IntRange(1, 40).Draw(t, "packets") {
			k := &kinds[rapid.IntRange(0, len(kinds)-1).Draw(t, "kind")]
			f, head, rest := k.flow, k.head, k.rest
			head[bthECN] = byte(rapid.SampledFrom([]int{0, 0x40, 0x80}).Draw(t, "congestion"))
			head[11] = rapid.Byte().Draw(t, "PSN")
			id := uint16(rapid.SampledFrom([]int{0, 1, 63, 64, 0xffff}).Draw(t, "identification"))
			length := len(head) + len(rest) + ib.ICRCLen
			if got, want := whole(e, &f, length, id, head, rest), whole(fresh(), &f, length, id, head, rest); got != want {
				t.Fatalf("%#x after other packets, %#x alone", got, want)
			}
		}
	})
}

// TestAddressesOfTheStreamsGo: that packets of a stream are for this port counts as long as it has the address.
func TestAddressesOfTheStreamsGo(t *testing.T) {
	r := &frame.Route{Src: v4a, Dst: v4b, SrcPort: 0xc000}
	a, b := open(t, RoCEv2, socket, v4a), open(t, RoCEv2, socket, v4b)
	arrives := func() bool {
		out := []frame.Out{packet(r, 8)}
		a.Seal(out)
		return b.Open([]frame.In{datagram(&out[0], 0)}) == 1
	}
	for i := range 4 {
		if !arrives() {
			t.Fatalf("packet %d is dropped", i)
		}
	}
	b.SetAddrs([]netip.Addr{v4a})
	if arrives() || b.Counters().NotForUs != 1 {
		t.Errorf("a packet to an address that is gone: %+v", b.Counters())
	}
	b.SetAddrs([]netip.Addr{v4b})
	if !arrives() {
		t.Errorf("a packet to an address that is back is dropped: %+v", b.Counters())
	}
}
