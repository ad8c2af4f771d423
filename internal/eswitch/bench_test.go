package eswitch

import (
	"testing"

	"github.com/softvpi/softvpi/wire/eth"
)

// BenchmarkForward: frames between 127 virtual functions of one port, to one each, to all, and refused. The first two are a frame
// more for each delivery.
func BenchmarkForward(b *testing.B) {
	s := New(Config{})
	address := func(n int) eth.MAC { return eth.MAC{2, 0, 0, 0, byte(n >> 8), byte(n)} }
	for n := range MostVFs {
		if err := s.Set(VF(n), Function{MACs: []eth.MAC{address(n)}, VLAN: trunk(0)}); err != nil {
			b.Fatal(err)
		}
	}
	if err := s.Set(PF, Function{MACs: []eth.MAC{address(1000)}, VLAN: AnyVLAN()}); err != nil {
		b.Fatal(err)
	}
	var unicast, all, spoofed [MostVFs][]byte
	for n := range MostVFs {
		unicast[n] = bare(address((n+1)%MostVFs), address(n), eth.TypeIPv4, make([]byte, 60)...)
		all[n] = bare(eth.Broadcast, address(n), eth.TypeIPv4, make([]byte, 60)...)
		spoofed[n] = bare(address(1000), address(n+1), eth.TypeIPv4, make([]byte, 60)...)
	}
	list := make([]Delivery, 0, mostPorts)
	for _, c := range []struct {
		name   string
		frames *[MostVFs][]byte
	}{{"unicast", &unicast}, {"broadcast", &all}, {"spoofed", &spoofed}} {
		b.Run(c.name, func(b *testing.B) {
			n, frames := 0, 0
			for b.Loop() {
				list, _ = s.Forward(VF(n), c.frames[n], list[:0])
				frames++
				if n++; n == MostVFs {
					n = 0
				}
			}
			b.ReportMetric(float64(frames)/b.Elapsed().Seconds(), "frames/s")
		})
	}
}

// BenchmarkNext: whose turn it is, of 127 functions with limits that all want to send.
func BenchmarkNext(b *testing.B) {
	var r Rates
	var want Set
	for n := range MostVFs {
		want.Add(VF(n))
		if err := r.Set(0, VF(n), 1000, 1<<30); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		p, ok, _ := r.Next(0, &want)
		if ok {
			r.Sent(0, p, 64)
		}
	}
}
