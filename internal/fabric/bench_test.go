package fabric

import (
	"fmt"
	"testing"

	"github.com/softvpi/softvpi/internal/fabric/topology"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// BenchmarkSend sends a Get(PortInfo) along the longest directed route of a fat tree with 1,024 hosts, there and
// back.
func BenchmarkSend(b *testing.B) {
	top, err := topology.FatTree(topology.FatTreeShape{Radix: 16, Levels: 3}, topology.Rate{})
	if err != nil {
		b.Fatal(err)
	}
	f := New(top, nil)
	s := mad.NewSMP(mad.MethodGet, mad.AttrPortInfo, 0, 1)
	if err := s.Direct([]uint8{1, 9, 9, 2, 1, 1}); err != nil {
		b.Fatal(err)
	}
	var request [mad.Len]byte
	s.Append(request[:0])
	var p Packet
	for b.Loop() {
		p = Packet{SLID: ib.LIDPermissive, DLID: ib.LIDPermissive, MAD: request}
		if o := f.Send(1, Place{0, 1}, &p); o.Result != Answered {
			b.Fatalf("the request had the outcome %+v, want an answer", o)
		}
	}
}

// BenchmarkData carries a packet of 4 KB between two adapters at one switch, with and without timing.
func BenchmarkData(b *testing.B) {
	for _, untimed := range []bool{false, true} {
		b.Run(fmt.Sprintf("untimed=%v", untimed), func(b *testing.B) {
			f := star(b, 2, topology.Rate{})
			if untimed {
				f.Untimed()
			}
			packet, in := frame(1, 2, 0, ib.PKeyDefault, 4096, 0), make([]*Parcel, 1)
			b.SetBytes(int64(len(packet)))
			for b.Loop() {
				if ok, err := f.Transmit(f.traps.now, Place{0, 1}, packet, nil, nil); !ok || err != nil {
					b.Fatalf("taken %v, error %v", ok, err)
				}
				f.Release(f.traps.now, in[:f.Collect(settle(f), Place{1, 1}, in)])
			}
		})
	}
}
