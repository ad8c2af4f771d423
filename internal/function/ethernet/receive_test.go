package ethernet

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/function/ethernet/filter"
	"github.com/softvpi/softvpi/internal/function/ethernet/rss"
	"github.com/softvpi/softvpi/internal/function/ethernet/wake"
	"github.com/softvpi/softvpi/internal/offload"
	"github.com/softvpi/softvpi/wire/eth"
)

// TestReceive_Filtered: what does not pass is counted by its reason, and a duplicate of the function's address is an event, once
// a minute.
func TestReceive_Filtered(t *testing.T) {
	x := alone(t, plain(macB))
	mine := tcpFlow()
	mine.from = macB
	tagged := tcpFlow()
	tagged.tags = []uint16{9}
	stranger := tcpFlow()
	stranger.to = macC
	x.arrive(0, mine.frame(nil), tagged.frame(nil), stranger.frame(nil), tcpFlow().frame(counting(1461)), make([]byte, 13), nil)
	x.arrive(1, mine.frame(nil))
	x.arrive(clock.Time(time.Minute), mine.frame(nil))
	c := x.Counters()
	want := [filter.Verdicts]uint64{filter.Own: 3, filter.OtherVLAN: 1, filter.OtherMAC: 1, filter.TooLong: 1}
	if c.Filtered != want || c.Malformed != 2 || len(x.host.packets) != 0 || c.Received.Frames != 0 {
		t.Errorf("%+v, %d malformed, %d packets", c.Filtered, c.Malformed, len(x.host.packets))
	}
	event := Event{Kind: DuplicateMAC, MAC: macB}
	if d := cmp.Diff([]Event{event, event}, x.host.events); d != "" {
		t.Error(d)
	}
}

// TestReceive_Checksums: what the keys ask for is checked, and a frame with a wrong checksum is passed on as one.
func TestReceive_Checksums(t *testing.T) {
	wrong := func(b []byte) []byte {
		b[len(b)-1]++
		return b
	}
	none := tcpFlow().udp().frame(counting(9))
	none[14+20+6], none[14+20+7] = 0, 0
	ip := tcpFlow().frame(counting(9))
	ip[14+8]-- // time to live
	for _, c := range []struct {
		name  string
		keys  [3]int // *IPChecksumOffloadIPv4, *TCPUDPChecksumOffloadIPv4, ...IPv6
		frame []byte
		want  offload.Sums
	}{
		{"TCP", [3]int{3, 3, 3}, tcpFlow().frame(counting(9)), offload.GoodIP | offload.GoodTransport},
		{"wrong", [3]int{3, 3, 3}, wrong(tcpFlow().frame(counting(9))), offload.GoodIP | offload.BadTransport},
		{"UDP", [3]int{3, 3, 3}, tcpFlow().udp().frame(counting(9)), offload.GoodIP | offload.GoodTransport},
		{"UDP without one", [3]int{3, 3, 3}, none, offload.GoodIP},
		{"of IP wrong", [3]int{3, 3, 3}, ip, offload.BadIP | offload.GoodTransport},
		{"IPv6", [3]int{3, 3, 3}, tcpFlow().v6().frame(counting(9)), offload.GoodTransport},
		{"IPv6 wrong", [3]int{3, 3, 3}, wrong(tcpFlow().v6().udp().frame(counting(9))), offload.BadTransport},
		{"of IP off", [3]int{1, 2, 0}, tcpFlow().frame(counting(9)), offload.GoodTransport},
		{"of TCP off", [3]int{2, 1, 3}, tcpFlow().frame(counting(9)), offload.GoodIP},
		{"of TCP over IPv6 off", [3]int{3, 3, 1}, tcpFlow().v6().frame(counting(9)), 0},
		{"ARP", [3]int{3, 3, 3}, append(tcpFlow().frame(nil)[:12], 8, 6, 1, 2, 3), 0},
	} {
		x := alone(t, plain(macB, func(f *Config) {
			f.IPChecksumIPv4, f.TCPUDPChecksumIPv4, f.TCPUDPChecksumIPv6 = c.keys[0], c.keys[1], c.keys[2]
		}))
		x.arrive(0, c.frame)
		if len(x.host.packets) != 1 || x.host.packets[0].Sums != c.want {
			t.Errorf("%s: %+v, want %b", c.name, x.host.packets, c.want)
		}
	}
}

// TestReceive_Joined: segments that follow each other are one packet, with the four counters of RSC; never across a gap, a flag,
// an option, a mark of congestion, a priority or another sender (WinOF 5.50, 4.1.8).
func TestReceive_Joined(t *testing.T) {
	at := func(sequence uint32, change ...func(x *flow)) []byte {
		x := tcpFlow()
		x.sequence = sequence
		for _, f := range change {
			f(&x)
		}
		return x.frame(counting(100))
	}
	flag := func(b byte) func(x *flow) { return func(x *flow) { x.flags |= b } }
	option := func(x *flow) { x.options = []byte{1, 1, 1, 0} }
	priority := func(x *flow) { x.tags = []uint16{5 << 13} }
	sender := func(x *flow) { x.from = macC }
	marked := at(100)
	marked[15] = 3
	eth.IPv4(marked[14:]).SetChecksum()
	for _, c := range []struct {
		name   string
		frames [][]byte
		want   []int
		rsc    RSC
	}{
		{"in order", [][]byte{at(0), at(100), at(200)}, []int{300}, RSC{Events: 1, Packets: 3, Octets: 354}},
		{"a gap", [][]byte{at(0), at(200)}, []int{100, 100}, RSC{Aborts: 1}},
		{"pushed", [][]byte{at(0), at(100, flag(8)), at(200)}, []int{200, 100}, RSC{Events: 1, Packets: 2, Octets: 254}},
		{"the end", [][]byte{at(0), at(100, flag(1))}, []int{100, 100}, RSC{Aborts: 1}},
		{"urgent", [][]byte{at(0), at(100, flag(0x20))}, []int{100, 100}, RSC{Aborts: 1}},
		{"an option", [][]byte{at(0), at(100, option)}, []int{100, 100}, RSC{Aborts: 1}},
		{"the same option", [][]byte{at(0, option), at(100, option)}, []int{200}, RSC{Events: 1, Packets: 2, Octets: 258}},
		{"a mark", [][]byte{at(0), marked}, []int{100, 100}, RSC{Aborts: 1}},
		{"a priority", [][]byte{at(0), at(100, priority)}, []int{100, 100}, RSC{}},
		{"another sender", [][]byte{at(0), at(100, sender)}, []int{100, 100}, RSC{}},
	} {
		x := alone(t, plain(macB))
		x.arrive(0, c.frames...)
		var got []int
		for _, p := range x.host.packets {
			var h eth.Headers
			h.Parse(p.frame)
			got = append(got, h.End-h.Data)
		}
		if d := cmp.Diff(c.want, got); d != "" || x.Counters().RSC != c.rsc {
			t.Errorf("%s: %s\n%+v, want %+v", c.name, d, x.Counters().RSC, c.rsc)
		}
		if n := x.Joining(0); (n != 0) != (c.rsc.Events != 0) {
			t.Errorf("%s: segments of %d connections are being joined", c.name, n)
		}
		off := alone(t, plain(macB, func(c *Config) { c.RscIPv4 = 0 }))
		off.arrive(0, c.frames...)
		if d := cmp.Diff(c.frames, off.host.frames()); c.name != "a priority" && d != "" {
			t.Errorf("%s, *RscIPv4 0: %s", c.name, d)
		}
	}
	off := alone(t, plain(macB, func(c *Config) { c.RscIPv6 = 0 }))
	v6 := tcpFlow().v6()
	first := v6.frame(counting(100))
	v6.sequence = 100
	if off.arrive(0, first, v6.frame(counting(100))); len(off.host.packets) != 2 {
		t.Error("*RscIPv6 0: segments over IPv6 are joined")
	}
}

// TestReceive_LargeForSmallHost: a large send of another function is cut for a host that does not take it, or wants no joined
// segments, and those of its frames that never had a checksum get one.
func TestReceive_LargeForSmallHost(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"*RscIPv4 0": func(c *Config) { c.RscIPv4 = 0 }, "host": func(c *Config) { c.Host = Abilities{} },
	} {
		x := alone(t, plain(macB, change))
		f := tcpFlow()
		f.unfinished = true
		task := offload.Task{Kind: offload.TCPv4, Segment: 1000, Sums: offload.MakeTransport}
		small := f.frame(counting(10))
		f.sequence = 10
		x.port.Receive(0, x.wire, []frame.In{
			{Data: small, Raw: true, Task: offload.Task{Sums: offload.MakeTransport}},
			{Data: f.frame(counting(2500)), Raw: true, Task: task},
		})
		if len(x.host.packets) != 4 {
			t.Fatalf("%s: %d packets, want 1 and 3", name, len(x.host.packets))
		}
		bytes := 0
		for i, p := range x.host.packets {
			var h eth.Headers
			h.Parse(p.frame)
			bytes += h.End - h.Data
			if done := offload.CheckTransport(&h, p.frame) == offload.GoodTransport; !done && (i > 0 || name == "host") {
				t.Errorf("%s: packet %d has a wrong checksum", name, i)
			}
			if p.Header.Segment != 0 || (i > 0 || name == "host") && !p.Header.ChecksumValid {
				t.Errorf("%s: packet %d: %+v", name, i, p.Header)
			}
		}
		if bytes != 2510 {
			t.Errorf("%s: %d bytes arrive, want 2510", name, bytes)
		}
	}
}

// TestReceive_Tags: a tag is taken out of the frame and told beside it, unless tags are off (WinOF 5.50, 4.6.6:
// *PriorityVLANTag); a second one stays.
func TestReceive_Tags(t *testing.T) {
	x := tcpFlow()
	bare := x.frame(counting(200))
	x.tags = []uint16{5<<13 | 9}
	one := x.frame(counting(200))
	x.tags = append(x.tags, 8)
	two := x.frame(counting(200))
	for _, split := range []int{0, 1} {
		c := alone(t, plain(macB, func(c *Config) { c.PromiscuousVlan, c.HeaderDataSplit = 1, split }))
		c.arrive(0, one, two)
		first, second := c.host.packets[0], c.host.packets[1]
		if !first.Tagged || first.TCI != 5<<13|9 || !bytes.Equal(first.frame, bare) ||
			!bytes.Equal(second.frame, slices.Concat(two[:12], two[16:])) {
			t.Errorf("split %d: %+v\n%x\n%x", split, first.Packet, first.frame, second.frame)
		}
		if split == 1 && (len(first.Parts) != 2 || len(first.Parts[0]) != 54) {
			t.Errorf("%d pieces, the first of %d bytes; want 2, and 54", len(first.Parts), len(first.Parts[0]))
		}
		if p := c.Counters().Received; p.Priorities[5] != 2 || p.PriorityBytes[5] != uint64(len(one)+len(two)) {
			t.Errorf("%+v", p)
		}
	}
	c := alone(t, plain(macB, func(c *Config) { c.PromiscuousVlan, c.PriorityVLANTag = 1, 0 }))
	if c.arrive(0, one); c.host.packets[0].Tagged || !bytes.Equal(c.host.packets[0].frame, one) {
		t.Error("*PriorityVLANTag 0: the tag is not in the frame")
	}
}

// TestReceive_HeaderDataSplit: headers and data are pieces of their own, together the frame (WinOF 5.50, 4.1.7).
func TestReceive_HeaderDataSplit(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		x := tcpFlow()
		x.options = slices.Repeat([]byte{1}, 4*rapid.IntRange(0, 10).Draw(rt, "options"))
		headers := 54 + len(x.options)
		if rapid.Bool().Draw(rt, "v6") {
			x, headers = x.v6(), headers+20
		}
		if rapid.Bool().Draw(rt, "udp") {
			x, headers = x.udp(), headers-12-len(x.options)
		}
		b := x.frame(counting(rapid.IntRange(0, 1200).Draw(rt, "payload")))
		wait := rapid.Bool().Draw(rt, "moderated")
		c := alone(t, plain(macB, func(c *Config) {
			c.HeaderDataSplit, c.RxIntModeration = 1, 1
			if wait {
				c.InterruptModeration = 1
			}
		}))
		c.arrive(0, b)
		c.Advance(clock.Time(time.Second))
		p := c.host.packets[0]
		if !bytes.Equal(p.frame, b) || len(p.Parts) != 2 || len(p.Parts[0]) != headers {
			rt.Fatalf("%d pieces, the first of %d bytes; want 2, and %d", len(p.Parts), len(p.Parts[0]), headers)
		}
	})
}

// TestReceive_FCS: a frame with a wrong FCS is lost, or passed on with its FCS if IgnoreFCS is 1 (WinOF 5.50, 4.1.14 and 4.6.6).
func TestReceive_FCS(t *testing.T) {
	for _, ignore := range []int{0, 1} {
		x := alone(t, plain(macB, func(c *Config) { c.IgnoreFCS = ignore }))
		b := tcpFlow().frame(counting(100))
		x.port.Receive(0, x.wire, []frame.In{{Data: bytes.Clone(b), Raw: true, BadFCS: true}, {Data: bytes.Clone(b), Raw: true}})
		if len(x.host.packets) != 1+ignore || x.Counters().BadFCS != 1 {
			t.Fatalf("IgnoreFCS %d: %d packets", ignore, len(x.host.packets))
		}
		if ignore == 1 && (!x.host.packets[1].HasFCS || x.host.packets[0].FCS == x.host.packets[1].FCS) {
			t.Errorf("%+v", x.host.packets)
		}
		if ignore == 0 && x.host.packets[0].HasFCS {
			t.Error("IgnoreFCS 0: a packet has an FCS")
		}
	}
}

// TestReceive_FCSByLength: a frame with a wrong FCS is also a fragment if it is shorter than Ethernet has them, a jabber if it is
// longer than *JumboPacket without its tag, and neither in between (RFC 2819, etherStatsFragments and etherStatsJabbers).
func TestReceive_FCSByLength(t *testing.T) {
	tagged := func(x *flow) { x.tags = []uint16{7} }
	for _, c := range []struct {
		length             int
		change             func(x *flow)
		fragments, jabbers uint64
	}{
		{59, nil, 1, 0}, {60, nil, 0, 0}, {1514, nil, 0, 0}, {1515, nil, 0, 1}, {1518, tagged, 0, 0}, {1519, tagged, 0, 1},
	} {
		x, f := alone(t, plain(macB)), tcpFlow()
		if c.change != nil {
			c.change(&f)
		}
		b := f.frame(counting(c.length - len(f.frame(nil))))
		x.port.Receive(0, x.wire, []frame.In{{Data: bytes.Clone(b), Raw: true}, {Data: b, Raw: true, BadFCS: true}})
		got := x.Counters()
		if len(b) != c.length || got.BadFCS != 1 || got.Fragments != c.fragments || got.Jabbers != c.jabbers {
			t.Errorf("%d bytes: %d wrong, %d fragments, %d jabbers", len(b), got.BadFCS, got.Fragments, got.Jabbers)
		}
	}
}

// TestReceive_Spread: flows go to all queues, each flow to one; without RSS, and for frames that are not hashed, to the first.
func TestReceive_Spread(t *testing.T) {
	queues := func(x flow, change func(c *Config)) (used map[int]bool, c *card) {
		c = alone(t, plain(macB, change, func(c *Config) { c.RssMonitoringEnabled, c.RssCountersActivatedAtStartup = 1, 1 }))
		used = map[int]bool{}
		for port := range uint16(200) {
			x.src = netip4(x.src, 4000+port)
			c.arrive(0, x.frame(counting(9)))
			c.arrive(0, x.frame(counting(9)))
		}
		for i, p := range c.host.packets {
			used[p.queue] = true
			if i%2 == 1 && p.queue != c.host.packets[i-1].queue {
				t.Fatal("a flow has two queues")
			}
		}
		return used, c
	}
	all, c := queues(tcpFlow(), func(*Config) {})
	if n := rssCounters(c); len(all) != 8 || n != (RSSCounters{bare + hashed + kindIPv4TCP: 400}) {
		t.Errorf("TCP: %d queues, kinds %v", len(all), n)
	}
	for name, x := range map[string]struct {
		flow   flow
		change func(c *Config)
		kind   int
	}{
		"*RSS 0":          {tcpFlow(), func(c *Config) { c.RSS = 0 }, bare + kindIPv4TCP},
		"UseRSSForUDP 0":  {tcpFlow().v6().udp(), func(c *Config) { c.UseRSSForUDP = 0 }, bare + kindIPv6UDP},
		"*NumRSSQueues 1": {tcpFlow(), func(c *Config) { c.NumRSSQueues = 1 }, bare + hashed + kindIPv4TCP},
	} {
		used, c := queues(x.flow, x.change)
		if kinds := rssCounters(c); len(used) != 1 || !used[0] || kinds[x.kind] != 400 {
			t.Errorf("%s: queues %v, kinds %v", name, used, kinds)
		}
		if off := slices.Contains(c.host.events, Event{Kind: RSSOff}); off != (name == "*RSS 0") {
			t.Errorf("%s: events %v", name, c.host.events)
		}
	}
	ring := alone(t, plain(macB, func(c *Config) { c.DefaultRecvRingProcessor = 3 }))
	if ring.arrive(0, append(tcpFlow().frame(nil)[:12], 8, 6)); ring.host.packets[0].queue != 3 {
		t.Error("DefaultRecvRingProcessor 3: ARP is for another queue")
	}
	if err := c.SetTable([]uint8{5}); err != nil {
		t.Fatal(err)
	}
	c.host.packets = nil
	if c.arrive(0, tcpFlow().frame(nil)); c.host.packets[0].queue != 5 {
		t.Error("a new table is not used")
	}
	if c.SetHash(&rss.DefaultKey, 0); c.SetTable([]uint8{8}) == nil {
		t.Error("a queue that is not there is in the table")
	}
	if c.arrive(0, tcpFlow().frame(nil)); c.host.packets[1].queue != 0 || c.host.packets[1].HashType != 0 {
		t.Error("without types of hashes a frame has one")
	}
}

// TestReceive_SmallFirst: with RxSmallPacketBypass small packets of a batch go before larger ones (WinOF 5.50, 4.6.5).
func TestReceive_SmallFirst(t *testing.T) {
	x := tcpFlow().udp()
	sizes := []int{500, 10, 400, 20}
	for bypass, want := range [][]int{{500, 10, 400, 20}, {10, 20, 500, 400}} {
		c := alone(t, plain(macB, func(c *Config) { c.RxSmallPacketBypass = bypass }))
		var frames [][]byte
		for _, n := range sizes {
			frames = append(frames, x.frame(counting(n)))
		}
		c.arrive(0, frames...)
		var got []int
		for _, p := range c.host.packets {
			got = append(got, len(p.frame)-42)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("RxSmallPacketBypass %d: %s", bypass, d)
		}
	}
}

// rssCounters returns the sums over all queues.
func rssCounters(c *card) (sum RSSCounters) {
	for q := range c.ReceiveQueues() {
		sum.Add(c.RSSCounters(q))
	}
	return sum
}

// TestReceive_Wake: a host that sleeps is given nothing, until a frame wakes it, which it gets.
func TestReceive_Wake(t *testing.T) {
	x := alone(t, plain(macB))
	if err := x.Sleep([]wake.Pattern{{Bytes: make([]byte, 200)}}); err == nil || x.Asleep() {
		t.Error("a pattern of 200 bytes is accepted")
	}
	magic := append(slices.Repeat([]byte{0xff}, 6), slices.Repeat(macB[:], 16)...)
	patterns := []wake.Pattern{{Bytes: []byte("\xff\xff"), Mask: []byte{3}}}
	for pattern, frame := range map[int][]byte{
		-1: tcpFlow().udp().frame(magic), 0: append(slices.Repeat([]byte{0xff}, 6), tcpFlow().frame(nil)[6:]...),
	} {
		x.host.packets, x.host.events = nil, nil
		if err := x.Sleep(patterns); err != nil {
			t.Fatal(err)
		}
		x.arrive(0, tcpFlow().frame(nil))
		if len(x.host.packets) != 0 {
			t.Error("a host that sleeps is given a frame")
		}
		x.arrive(0, frame, tcpFlow().frame(nil))
		if d := cmp.Diff([]Event{{Kind: Woken, Pattern: pattern}}, x.host.events); d != "" || len(x.host.packets) != 2 {
			t.Errorf("%d packets, %s", len(x.host.packets), d)
		}
	}
	if c := x.Counters(); c.Woken != 2 || c.Asleep != 2 {
		t.Errorf("%+v", c)
	}
}

// TestSetGroups: a list longer than MaxNumOfMCList is an event (WinOF 5.50, 4.6.3).
func TestSetGroups(t *testing.T) {
	x := alone(t, plain(macB, func(c *Config) { c.MaxNumOfMCList = 64 }))
	list := make([]eth.MAC, 65)
	for i := range list {
		list[i] = eth.MAC{1, 0, 0x5e, 0, 0, byte(i)}
	}
	x.SetGroups(0, list)
	x.SetGroups(0, list)
	if d := cmp.Diff([]Event{{Kind: ManyGroups, Count: 65, Limit: 64}}, x.host.events); d != "" {
		t.Error(d)
	}
}
