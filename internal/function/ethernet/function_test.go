package ethernet

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/offload"
	"github.com/softvpi/softvpi/internal/port"
	"github.com/softvpi/softvpi/wire/eth"
)

// TestTwoFunctions: two functions at the ends of a wire exchange frames: what one host sends the other is given, with what is
// known of its checksums, and its memory comes back.
func TestTwoFunctions(t *testing.T) {
	a, b := alone(t, plain(macA)), alone(t, plain(macB))
	want := [][]byte{tcpFlow().frame(counting(1000)), tcpFlow().udp().frame(counting(300)), tcpFlow().v6().frame(counting(900)),
		tcpFlow().v6().udp().frame(counting(200))}
	for _, f := range want {
		a.post(t, Send{Frame: f})
	}
	on := leave(0, a.port)
	b.port.Receive(0, b.wire, on)
	if d := cmp.Diff(len(want), len(b.host.packets)); d != "" {
		t.Fatal(d)
	}
	for _, p := range b.host.packets {
		found := false
		for _, f := range want {
			found = found || bytes.Equal(f, p.frame)
		}
		if !found || !p.Header.ChecksumValid || p.HashType == 0 {
			t.Errorf("%d bytes: known %t, header %+v, type of hash %#x", len(p.frame), found, p.Header, p.HashType)
		}
	}
	a.Advance(0)
	if a.host.total() != len(want) {
		t.Errorf("%d sends are complete, want %d", a.host.total(), len(want))
	}
	if s, r := a.Counters().Sent, b.Counters().Received; s.Frames != 4 || r.Frames != 4 || s.Bytes != r.Bytes || r.ChecksumGood != 4 {
		t.Errorf("sent %+v\nreceived %+v", s, r)
	}
}

// TestLargeSend_Unsplit: a large send to another function of the port arrives as it is, its checksum never made; one that
// leaves by a wire is cut, and what comes of it is what the host meant.
func TestLargeSend_Unsplit(t *testing.T) {
	for name, x := range map[string]flow{"IPv4": tcpFlow(), "IPv6": tcpFlow().v6()} {
		p, w := &port.Port{}, &port.Wire{}
		a, b := newCard(t, p, w, plain(macA)), newCard(t, p, w, plain(macB))
		kind := offload.TCPv4
		if name == "IPv6" {
			kind = offload.TCPv6
		}
		x.unfinished = true
		large := x.frame(counting(20000))
		task := offload.Task{Kind: kind, Segment: 1400}
		a.post(t, Send{Frame: large, Task: task})
		if left := leave(0, p); len(left) != 0 {
			t.Errorf("%s: %d frames leave that are for another function of the port", name, len(left))
		}
		p.Advance(0)
		if len(b.host.packets) != 1 || !bytes.Equal(b.host.packets[0].frame, large) || b.host.packets[0].Header.Segment != 1400 ||
			!b.host.packets[0].Header.NeedsChecksum {
			t.Fatalf("%s: %d packets, want the one that was sent", name, len(b.host.packets))
		}
		x.to = macC
		away := x.frame(counting(20000))
		a.post(t, Send{Frame: away, Task: task})
		left := leave(0, p)
		if len(left) != 15 {
			t.Fatalf("%s: %d frames leave, want 15", name, len(left))
		}
		c := alone(t, plain(macC))
		for i := range left {
			if len(left[i].Data) > 1514 || left[i].Task != (offload.Task{}) {
				t.Fatalf("%s: a frame of %d bytes leaves, with %+v to do", name, len(left[i].Data), left[i].Task)
			}
		}
		c.port.Receive(0, c.wire, left)
		if len(c.host.packets) != 1 || !bytes.Equal(c.host.packets[0].frame, away) {
			t.Errorf("%s: joined again there are %d packets", name, len(c.host.packets))
		}
		if n := c.Counters(); n.Received.ChecksumBad != 0 || n.RSC.Packets != 15 || n.RSC.Events != 1 {
			t.Errorf("%s: %+v", name, n)
		}
		if n, later := c.Joining(0), c.Joining(clock.Time(2*time.Second)); n != 1 || later != 0 {
			t.Errorf("%s: segments of %d connections are being joined, and of %d when all are silent", name, n, later)
		}
	}
}

// TestBesideRDMA: of the frames to the MAC that an RDMA and an Ethernet function share, RoCE goes to the former; without an
// RDMA function all of them go to the Ethernet function.
func TestBesideRDMA(t *testing.T) {
	roce := tcpFlow().udp()
	roce.dst = netip4791()
	b := alone(t, plain(macB))
	b.arrive(0, roce.frame(counting(100)))
	if len(b.host.packets) != 1 {
		t.Fatalf("without an RDMA function: %d packets, want 1", len(b.host.packets))
	}
	r := &rdmaCount{}
	s := b.port.Attach(r, port.Station{MAC: macB})
	s.Plug(b.wire, netipNone, nil)
	group := roce
	group.to = eth.MAC{1, 0, 0x5e, 0, 0, 1}
	b.SetGroups(0, []eth.MAC{group.to})
	b.arrive(0, roce.frame(counting(100)), tcpFlow().frame(nil), roce.frame(counting(100)), group.frame(nil))
	if len(b.host.packets) != 2 || r.got != 3 {
		t.Errorf("%d packets for the Ethernet function and %d for the other, want 1 more and 3", len(b.host.packets), r.got)
	}
}

// FuzzReceive: whatever arrives is passed on, dropped or counted, whole, and nothing is said of it that cannot be.
func FuzzReceive(f *testing.F) {
	f.Add(tcpFlow().frame(counting(100)), byte(0), uint16(0), byte(0))
	f.Add(tcpFlow().v6().udp().frame(counting(100)), byte(offload.TCPv4), uint16(9), byte(1))
	f.Add(tcpFlow().frame(counting(3000)), byte(offload.TCPv4), uint16(1000), byte(2))
	f.Add(tcpFlow().udp().frame(counting(3000)), byte(offload.UDP), uint16(1000), byte(13))
	f.Add(tcpFlow().frame(counting(9000)), byte(0), uint16(0), byte(2)) // beyond *JumboPacket
	stack, short := tcpFlow(), tcpFlow()
	stack.tags, short.options = []uint16{1, 2, 3, 4, 5}, []byte{8, 10, 0, 0} // a stack of VLANs; a timestamp that is cut off
	f.Add(stack.frame(counting(100)), byte(0), uint16(0), byte(0x30))
	f.Add(short.frame(nil), byte(offload.TCPv4), uint16(1), byte(12))
	f.Fuzz(func(t *testing.T, b []byte, kind byte, segment uint16, how byte) {
		c := alone(t, plain(macB, func(c *Config) {
			c.HeaderDataSplit, c.PromiscuousVlan, c.Host.Large, c.Host.Partial = int(how&1), int(how>>1&1), how&4 != 0, how&8 != 0
			c.Host.Large = c.Host.Large && c.Host.Partial
			c.Host.Datagrams = c.Host.Large && how&1 != 0
			c.PriorityVLANTag, c.IgnoreFCS = int(how>>4&3), int(how>>6&1)
		}))
		c.Filter().SetMode(0x20)
		task := offload.Task{Kind: offload.Kind(kind), Segment: segment, Sums: offload.Sums(how)}
		c.port.Receive(0, c.wire, []frame.In{{Data: bytes.Clone(b), Raw: true, Task: task}, {Data: bytes.Clone(b), Raw: true}})
		for _, p := range c.host.packets {
			if len(p.frame) < eth.EthernetLen || p.Header.ChecksumStart > len(p.frame) {
				t.Fatalf("%d bytes, %+v", len(p.frame), p.Header)
			}
		}
		if err := c.Send(0, 0, &Send{Frame: bytes.Clone(b), Task: task, Tagged: how&1 != 0, TCI: segment, V1: how&2 != 0}); err == nil {
			for _, o := range leave(0, c.port) {
				if len(o.Data) < minFrame || len(o.Data) > 1514+eth.VLANLen*5 {
					t.Fatalf("a frame of %d bytes leaves", len(o.Data))
				}
			}
		}
	})
}
