package tap

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net/netip"
	"testing"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/link/ethernet"
	"github.com/softvpi/softvpi/internal/offload"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
	"github.com/softvpi/softvpi/wire/eth"
)

// segment is the payload of a segment of large frames.
const segment = 1460

var (
	farMAC = eth.MAC{2, 0, 0, 0, 9, 2}
	cut    = offload.Task{Kind: offload.TCPv4, Segment: segment, Sums: offload.MakeTransport}
	summed = offload.Task{Sums: offload.MakeTransport}
)

// tcp returns a frame with a TCP packet of n bytes of payload, whose checksum has the sum of the pseudo header.
func tcp(src, dst eth.MAC, n int, task offload.Task) frame.Out {
	var o frame.Out
	o.Reset(&frame.Route{})
	o.HeadStart, o.Task = 64, task
	h := eth.Ethernet{Dst: dst, Src: src, Type: eth.TypeIPv4}
	b := o.Head[o.HeadStart:]
	h.Put(b)
	ip := eth.IPv4(b[h.Len():][:eth.IPv4Len])
	ip.Encode(0, eth.IPv4Len+eth.TCPLen+n, 1, 64, eth.ProtocolTCP, [4]byte{10, 9, 0, 1}, [4]byte{10, 9, 0, 2})
	ip.SetChecksum()
	segment := b[h.Len()+eth.IPv4Len:]
	copy(segment, []byte{0, 80, 0, 81, 0, 0, 0, 1, 0, 0, 0, 0, 5 << 4, 0x10, 1, 0, 0, 0, 0, 0})
	from, to := netip.AddrFrom4([4]byte(ip[12:])), netip.AddrFrom4([4]byte(ip[16:]))
	binary.BigEndian.PutUint16(segment[16:], eth.PseudoSum(from, to, eth.ProtocolTCP, eth.TCPLen+n))
	o.HeadEnd = o.HeadStart + uint16(h.Len()) + eth.IPv4Len + eth.TCPLen
	for i := range n {
		o.Payload = append(o.Payload, byte(i*7))
	}
	return o
}

// largeBed is a TAP with a link at each side: at the program's, and at the system's, by its interface.
type largeBed struct {
	t         *testing.T
	near, far link.Link
}

func newLargeBed(t *testing.T) *largeBed {
	t.Helper()
	b := &largeBed{t: t}
	b.near, _ = withSystem(t)
	var err error
	b.far, err = ethernet.Open(ethernet.Config{Interface: "nic", Stations: []link.Station{{MAC: farMAC}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.far.Close() })
	return b
}

func (b *largeBed) listen(l link.Link, mac eth.MAC, large bool) {
	b.t.Helper()
	if err := l.Capabilities().Stations.Listen(mac, large); err != nil {
		b.t.Fatal(err)
	}
}

func (b *largeBed) send(from link.Link, frames ...frame.Out) {
	b.t.Helper()
	if n, err := from.Send(frames); n != len(frames) || err != nil {
		b.t.Fatalf("%d of %d sent, %v", n, len(frames), err)
	}
}

// receive returns the frames of TCP that arrive, until they have n bytes of payload; each was checked to be one of the wire's.
func (b *largeBed) receive(at link.Link, n int) (payload []byte, frames int) {
	b.t.Helper()
	in, none := make([]frame.In, 7), make([]link.Unreachable, 4)
	await.Eventually(b.t, "the frames arrive", func() bool {
		at.Errors(none)
		k, err := at.Receive(in)
		if err != nil {
			b.t.Fatal(err)
		}
		for _, p := range in[:k] {
			var h eth.Headers
			if !h.Parse(p.Data) || h.Protocol != eth.ProtocolTCP {
				continue
			}
			if p.Task.Kind == offload.Whole && h.End-h.Data > segment || p.Task.Kind != offload.Whole && p.Task != cut {
				b.t.Fatalf("%d bytes, %+v", len(p.Data), p.Task)
			}
			if s := offload.Check(&h, p.Data); p.Task.Sums&offload.MakeTransport == 0 && s != offload.GoodIP|offload.GoodTransport {
				b.t.Errorf("%d bytes: checksums %v", len(p.Data), s)
			}
			payload = append(payload, p.Data[h.Data:h.End]...)
			frames++
		}
		return len(payload) >= n
	})
	return payload, frames
}

// TestLarge: a large frame passes as it is in both directions, and one without its checksum so, to who takes such. Who does not
// gets the segments with right checksums, even if it has said so only after the system had handed it over.
func TestLarge(t *testing.T) {
	systemtest.Mark(t)
	b := newLargeBed(t)
	const n = 20000
	whole := tcp(farMAC, stationMAC, n, cut)
	for name, c := range map[string]struct{ before, after bool }{
		"taken": {true, true}, "not taken": {}, "no longer taken": {true, false},
	} {
		b.listen(b.near, stationMAC, c.before)
		b.send(b.far, whole, whole, tcp(farMAC, stationMAC, 700, summed))
		b.listen(b.near, stationMAC, c.after)
		payload, frames := b.receive(b.near, 2*n+700)
		want := 2*((n+segment-1)/segment) + 1
		if c.after {
			want = 3
		}
		if frames != want || !bytes.Equal(payload, append(append(bytes.Clone(whole.Payload), whole.Payload...), whole.Payload[:700]...)) {
			t.Errorf("%s: %d bytes in %d frames, want %d in %d", name, len(payload), frames, 2*n+700, want)
		}
	}
	for _, large := range []bool{true, false} {
		b.listen(b.far, farMAC, large)
		b.send(b.near, tcp(stationMAC, farMAC, n, cut), tcp(stationMAC, farMAC, 700, summed))
		payload, frames := b.receive(b.far, n+700)
		want := (n+segment-1)/segment + 1
		if large {
			want = 2
		}
		if frames != want || !bytes.Equal(payload[:n], whole.Payload) {
			t.Errorf("to the system, which takes large ones %v: %d bytes in %d frames, want %d in %d", large, len(payload), frames, n+700, want)
		}
	}
	if s := b.near.Stats(); s.SendErrors != 0 || s.ReceiveTruncated != 0 {
		t.Errorf("%+v", s)
	}
	b.send(b.near, frame.Out{Head: whole.Head, HeadStart: 64, HeadEnd: 64 + eth.EthernetLen, Route: whole.Route, Task: cut})
	if b.near.Stats().SendErrors != 1 {
		t.Error("a large frame without a packet is sent")
	}
	if err := errors.Join(b.near.Capabilities().Stations.Unlisten(stationMAC), b.near.Close()); err != nil {
		t.Error(err)
	}
}

// TestLarge_NoAllocation: a large frame allocates nothing on its way.
func TestLarge_NoAllocation(t *testing.T) {
	systemtest.Mark(t)
	b := newLargeBed(t)
	b.listen(b.near, stationMAC, true)
	b.listen(b.far, farMAC, true)
	there, back := []frame.Out{tcp(stationMAC, farMAC, 20000, cut)}, []frame.Out{tcp(farMAC, stationMAC, 20000, cut)}
	in := make([]frame.In, 8)
	if n := testing.AllocsPerRun(100, func() {
		_, _ = b.near.Send(there)
		_, _ = b.far.Send(back)
		_, _ = b.near.Receive(in)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
