package encap

import (
	"fmt"
	"testing"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/wire/ib"
)

// TestNothingIsAllocated: the data path allocates nothing per packet, in any mode.
func TestNothingIsAllocated(t *testing.T) {
	for _, c := range []struct {
		name string
		mode Mode
		raw  bool
		r    frame.Route
	}{
		{"IPv4 datagrams", RoCEv2, false, frame.Route{Src: v4a, Dst: v4b}},
		{"IPv6 datagrams", RoCEv2, false, frame.Route{Src: v6a, Dst: v6b}},
		{"IPv4 frames", RoCEv2, true, frame.Route{Src: v4a, Dst: v4b}},
		{"IPv6 frames", RoCEv2, true, frame.Route{Src: v6a, Dst: v6b}},
		{"RoCE v1 frames", RoCEv1, true, frame.Route{Src: llb, Dst: llb}},
	} {
		caps := socket
		if c.raw {
			caps = raw
		}
		a, b := open(t, c.mode, caps, c.r.Src), open(t, c.mode, caps, c.r.Dst)
		out := make([]frame.Out, 8)
		payload := make([]byte, 1021)
		in := make([]frame.In, len(out))
		for i := range out {
			fill(&out[i], &c.r, payload)
		}
		a.Seal(out)
		for i := range in {
			in[i] = datagram(&out[i], 0) // an identification other than its place is solved for
			in[i].Raw = c.raw
		}
		batch := make([]frame.In, len(in))
		if n := testing.AllocsPerRun(100, func() {
			for i := range out {
				fill(&out[i], &c.r, payload)
			}
			a.Seal(out)
			copy(batch, in)
			if b.Open(batch) != len(batch) {
				t.Error("a packet was dropped")
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations per batch, want none", c.name, n)
		}
	}
}

var sizes = []int{0, 64, 1024, 4096}

func BenchmarkSeal(b *testing.B) {
	for _, n := range sizes {
		for _, caps := range []struct {
			name string
			caps int
		}{{"socket", 0}, {"frame", 1}} {
			b.Run(fmt.Sprintf("%s/%d", caps.name, n), func(b *testing.B) {
				e := open(b, RoCEv2, socket, v4a)
				if caps.caps == 1 {
					e = open(b, RoCEv2, raw, v4a)
				}
				r := &frame.Route{Src: v4a, Dst: v4b, SrcPort: 0xc000}
				out := make([]frame.Out, 16)
				payload := make([]byte, n)
				b.SetBytes(int64(n))
				b.ReportAllocs()
				for i := 0; i < b.N; i += len(out) {
					for j := range out {
						fill(&out[j], r, payload)
					}
					e.Seal(out)
				}
			})
		}
	}
}

// BenchmarkOpenInTurn opens packets as they come of messages, or answers, of two packets each: no two in a row are alike.
func BenchmarkOpenInTurn(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			r := &frame.Route{Src: v4a, Dst: v4b, SrcPort: 0xc000}
			out := []frame.Out{packet(r, n), packet(r, n)}
			out[0].Head[frame.HeadRoom] = byte(ib.RCSendFirst)
			out[1].Head[frame.HeadRoom] = byte(ib.RCSendLast)
			open(b, RoCEv2, socket, v4a).Seal(out)
			good := []frame.In{datagram(&out[0], 0), datagram(&out[1], 1)}
			e := open(b, RoCEv2, socket, v4b)
			in := make([]frame.In, 2)
			b.SetBytes(int64(2 * n))
			b.ReportAllocs()
			for b.Loop() {
				copy(in, good)
				if e.Open(in) != 2 {
					b.Fatal("dropped")
				}
			}
		})
	}
}

func BenchmarkOpen(b *testing.B) {
	for _, n := range sizes {
		for _, c := range []struct {
			name    string
			segment uint16
		}{{"in place", 0}, {"solved", 1}} {
			b.Run(fmt.Sprintf("%s/%d", c.name, n), func(b *testing.B) {
				r := &frame.Route{Src: v4a, Dst: v4b, SrcPort: 0xc000}
				out := []frame.Out{packet(r, n)}
				open(b, RoCEv2, socket, v4a).Seal(out)
				good := datagram(&out[0], c.segment)
				e := open(b, RoCEv2, socket, v4b)
				in := make([]frame.In, 1)
				b.SetBytes(int64(n))
				b.ReportAllocs()
				for b.Loop() {
					in[0] = good
					if e.Open(in) != 1 {
						b.Fatal("dropped")
					}
				}
			})
		}
	}
}
