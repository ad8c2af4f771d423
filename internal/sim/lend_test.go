package sim

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/wire/ib"
)

// writer sends one packet with a payload and a pad, and keeps what it receives.
type writer struct {
	route   frame.Route
	op      ib.Opcode
	payload []byte
	sent    bool
	data    []byte
	apart   bool // the payload arrived where it was
}

func (w *writer) Receive(_ clock.Time, in []frame.In) {
	w.data = append(bytes.Clone(in[0].Data[:ib.BTHLen]), in[0].Payload...)
	w.data = append(w.data, in[0].Data[ib.BTHLen:]...)
	w.apart = in[0].Payload != nil
}

func (w *writer) Transmit(_ clock.Time, out []frame.Out) int {
	if w.payload == nil || w.sent {
		return 0
	}
	w.sent = true
	out[0].Reset(&w.route)
	out[0].Head[frame.HeadRoom] = byte(w.op)
	out[0].HeadEnd = frame.HeadRoom + ib.BTHLen
	out[0].Payload, out[0].Pad = w.payload, uint8(-len(w.payload)&3)
	return 1
}

func (w *writer) Advance(clock.Time)   {}
func (w *writer) Deadline() clock.Time { return clock.Never }

// TestLends_OnlyWhatMayStay: a payload that changes on its way arrives as it was sent, unless its port lends payloads:
// then it arrives from where it is, except where it fits into the packet, in datagrams, and if somebody looks at packets.
func TestLends_OnlyWhatMayStay(t *testing.T) {
	for _, c := range []struct {
		name   string
		lends  bool
		op     ib.Opcode
		length int
		tap    bool
		apart  bool
	}{
		{"copied", false, ib.RCWriteMiddle, 1022, false, false},
		{"lent", true, ib.RCWriteMiddle, 1022, false, true},
		{"short", true, ib.RCWriteMiddle, 30, false, false},
		{"datagram", true, ib.UDSendOnly, 1022, false, false},
		{"tapped", true, ib.RCWriteMiddle, 1022, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := New(1)
			n.Default.Delay = time.Microsecond
			a, b := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
			from := &writer{route: frame.Route{Src: a, Dst: b}, op: c.op, payload: bytes.Repeat([]byte{1}, c.length)}
			to := &writer{}
			n.Add(a, from).Lends = c.lends
			n.Add(b, to)
			if c.tap {
				n.Tap = func(_ clock.Time, _, _ *Port, packet []byte) {
					if want := ib.BTHLen + (c.length+3)&^3; len(packet) != want {
						t.Errorf("a packet of %d bytes is seen, want %d", len(packet), want)
					}
				}
			}
			n.Refresh()
			for _, p := range n.ports {
				p.Wake()
			}
			n.Step(clock.Never - 1)
			for i := range from.payload {
				from.payload[i] = 2
			}
			n.Run(clock.Never-1, nil)
			value := byte(1)
			if c.apart {
				value = 2
			}
			want := append([]byte{byte(c.op)}, make([]byte, ib.BTHLen-1)...)
			want = append(want, bytes.Repeat([]byte{value}, c.length)...)
			want = append(want, make([]byte, -c.length&3)...)
			if to.apart != c.apart || !bytes.Equal(to.data, want) {
				t.Errorf("payload apart: %v, want %v; %d bytes arrive, want %d", to.apart, c.apart, len(to.data), len(want))
			}
		})
	}
}
