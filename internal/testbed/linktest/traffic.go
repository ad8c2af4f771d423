// Package linktest has what tests of links share: packets to send, ways to receive them, and network namespaces to do so
// across.
package linktest

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/wait"
	"github.com/softvpi/softvpi/wire/ib"
)

// Route returns a route of a link to an address and UDP port, which it has prepared.
func Route(t testing.TB, from link.Link, at netip.AddrPort) *frame.Route {
	t.Helper()
	r := &frame.Route{Dst: at.Addr(), DstPort: at.Port()}
	if err := from.Prepare(r); err != nil {
		t.Fatal(err)
	}
	return r
}

// Packets returns frames to a route that carry the payloads behind a BTH whose PSN counts from 0, in bursts as far as
// the link's capabilities and equal lengths allow.
func Packets(r *frame.Route, caps link.Capabilities, payloads ...[]byte) []frame.Out {
	frames := make([]frame.Out, len(payloads))
	burst := 0
	for i, p := range payloads {
		o := &frames[i]
		o.Reset(r)
		bth := o.Head[frame.HeadRoom : frame.HeadRoom+ib.BTHLen]
		bth[7] = 0x2a // destination QP
		binary.BigEndian.PutUint32(bth[8:], uint32(i))
		o.HeadEnd += ib.BTHLen
		o.Payload = p
		o.TailLen = ib.ICRCLen
		binary.LittleEndian.PutUint32(o.Tail[:], 0xdecade00+uint32(i))
		if i > 0 && frames[i-1].Len() == frames[burst].Len() && o.Len() <= frames[burst].Len() &&
			i-burst < caps.MaxSegments && (i-burst+1)*frames[burst].Len() <= caps.MaxBurst {
			o.Segment = uint16(i - burst)
		} else {
			burst = i
		}
	}
	return frames
}

// Numbered returns packets with payloads of the given lengths, whose PSNs count up from first.
func Numbered(r *frame.Route, caps link.Capabilities, first uint32, lengths ...int) []frame.Out {
	payloads := make([][]byte, len(lengths))
	for i, n := range lengths {
		payloads[i] = make([]byte, n)
	}
	frames := Packets(r, caps, payloads...)
	for i := range frames {
		binary.BigEndian.PutUint32(frames[i].Head[frame.HeadRoom+8:], first+uint32(i))
	}
	return frames
}

// Bytes returns what must arrive for a frame.
func Bytes(o *frame.Out) []byte {
	b := append([]byte{}, o.Head[o.HeadStart:o.HeadEnd]...)
	b = append(b, o.Payload...)
	return append(b, o.Tail[:o.TailLen]...)
}

// Payloads returns n payloads of the given length that differ from each other.
func Payloads(n, length int) [][]byte {
	all := make([][]byte, n)
	for i := range all {
		all[i] = make([]byte, length)
		for k := range all[i] {
			all[i][k] = byte(i*31 + k*7)
		}
	}
	return all
}

// SendAll sends frames until all are taken.
func SendAll(t testing.TB, l link.Link, frames []frame.Out) {
	t.Helper()
	deadline := time.Now().Add(await.Limit)
	for len(frames) > 0 {
		n, err := l.Send(frames)
		if err != nil {
			t.Fatal(err)
		}
		frames = frames[n:]
		if time.Now().After(deadline) {
			t.Fatal("the link took no more frames")
		}
	}
}

// Received is a copy of a received packet.
type Received struct {
	Data []byte
	In   frame.In
}

// PSN is the packet's number.
func (r *Received) PSN() uint32 { return binary.BigEndian.Uint32(r.Data[8:]) }

// ReceiveN receives n packets.
func ReceiveN(t testing.TB, l link.Link, n int) []Received {
	t.Helper()
	var all []Received
	in := make([]frame.In, 7)
	deadline := time.Now().Add(await.Limit)
	for len(all) < n {
		k, err := l.Receive(in)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range in[:k] {
			all = append(all, Received{append([]byte{}, p.Data...), p})
		}
		if k == 0 {
			wait.YieldGoroutines()
			if time.Now().After(deadline) {
				t.Fatalf("%d of %d packets arrived; stats %+v", len(all), n, l.Stats())
			}
		}
	}
	return all
}

// ReceiveSome receives once, drops the packets and returns their number.
func ReceiveSome(t testing.TB, l link.Link) int {
	t.Helper()
	n, err := l.Receive(make([]frame.In, 64))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Drain receives until nothing has come for a while.
func Drain(t testing.TB, l link.Link) {
	t.Helper()
	for quiet := 0; quiet < 20; quiet++ {
		if ReceiveSome(t, l) > 0 {
			quiet = 0
		}
		time.Sleep(time.Millisecond)
	}
}

// Tend does what the owner of a link does every few milliseconds.
func Tend(l link.Link) { l.Errors(make([]link.Unreachable, 4)) }
