package ethernet

import (
	"bytes"
	"testing"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/offload"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
	"github.com/softvpi/softvpi/wire/eth"
)

// largeTCP returns a frame with a TCP packet of n bytes of payload, whose checksum has the sum of the pseudo header.
func largeTCP(src, dst eth.MAC, n int) (o frame.Out, whole []byte) {
	o.Reset(&frame.Route{SrcMAC: src})
	o.HeadStart = 64
	h := eth.Ethernet{Dst: dst, Src: src, Type: eth.TypeIPv4}
	b := o.Head[o.HeadStart:]
	h.Put(b)
	ip := eth.IPv4(b[h.Len():][:eth.IPv4Len])
	ip.Encode(0, eth.IPv4Len+eth.TCPLen+n, 1, 64, eth.ProtocolTCP, [4]byte{10, 9, 0, 1}, [4]byte{10, 9, 0, 2})
	ip.SetChecksum()
	tcp := b[h.Len()+eth.IPv4Len:]
	copy(tcp, []byte{0, 80, 0, 81, 0, 0, 0, 1, 0, 0, 0, 0, 5 << 4, 0x10, 1, 0, 0, 0, 0, 0})
	o.HeadEnd = o.HeadStart + uint16(h.Len()) + eth.IPv4Len + eth.TCPLen
	for i := range n {
		o.Payload = append(o.Payload, byte(i*7))
	}
	return o, append(bytes.Clone(o.Head[o.HeadStart:o.HeadEnd]), o.Payload...)
}

// TestSend_Large: a frame of many segments goes to another interface as one, and so does one without its checksum; who does
// not take such gets the segments, with right checksums.
func TestSend_Large(t *testing.T) {
	systemtest.Mark(t)
	onVeth(t)
	a, b := mustOpen(t, Config{Interface: "near"}, at(1, 0)), mustOpen(t, Config{Interface: "far"}, at(2, 0))
	o, whole := largeTCP(at(1, 0).MAC, at(2, 0).MAC, 20000)
	task := offload.Task{Kind: offload.TCPv4, Segment: 1460, Sums: offload.MakeTransport}
	short, plain := largeTCP(at(1, 0).MAC, at(2, 0).MAC, 700)
	in, none := make([]frame.In, 64), make([]link.Unreachable, 4)
	// exchange sends the frames and returns those that arrive, until there are n.
	exchange := func(n int, frames ...frame.Out) (got []frame.In) {
		t.Helper()
		if k, err := a.Send(frames); k != len(frames) || err != nil {
			t.Fatalf("%d of %d sent, %v", k, len(frames), err)
		}
		await.Eventually(t, "the frames arrive", func() bool {
			b.Errors(none)
			k, err := b.Receive(in)
			must(t, err)
			for _, p := range in[:k] {
				if eth.MAC(p.Data[6:]) == at(1, 0).MAC && eth.MAC(p.Data) == at(2, 0).MAC {
					p.Data = bytes.Clone(p.Data)
					got = append(got, p)
				}
			}
			return len(got) >= n
		})
		return got
	}
	must(t, b.Listen(at(2, 0).MAC, true))
	if got := exchange(1, frame.Out{Head: short.Head, HeadStart: short.HeadStart, HeadEnd: short.HeadEnd, Route: short.Route,
		Payload: short.Payload, Task: offload.Task{Sums: offload.MakeTransport}}); !bytes.Equal(got[0].Data, plainOf(got[0], plain)) ||
		got[0].Task.Sums&offload.MakeTransport == 0 {
		t.Errorf("a frame without checksum arrives as %+v", got[0].Task)
	}
	o.Task = task
	before := a.Stats()
	got := exchange(2, short, o)
	last := got[len(got)-1]
	if last.Task.Kind != offload.TCPv4 || last.Task.Segment != 1460 || len(last.Data) != len(whole) ||
		!bytes.Equal(last.Data[54:], whole[54:]) {
		t.Errorf("it arrives as %d bytes with %+v, want %d", len(last.Data), last.Task, len(whole))
	}
	// One of several segments counts as those, each with its headers.
	const segments, headers = (20000 + 1459) / 1460, 54
	if s := a.Stats(); s.SentPackets != before.SentPackets+1+segments || s.SendErrors != 0 ||
		s.SentBytes != before.SentBytes+uint64(len(plain)+len(whole)+(segments-1)*headers) {
		t.Errorf("%+v", s)
	}
	must(t, b.Listen(at(2, 0).MAC, false))
	cut := exchange((20000+1459)/1460, o)
	var joined []byte
	for i := range cut {
		var h eth.Headers
		h.Parse(cut[i].Data)
		sums := offload.Check(&h, cut[i].Data)
		if cut[i].Task != (offload.Task{}) || sums != offload.GoodIP|offload.GoodTransport || len(cut[i].Data) > 1514 {
			t.Fatalf("segment %d of %d bytes: %+v", i, len(cut[i].Data), cut[i].Task)
		}
		joined = append(joined, cut[i].Data[h.Data:h.End]...)
	}
	if !bytes.Equal(joined, whole[54:]) {
		t.Error("the segments are not what was sent")
	}
}

// plainOf returns a frame with the checksum of another, which may have been made on the way.
func plainOf(p frame.In, f []byte) []byte {
	f = bytes.Clone(f)
	copy(f[50:52], p.Data[50:52])
	return f
}
