package capture

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/offload"
	"github.com/softvpi/softvpi/wire/eth"
)

// wholeFrames is a link of whole frames.
type wholeFrames struct{ link.Link }

func (wholeFrames) Capabilities() link.Capabilities { return link.Capabilities{Raw: true, MTU: 1500} }

// TestShow_Unfinished: a large frame that was handed out before the capture began, or one without its checksum, is shown as on a
// wire: cut, with right checksums.
func TestShow_Unfinished(t *testing.T) {
	const payload = 3000
	var o frame.Out
	o.Reset(&frame.Route{})
	h := eth.Ethernet{Dst: eth.MAC{2, 5: 1}, Src: eth.MAC{2, 5: 2}, Type: eth.TypeIPv4}
	b := h.Append(nil)
	ip := make([]byte, eth.IPv4Len+eth.TCPLen)
	eth.IPv4(ip).Encode(0, len(ip)+payload, 9, 64, eth.ProtocolTCP, [4]byte{192, 0, 2, 1}, [4]byte{192, 0, 2, 2})
	ip[eth.IPv4Len+12] = 5 << 4
	b = append(b, ip...)
	o.HeadStart, o.HeadEnd = 64, 64+uint16(len(b))
	copy(o.Head[64:], b)
	o.Payload = make([]byte, payload)
	for i := range o.Payload {
		o.Payload[i] = byte(i)
	}
	o.Task = offload.Task{Kind: offload.TCPv4, Segment: 1460, Sums: offload.MakeTransport}
	short := o
	eth.IPv4(short.Head[64+eth.EthernetLen:]).SetTotalLen(len(ip) + 100)
	eth.IPv4(short.Head[64+eth.EthernetLen:]).SetChecksum()
	short.Payload, short.Task = o.Payload[:100], offload.Task{Sums: offload.MakeTransport}

	l := New(wholeFrames{}, netip.MustParseAddr("192.0.2.1"), eth.PortRoCEv2, time.Now)
	tap := newTap(t, 0, 0)
	l.SetTaps([]*Tap{tap})
	l.Show([]frame.Out{o, short})
	var p Packet
	for i, want := range []struct{ length, sequence int }{{1460, 0}, {1460, 1460}, {80, 2920}, {100, 0}} {
		var e eth.Headers
		if !tap.Next(&p) || !p.Outbound || !e.Parse(p.Data) {
			t.Fatalf("frame %d is not shown", i)
		}
		sequence := binary.BigEndian.Uint32(p.Data[e.Transport+4:])
		if len(p.Data)-e.Data != want.length || int(sequence) != want.sequence ||
			offload.Check(&e, p.Data) != offload.GoodIP|offload.GoodTransport {
			t.Errorf("frame %d has %d bytes from %d on, sums %b", i, len(p.Data)-e.Data, sequence, offload.Check(&e, p.Data))
		}
	}
	if tap.Next(&p) {
		t.Error("another frame is shown")
	}
}
