package vswitch

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/softvpi/softvpi/internal/fabric/bridge"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/offload"
	"github.com/softvpi/softvpi/wire/eth"
)

func mac(n byte) [6]byte { return [6]byte{2, 0, 0, 0, 0, n} }

// ports returns ports of a switch, and how often each was notified.
func ports(t testing.TB, configs ...bridge.PortConfig) (p []*Port, notified []int) {
	t.Helper()
	s, err := New(bridge.Config{})
	if err != nil {
		t.Fatal(err)
	}
	notified = make([]int, len(configs))
	for i, c := range configs {
		x, err := s.Open(PortConfig{PortConfig: c, Notify: func() { notified[i]++ }})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = x.Close() })
		p = append(p, x)
	}
	return p, notified
}

// out is a frame of an Ethernet function.
func out(b []byte, task offload.Task) []frame.Out {
	o := make([]frame.Out, 1)
	o[0].Reset(&frame.Route{})
	o[0].HeadStart -= eth.EthernetLen
	copy(o[0].Head[o[0].HeadStart:], b[:eth.EthernetLen])
	o[0].HeadEnd = o[0].HeadStart + eth.EthernetLen
	o[0].Payload, o[0].Task = b[eth.EthernetLen:], task
	return o
}

// tcp is a frame with a TCP packet, without checksums.
func tcp(dst byte, payload int) []byte {
	b := make([]byte, 14+20+20+payload)
	to, from := mac(dst), mac(1)
	copy(b, to[:])
	copy(b[6:], from[:])
	b[12], b[13] = 8, 0
	copy(b[14:], []byte{0x45, 0})
	binary.BigEndian.PutUint16(b[16:], uint16(len(b)-14))
	b[22], b[23] = 64, eth.ProtocolTCP
	copy(b[26:], []byte{192, 0, 2, 1, 192, 0, 2, dst})
	b[34+12] = 5 << 4
	for i := range payload {
		b[54+i] = byte(i % 251)
	}
	return b
}

// TestPort_Large: a listener that takes large frames gets one as it was sent, and any other its segments, with their checksums
// made, however few frames it takes at once.
func TestPort_Large(t *testing.T) {
	access := bridge.PortConfig{PVID: 1}
	p, _ := ports(t, access, access, access)
	for i, large := range []bool{true, false} {
		if err := p[i+1].Listen(mac(byte(i+2)), large); err != nil {
			t.Fatal(err)
		}
	}
	task := offload.Task{Kind: offload.TCPv4, Segment: 1460, Sums: offload.MakeIP | offload.MakeTransport}
	in := make([]frame.In, 3)
	want := tcp(2, 20000)
	if n, err := p[0].Send(out(want, task)); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if n, err := p[1].Receive(in); n != 1 || err != nil || !bytes.Equal(in[0].Data, want) || in[0].Task != task {
		t.Fatalf("%d frames, %v, %+v", n, err, in[0].Task)
	}
	want = tcp(3, 20000)
	_, _ = p[0].Send(out(want, task))
	var got []byte
	for n := -1; n != 0; {
		var err error
		if n, err = p[2].Receive(in); err != nil {
			t.Fatal(err)
		}
		for _, f := range in[:n] {
			var h eth.Headers
			if !h.Parse(f.Data) || f.Task != (offload.Task{}) || len(f.Data) > 1514 {
				t.Fatalf("%d bytes, %+v", len(f.Data), f.Task)
			}
			if s := offload.Check(&h, f.Data); s != offload.GoodIP|offload.GoodTransport {
				t.Errorf("checksums %v", s)
			}
			got = append(got, f.Data[54:]...)
		}
	}
	if !bytes.Equal(got, want[54:]) {
		t.Errorf("%d bytes of other payload than the %d sent", len(got), len(want)-54)
	}
}

// TestPort_Notify: who has been told of frames is told again as long as some are left, as a descriptor would stay readable.
func TestPort_Notify(t *testing.T) {
	access := bridge.PortConfig{PVID: 1}
	p, notified := ports(t, access, access)
	if err := p[1].Listen(mac(2), true); err != nil {
		t.Fatal(err)
	}
	const sent = 3*burst + 7
	for range sent {
		_, _ = p[0].Send(out(tcp(2, 10), offload.Task{}))
	}
	if notified[1] != 1 {
		t.Errorf("notified %d times for frames that found others waiting, want once", notified[1])
	}
	in := make([]frame.In, 20)
	for got := 0; got < sent; {
		if notified[1] == 0 {
			t.Fatalf("%d frames are left, and nobody is told", sent-got)
		}
		notified[1] = 0
		n, err := p[1].Receive(in)
		if err != nil {
			t.Fatal(err)
		}
		got += n
	}
	if n, _ := p[1].Receive(in); n != 0 || notified[1] != 0 {
		t.Errorf("%d more frames, notified %d times", n, notified[1])
	}
}

// TestPort_Neighbours: stations find each other by ARP and neighbour discovery in their VLAN, whether their frames have its tag or
// their port gives them one, and nobody in another VLAN.
func TestPort_Neighbours(t *testing.T) {
	p, _ := ports(t, bridge.PortConfig{PVID: 10}, bridge.PortConfig{Tagged: bridge.AllVLANs()}, bridge.PortConfig{PVID: 20})
	for i, vlan := range []uint16{0, 10, 0} {
		s := link.Station{MAC: mac(byte(i + 1)), VLAN: vlan}
		for _, a := range []string{"192.0.2.%/24", "fd00::%/64"} {
			s.Prefixes = append(s.Prefixes, netip.MustParsePrefix(string(bytes.ReplaceAll([]byte(a), []byte("%"), []byte{'1' + byte(i)}))))
		}
		if err := p[i].SetStation(s); err != nil {
			t.Fatal(err)
		}
	}
	in := make([]frame.In, 8)
	for dst, want := range map[string][6]byte{"192.0.2.2": mac(2), "fd00::2": mac(2), "192.0.2.3": {}, "fd00::3": {}} {
		r := frame.Route{Dst: netip.MustParseAddr(dst)}
		if err := p[0].Prepare(&r); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			for _, x := range p {
				if _, err := x.Receive(in); err != nil {
					t.Fatal(err)
				}
			}
		}
		if r.DstMAC != want {
			t.Errorf("%s is at %x, want %x", dst, r.DstMAC, want)
		}
		r.Release()
	}
}

// TestPort_Allocations: a frame from port to port allocates nothing.
func TestPort_Allocations(t *testing.T) {
	access := bridge.PortConfig{PVID: 1}
	p, _ := ports(t, access, access)
	if err := p[1].Listen(mac(2), true); err != nil {
		t.Fatal(err)
	}
	frames, in := out(tcp(2, 1000), offload.Task{}), make([]frame.In, 8)
	if n := testing.AllocsPerRun(1000, func() {
		_, _ = p[0].Send(frames)
		_, _ = p[1].Receive(in)
	}); n != 0 {
		t.Errorf("%v allocations for a frame", n)
	}
}
