package port

import (
	"bytes"
	"testing"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/wire/eth"
)

// TestAddTag: a frame gets the VLAN with the priority that is set for it, one that says a priority itself keeps that, also if it is 0, and
// one that is in a VLAN already gets none (WinOF 5.50, 4.1.6.5; IEEE 802.1Q, 6.9).
func TestAddTag(t *testing.T) {
	const tci = 3<<13 | 100
	bare := eth.Ethernet{Dst: eth.MAC{2, 0, 0, 0, 0, 1}, Src: eth.MAC{2, 0, 0, 0, 0, 2}, Type: eth.TypeIPv4}
	tagged := func(tci uint16) eth.Ethernet { h := bare; h.Tagged, h.TCI = true, tci; return h }
	for _, c := range []struct {
		name string
		sent eth.Ethernet
		want uint16 // 0: none can be given
	}{
		{"without a tag", bare, tci}, {"with a priority", tagged(5 << 13), 5<<13 | 100}, {"with another's bits", tagged(4 << 13), 4<<13 | 100},
		{"with priority 0", tagged(0), 100}, {"in a VLAN", tagged(7), 0},
	} {
		const room = 32
		o := frame.Out{HeadStart: room}
		o.HeadEnd = room + uint16(copy(o.Head[room:], c.sent.Append(nil)))
		if ok := addTag(&o, tci); ok != (c.want != 0) {
			t.Errorf("%s: given: %t", c.name, ok)
			continue
		}
		want := tagged(c.want)
		if c.want != 0 && !bytes.Equal(o.Head[o.HeadStart:o.HeadEnd], want.Append(nil)) {
			t.Errorf("%s: %x, want %x", c.name, o.Head[o.HeadStart:o.HeadEnd], want.Append(nil))
		}
	}
}
