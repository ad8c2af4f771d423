package ethernet

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/offload"
	"github.com/softvpi/softvpi/internal/port"
	"github.com/softvpi/softvpi/wire/eth"
)

// TestSend_Limits: what a host may leave to the function, and how large its frames may be (WinOF 5.50, 4.6.3 and 4.6.4).
func TestSend_Limits(t *testing.T) {
	large := func(x flow, n int) []byte {
		x.unfinished = true
		return x.frame(counting(n))
	}
	v4 := offload.Task{Kind: offload.TCPv4, Segment: 1000}
	v6 := offload.Task{Kind: offload.TCPv6, Segment: 1000}
	options := tcpFlow()
	options.options = []byte{1, 1, 1, 0}
	tagged := tcpFlow()
	tagged.tags = []uint16{5}
	ip := large(tcpFlow(), 3000)
	ip = slices.Concat(ip[:34], []byte{1, 1, 1, 0}, ip[34:])
	ip[14]++ // a word of options
	eth.IPv4(ip[14:]).SetTotalLen(len(ip) - 14)
	sums := func(s offload.Sums) offload.Task { return offload.Task{Sums: s} }
	for _, c := range []struct {
		name   string
		change func(c *Config)
		send   Send
		want   error
	}{
		{"as long as *JumboPacket", nil, Send{Frame: make([]byte, 1514)}, nil},
		{"longer", nil, Send{Frame: make([]byte, 1515)}, Long},
		{"as long as the largest *JumboPacket", func(c *Config) { c.JumboPacket = 9614 }, Send{Frame: make([]byte, 9614)}, nil},
		{"as long as the smallest", func(c *Config) { c.JumboPacket = 614 }, Send{Frame: make([]byte, 615)}, Long},
		{"no Ethernet header", nil, Send{Frame: make([]byte, 13)}, Short},
		{"a large send, version 2", nil, Send{Frame: large(tcpFlow(), 20000), Task: v4}, nil},
		{"version 2 off", func(c *Config) { c.LsoV2IPv4 = 0 }, Send{Frame: large(tcpFlow(), 20000), Task: v4}, NoTask},
		{"version 1 off", func(c *Config) { c.LsoV1IPv4 = 0 }, Send{Frame: large(tcpFlow(), 20000), Task: v4, V1: true}, NoTask},
		{"version 1 while version 2 is off", func(c *Config) { c.LsoV2IPv4 = 0 }, Send{Frame: large(tcpFlow(), 20000), Task: v4, V1: true}, nil},
		{"IPv6", nil, Send{Frame: large(tcpFlow().v6(), 20000), Task: v6}, nil},
		{"IPv6 off", func(c *Config) { c.LsoV2IPv6 = 0 }, Send{Frame: large(tcpFlow().v6(), 20000), Task: v6}, NoTask},
		{"IPv6 has no version 1", nil, Send{Frame: large(tcpFlow().v6(), 20000), Task: v6, V1: true}, NoTask},
		{"of another IP version", nil, Send{Frame: large(tcpFlow(), 20000), Task: v6}, NoTask},
		{"UDP", nil, Send{Frame: large(tcpFlow().udp(), 20000), Task: offload.Task{Kind: offload.UDP, Segment: 9}}, NoTask},
		{"no segment size", nil, Send{Frame: large(tcpFlow(), 20000), Task: offload.Task{Kind: offload.TCPv4}}, NoTask},
		{"as large as LSOSize", nil, Send{Frame: large(tcpFlow(), 64000-40), Task: v4}, nil},
		{"larger", nil, Send{Frame: large(tcpFlow(), 64001-40), Task: v4}, Long},
		{"LSOSize below MTU+1024 is none", func(c *Config) { c.LSOSize = 2523 }, Send{Frame: large(tcpFlow(), 2000), Task: v4}, NoTask},
		{"LSOSize of MTU+1024", func(c *Config) { c.LSOSize = 2524 }, Send{Frame: large(tcpFlow(), 2000), Task: v4}, nil},
		{"segments longer than frames", nil, Send{Frame: large(tcpFlow(), 20000), Task: offload.Task{Kind: offload.TCPv4, Segment: 1461}}, Long},
		{"one segment", nil, Send{Frame: large(tcpFlow(), 1000), Task: v4}, FewSegments},
		{"two, LSOMinSegment 3", func(c *Config) { c.LSOMinSegment = 3 }, Send{Frame: large(tcpFlow(), 2000), Task: v4}, FewSegments},
		{"options of TCP", nil, Send{Frame: large(options, 20000), Task: v4}, nil},
		{"LSOTcpOptions 0", func(c *Config) { c.LSOTcpOptions = 0 }, Send{Frame: large(options, 20000), Task: v4}, Options},
		{"options of IP", nil, Send{Frame: ip, Task: v4}, nil},
		{"LSOIpOptions 0", func(c *Config) { c.LSOIpOptions = 0 }, Send{Frame: ip, Task: v4}, Options},
		{"a checksum", nil, Send{Frame: large(tcpFlow(), 9), Task: sums(offload.MakeTransport)}, nil},
		{"*TCPUDPChecksumOffloadIPv4 2", func(c *Config) { c.TCPUDPChecksumIPv4 = 2 },
			Send{Frame: large(tcpFlow(), 9), Task: sums(offload.MakeTransport)}, NoTask},
		{"*TCPUDPChecksumOffloadIPv6 0", func(c *Config) { c.TCPUDPChecksumIPv6 = 0 },
			Send{Frame: large(tcpFlow().v6(), 9), Task: sums(offload.MakeTransport)}, NoTask},
		{"*IPChecksumOffloadIPv4 2", func(c *Config) { c.IPChecksumIPv4 = 2 },
			Send{Frame: large(tcpFlow(), 9), Task: sums(offload.MakeIP)}, NoTask},
		{"an IP checksum of IPv6", nil, Send{Frame: large(tcpFlow().v6(), 9), Task: sums(offload.MakeIP)}, NoTask},
		{"a checksum of nothing", nil, Send{Frame: make([]byte, 60), Task: sums(offload.MakeTransport)}, NoTask},
		{"a checksum behind too many headers", nil, Send{Frame: extended(), Task: sums(offload.MakeTransport)}, NoTask},
		{"a tag for one with a tag", nil, Send{Frame: tagged.frame(nil), Tagged: true}, WrongTag},
		{"a tag of another VLAN than VlanId", func(c *Config) { c.VlanID = 7 }, Send{Frame: tagged.frame(nil)}, WrongTag},
		{"a tag of VlanId", func(c *Config) { c.VlanID = 5 }, Send{Frame: tagged.frame(nil)}, nil},
	} {
		cfg := plain(macA)
		if c.change != nil {
			c.change(&cfg)
		}
		x := alone(t, cfg)
		if err := x.Send(0, 0, &c.send); err != c.want {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
		if n := x.Counters().Refused; (n == 1) != (c.want != nil) || len(leave(0, x.port)) > 0 != (c.want == nil) {
			t.Errorf("%s: %d sends refused, or what was refused has left", c.name, n)
		}
	}
	x := alone(t, plain(macA))
	if err := x.Send(0, 99, &Send{Frame: make([]byte, 60)}); err != NoQueue {
		t.Errorf("a queue that is not there: %v", err)
	}
}

// TestSend_RingFull: a ring has room for *TransmitBuffers sends; others are refused and counted, until sends are complete.
func TestSend_RingFull(t *testing.T) {
	x := alone(t, plain(macA, func(c *Config) { c.TransmitBuffers = 256 }))
	for i := range 256 {
		if err := x.Send(0, 0, &Send{Frame: make([]byte, 60)}); err != nil {
			t.Fatal(i, err)
		}
	}
	if err := x.Send(0, 0, &Send{Frame: make([]byte, 60)}); err != RingFull || x.Counters().RingFull != 1 || x.SendRoom(0) != 0 {
		t.Errorf("a 257th send: %v", err)
	}
	if n := len(leave(0, x.port)); n != 256 || x.host.total() != 256 || x.SendRoom(0) != 256 {
		t.Errorf("%d frames left, %d sends complete", n, x.host.total())
	}
	if err := x.Send(0, 0, &Send{Frame: make([]byte, 60)}); err != nil {
		t.Error(err)
	}
}

// TestSend_Finished: what leaves for a wire is whole: checksums are made, tags put in, and short frames filled up; the host's
// memory is as it was.
func TestSend_Finished(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		x := tcpFlow()
		if rapid.Bool().Draw(rt, "v6") {
			x = x.v6()
		}
		if rapid.Bool().Draw(rt, "udp") {
			x = x.udp()
		}
		payload := counting(rapid.IntRange(0, 1400).Draw(rt, "payload"))
		want := x.frame(payload)
		s := Send{Task: offload.Task{Sums: offload.MakeTransport}}
		y := x
		y.unfinished = true
		s.Frame = y.frame(payload)
		if x.src.Addr().Is4() && rapid.Bool().Draw(rt, "ip") {
			s.Task.Sums |= offload.MakeIP
			eth.IPv4(s.Frame[14:]).PutChecksum(0)
		}
		if s.Tagged = rapid.Bool().Draw(rt, "tagged"); s.Tagged {
			s.TCI = 3<<13 | 9
			want = slices.Concat(want[:12], []byte{0x81, 0, 3 << 5, 9}, want[12:])
		}
		if len(want) < 60 {
			want = append(want, make([]byte, 60-len(want))...)
		}
		before := bytes.Clone(s.Frame)
		c := alone(t, plain(macA))
		c.post(t, s)
		if p := c.Pending(); s.Tagged && p != 1<<3 || !s.Tagged && p != 1 {
			rt.Fatalf("pending at priorities %08b", p)
		}
		got := data(leave(0, c.port))
		if d := cmp.Diff([][]byte{want}, got); d != "" {
			rt.Fatal(d)
		}
		if !bytes.Equal(before, s.Frame) {
			rt.Fatal("the host's frame has changed")
		}
	})
}

// TestSend_ChecksumOfIPAlone: the checksum of an IPv4 header is made whatever the packet carries.
func TestSend_ChecksumOfIPAlone(t *testing.T) {
	for _, n := range []int{30, 1000} {
		x := tcpFlow()
		x.protocol = eth.ProtocolICMP
		want := x.frame(counting(n))
		b := bytes.Clone(want)
		eth.IPv4(b[14:]).PutChecksum(0)
		c := alone(t, plain(macA))
		c.post(t, Send{Frame: b, Task: offload.Task{Sums: offload.MakeIP}})
		if d := cmp.Diff([][]byte{want}, data(leave(0, c.port))); d != "" {
			t.Error(d)
		}
	}
}

// TestSend_Tags: which tags frames leave with (WinOF 5.50, 4.6.5 and 4.6.6: VlanId, *PriorityVLANTag).
func TestSend_Tags(t *testing.T) {
	const none = -1
	for _, c := range []struct {
		tags, vlan, asked, want int
	}{
		{3, 0, none, none}, {3, 0, 5<<13 | 9, 5<<13 | 9}, {3, 7, none, 7}, {3, 7, 5 << 13, 5<<13 | 7}, {3, 7, 5<<13 | 9, 5<<13 | 9},
		{1, 0, 5<<13 | 9, 5 << 13}, {2, 0, 5<<13 | 9, 9}, {2, 0, 5 << 13, none}, {0, 7, 5<<13 | 9, none},
	} {
		x := alone(t, plain(macA, func(f *Config) { f.PriorityVLANTag, f.VlanID = c.tags, c.vlan }))
		s := Send{Frame: tcpFlow().frame(counting(100))}
		if c.asked != none {
			s.Tagged, s.TCI = true, uint16(c.asked)
		}
		x.post(t, s)
		var h eth.Headers
		h.Parse(leave(0, x.port)[0].Data)
		if got := int(h.TCI); c.want == none && h.Tags != 0 || c.want != none && (h.Tags != 1 || got != c.want) {
			t.Errorf("*PriorityVLANTag %d, VlanId %d, asked for %#x: %d tags, %#x; want %#x", c.tags, c.vlan, c.asked, h.Tags, got, c.want)
		}
	}
}

// TestSend_SplitThenJoined: a large send cut for a wire, and joined again by whoever receives it, is the frame that the host
// has sent (but for a last segment, which is not joined if it is alone); the wire's frames are not longer than allowed.
func TestSend_SplitThenJoined(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		x := tcpFlow()
		task := offload.Task{Kind: offload.TCPv4, Segment: uint16(rapid.IntRange(1, 1400).Draw(rt, "segment"))}
		if rapid.Bool().Draw(rt, "v6") {
			x, task.Kind = x.v6(), offload.TCPv6
		}
		x.unfinished, x.sequence = true, rapid.Uint32().Draw(rt, "sequence")
		x.options = slices.Repeat([]byte{1}, 4*rapid.IntRange(0, 5).Draw(rt, "options"))
		if rapid.Bool().Draw(rt, "push") {
			x.flags |= 8
		}
		size := int(task.Segment)
		want := x.frame(counting(rapid.IntRange(size+1, min(60000, 60*size)).Draw(rt, "payload")))
		a, b := alone(t, plain(macA)), alone(t, plain(macB))
		a.post(t, Send{Frame: want, Task: task})
		on := leave(0, a.port)
		for i := range on {
			if len(on[i].Data) > 1514 || on[i].Task != (offload.Task{}) {
				rt.Fatalf("a frame of %d bytes", len(on[i].Data))
			}
		}
		b.port.Receive(0, b.wire, on)
		if d := cmp.Diff([][]byte{want}, b.host.frames()); d != "" {
			rt.Fatalf("%d frames on the wire, %d packets", len(on), len(b.host.packets))
		}
		if p := b.host.packets[0].Header; p.Segment != size || !p.NeedsChecksum {
			rt.Fatalf("%+v", p)
		}
	})
}

// TestSend_Datagrams: a burst of datagrams cut for a wire is what the host's own datagrams would have been, with right checksums
// and together all of its payload; joined where nobody cuts, it is the same burst.
func TestSend_Datagrams(t *testing.T) {
	bursts := func(c *Config) { c.Host.Datagrams = true }
	rapid.Check(t, func(rt *rapid.T) {
		x := tcpFlow().udp()
		if rapid.Bool().Draw(rt, "v6") {
			x = x.v6()
		}
		x.unfinished = true
		size := rapid.IntRange(1, 1400).Draw(rt, "segment")
		payload := counting(rapid.IntRange(size+1, min(60000, 60*size)).Draw(rt, "payload"))
		want := x.frame(payload)
		a, b := alone(t, plain(macA, bursts)), alone(t, plain(macB, bursts))
		a.post(t, Send{Frame: bytes.Clone(want), Task: offload.Task{Kind: offload.UDP, Segment: uint16(size)}})
		on := leave(0, a.port)
		b.port.Receive(0, b.wire, on)
		var together []byte
		for i, p := range b.host.packets {
			var h eth.Headers
			const good = offload.GoodTransport
			if !h.Parse(p.frame) || p.Header.Kind != offload.Whole || offload.Check(&h, p.frame)&(good|offload.BadIP) != good {
				rt.Fatalf("datagram %d has wrong checksums: %x", i, p.frame[:h.Data])
			}
			if n := h.End - h.Data; n != min(size, len(payload)-i*size) {
				rt.Fatalf("datagram %d has %d bytes", i, n)
			}
			together = append(together, p.frame[h.Data:h.End]...)
		}
		if !bytes.Equal(together, payload) {
			rt.Fatalf("%d bytes in %d datagrams, want %d", len(together), len(on), len(payload))
		}

		p, w := &port.Port{}, &port.Wire{}
		near, far := newCard(t, p, w, plain(macA, bursts)), newCard(t, p, w, plain(macB, bursts))
		near.post(t, Send{Frame: bytes.Clone(want), Task: offload.Task{Kind: offload.UDP, Segment: uint16(size)}})
		leave(0, p)
		p.Advance(0)
		got := far.host.packets
		if len(got) != 1 || !bytes.HasPrefix(got[0].frame, want) || got[0].Header.Kind != offload.UDP || got[0].Header.Segment != size {
			rt.Fatalf("beside it %d packets arrive", len(got))
		}
	})
}

// TestQueueFor: both directions of a flow have the same queue (WinOF 5.50, 4.6.5), and TxHashDistribution divides by size.
func TestQueueFor(t *testing.T) {
	a := alone(t, plain(macA))
	for port := range uint16(50) {
		x := tcpFlow()
		x.src = netip4(x.src, 4000+port)
		back := x
		back.from, back.to, back.src, back.dst = x.to, x.from, x.dst, x.src
		q := a.QueueFor(x.frame(nil))
		a.arrive(0, back.frame(counting(10)))
		if got := a.host.packets[len(a.host.packets)-1].queue; got != q {
			t.Errorf("port %d: sends go to queue %d, receives to %d", 4000+port, q, got)
		}
	}
	for how, want := range map[int][2]int{bySize: {0, 1}, byHash: {3, 3}, byHashAndSize: {6, 7}} {
		c := alone(t, plain(macA, func(c *Config) { c.Generation, c.TxHashDistribution = catalogue.MLX4, how }))
		large, small := tcpFlow().frame(counting(100)), tcpFlow().frame(nil)
		q := c.QueueFor(large)
		if how == bySize {
			if small := c.QueueFor(small); c.SendQueues() != 2 || q != want[0] || small != want[1] {
				t.Errorf("by size: queues %d and %d of %d", q, small, c.SendQueues())
			}
			continue
		}
		per := map[int]int{byHash: 1, byHashAndSize: 2}[how]
		if c.SendQueues() != per*c.ReceiveQueues() || c.QueueFor(small)-q != want[1]-want[0] {
			t.Errorf("TxHashDistribution %d: queues %d and %d of %d", how, q, c.QueueFor(small), c.SendQueues())
		}
	}
}

// TestSend_Completion: when complete sends are reported: at once, after so many or so much time, or when the next are sent
// (WinOF 5.50, 4.6.3, 4.6.5 and 4.9.3).
func TestSend_Completion(t *testing.T) {
	x := alone(t, plain(macA, func(c *Config) {
		c.InterruptModeration, c.TxPacketCount, c.TxPacketTime, c.TxIntModerationProfile = 1, 3, 10, 2
	}))
	send := func(n int) {
		for range n {
			if err := x.Send(0, 0, &Send{Frame: make([]byte, 60)}); err != nil {
				t.Fatal(err)
			}
		}
		leave(0, x.port)
	}
	if send(5); x.host.sent[0] != 0 || x.Deadline() != clock.Time(20*time.Microsecond) {
		t.Errorf("%d of 5 are reported, before 2 x 3 are; deadline %v", x.host.sent[0], x.Deadline())
	}
	if send(1); x.host.sent[0] != 6 {
		t.Errorf("%d of 6 are reported", x.host.sent[0])
	}
	send(1)
	if x.Advance(us(20)); x.host.sent[0] != 7 || x.SendCounters(0).Interrupts != 2 || x.Deadline() != x.checkDue {
		t.Errorf("%d of 7 are reported after the time, by %d interrupts", x.host.sent[0], x.SendCounters(0).Interrupts)
	}
	x = alone(t, plain(macA, func(c *Config) { c.SendCompletionMethod = 0 }))
	if send(4); x.host.sent[0] != 0 {
		t.Errorf("polling: %d are reported before the next are sent", x.host.sent[0])
	}
	if send(1); x.host.sent[0] != 4 {
		t.Errorf("polling: %d are reported with the next", x.host.sent[0])
	}
	if x.Collect(0); x.host.sent[0] != 5 || x.SendCounters(0).Interrupts != 0 {
		t.Errorf("polling: %d are reported when looked for", x.host.sent[0])
	}
}

// TestSend_PausedPriority: sends of a paused priority wait and hold up no other; what has left comes back in order.
func TestSend_PausedPriority(t *testing.T) {
	x := alone(t, plain(macA))
	x.port.Scheduler.Pause(1 << 3)
	for i := range 10 {
		s := Send{Frame: tcpFlow().frame(counting(100 + i)), Tagged: i%2 == 1, TCI: 3 << 13}
		if err := x.Send(0, 0, &s); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(leave(0, x.port)); n != 5 || x.host.sent[0] != 1 {
		t.Errorf("%d frames leave beside those that are paused, %d are complete; want 5, and 1 before the first that waits", n, x.host.sent[0])
	}
	x.port.Scheduler.Pause(0)
	if n := len(leave(0, x.port)); n != 5 || x.host.sent[0] != 10 {
		t.Errorf("%d frames leave after the pause, %d are complete", n, x.host.sent[0])
	}
}

// TestTransmit_MemoryInUse: a send is not complete while its frames may be in use: before the port has asked for others.
func TestTransmit_MemoryInUse(t *testing.T) {
	x := alone(t, plain(macA))
	x.post(t, Send{Frame: tcpFlow().frame(counting(500))})
	out := newOut(4)
	if n := x.port.Transmit(0, out); n != 1 {
		t.Fatal(n)
	}
	x.port.Advance(0)
	if x.host.total() != 0 || !x.port.Pending() {
		t.Error("a send is complete before its frame has left, or the port does not ask again")
	}
	if n := x.port.Transmit(0, out); n != 0 || x.host.total() != 1 || x.port.Pending() {
		t.Errorf("%d frames, %d sends complete", n, x.host.total())
	}
}

// extended returns a UDP frame with 128 bytes of IPv6 extension headers.
func extended() []byte {
	b := tcpFlow().v6().udp().frame(counting(9))
	b[14+6] = 60
	eth.IPv6(b[14:]).SetPayloadLen(128 + len(b) - 54)
	return slices.Concat(b[:54], []byte{eth.ProtocolUDP, 15, 1, 124}, make([]byte, 124), b[54:])
}
