package frame

import (
	"testing"
	"unsafe"

	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/ib"
)

// TestOut_RoomForATunnel: the headers of a packet in a VXLAN tunnel fit before the BTH (RFC 7348), and the longest ones
// behind it.
func TestOut_RoomForATunnel(t *testing.T) {
	const frames = eth.EthernetLen + eth.VLANLen + eth.IPv6Len + eth.UDPLen
	const vxlan = 8
	if HeadRoom < 160 || HeadRoom < frames+vxlan+frames {
		t.Errorf("%d bytes before the BTH, want 160 or more and room for %d of headers", HeadRoom, frames+vxlan+frames)
	}
	const xrceth, atomic = 4, 28
	if n := len(Out{}.Head) - HeadRoom; n < ib.BTHLen+xrceth+atomic {
		t.Errorf("%d bytes from the BTH on, want %d", n, ib.BTHLen+xrceth+atomic)
	}
}

// TestOut_TwoLinesWithoutOuterHeaders: who writes no outer headers touches two cache lines of a packet, wherever it is in
// a batch.
func TestOut_TwoLinesWithoutOuterHeaders(t *testing.T) {
	const line = 64
	var o Out
	if HeadRoom%line != 0 || unsafe.Sizeof(o)%line != 0 || unsafe.Sizeof(o)-HeadRoom > 2*line || unsafe.Offsetof(o.Head) != 0 {
		t.Errorf("the BTH is at %d of %d bytes", unsafe.Offsetof(o.Head)+HeadRoom, unsafe.Sizeof(o))
	}
}

// TestSizes: packets take whole cache lines of the arrays of the loop, which is what their fields are arranged for.
func TestSizes(t *testing.T) {
	if out, in := unsafe.Sizeof(Out{}), unsafe.Sizeof(In{}); out != 5*64 || in != 2*64 {
		t.Errorf("an Out has %d bytes and an In %d, want 320 and 128", out, in)
	}
}
