package link

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/wire/ib"
	"pgregory.net/rapid"
)

// sealed returns an IPv4 packet whose ICRC is computed for the identification id.
func sealed(route *frame.Route, payload []byte, id uint16) frame.Out {
	var o frame.Out
	o.Reset(route)
	bth := o.Head[frame.HeadRoom : frame.HeadRoom+12]
	for i := range bth {
		bth[i] = byte(i * 17)
	}
	o.HeadEnd += 12
	o.Payload = payload
	o.Pad = uint8(-len(payload) & 3)
	o.TailLen = o.Pad + 4
	o.Segment = id
	binary.LittleEndian.PutUint32(o.Tail[o.Pad:], icrcOf(&o, id))
	return o
}

func icrcOf(o *frame.Out, id uint16) uint32 {
	var ip [20]byte
	ip[0] = 0x45
	binary.BigEndian.PutUint16(ip[2:], uint16(28+o.Len()))
	binary.BigEndian.PutUint16(ip[4:], id)
	ip[6] = 0x40
	ip[9] = 17
	src, dst := o.Route.Src.As4(), o.Route.Dst.As4()
	copy(ip[12:], src[:])
	copy(ip[16:], dst[:])
	var udp [8]byte
	binary.BigEndian.PutUint16(udp[0:], o.Route.SrcPort)
	binary.BigEndian.PutUint16(udp[2:], o.Route.DstPort)
	binary.BigEndian.PutUint16(udp[4:], uint16(8+o.Len()))
	var s ib.ICRCScratch
	crc := ib.ICRCSeedIPv4(&s, ip[:], udp[:], o.Head[frame.HeadRoom:frame.HeadRoom+12])
	crc = ib.ICRCUpdate(crc, o.Payload)
	return ib.ICRCUpdate(crc, o.Tail[:o.Pad])
}

// TestSingleRenumbersTheICRC: a segment that is sent as a packet of its own gets identification 0 and an ICRC to
// match (IBA annex A17.3.3: the ICRC covers the IPv4 identification).
func TestSingleRenumbersTheICRC(t *testing.T) {
	route := &frame.Route{Src: netip.MustParseAddr("10.1.2.3"), Dst: netip.MustParseAddr("10.4.5.6"), SrcPort: 50000, DstPort: 4791}
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.Uint16Range(0, 63).Draw(t, "segment")
		payload := rapid.SliceOfN(rapid.Byte(), 0, 5000).Draw(t, "payload")
		o := sealed(route, payload, id)
		Single(&o, true)
		if o.Segment != 0 {
			t.Fatalf("the segment number is %d, want 0", o.Segment)
		}
		want := sealed(route, payload, 0)
		if o.Tail != want.Tail {
			t.Fatalf("ICRC %x, want %x", o.Tail, want.Tail)
		}
	})
}

// TestSingleLeavesOtherICRCs: Single leaves the ICRC alone over IPv6, which has no identification, and on links that
// do not number segments.
func TestSingleLeavesOtherICRCs(t *testing.T) {
	v6 := &frame.Route{Dst: netip.IPv6Loopback()}
	v4 := &frame.Route{Src: netip.MustParseAddr("10.1.2.3"), Dst: netip.MustParseAddr("10.4.5.6")}
	for _, c := range []struct {
		name  string
		route *frame.Route
		ids   bool
	}{{"IPv6", v6, true}, {"no identifications", v4, false}} {
		var o frame.Out
		o.Reset(c.route)
		o.Segment, o.TailLen = 5, 4
		Single(&o, c.ids)
		if o.Segment != 0 || o.Tail != [8]byte{} {
			t.Errorf("%s: segment %d, ICRC %x", c.name, o.Segment, o.Tail)
		}
	}
}
