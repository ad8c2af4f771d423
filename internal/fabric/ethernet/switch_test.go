package ethernet

import (
	"bytes"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/fabric/bridge"
	"github.com/softvpi/softvpi/wire/eth"
)

func vlans(ids ...uint16) (v bridge.VLANs) {
	for _, id := range ids {
		v.Add(id)
	}
	return v
}

// TestSwitch_Forwards: a frame to a station that was heard leaves by its port alone, and one to an unknown station or a group by
// all others of the VLAN, never by that where it came in (IEEE 802.1Q, 8.8).
func TestSwitch_Forwards(t *testing.T) {
	r := newRig(t, Config{}, PortConfig{}, PortConfig{}, PortConfig{}, PortConfig{PVID: 2})
	r.receive(0, packet{from: 1, to: 2})
	r.drive(1000)
	for port, want := range []int{0, 1, 1, 0} {
		if got := len(r.left(port)); got != want {
			t.Errorf("port %d: %d frames to a station that is not known, want %d", port, got, want)
		}
	}
	r.receive(1, packet{from: 2, to: 1})
	r.receive(0, packet{from: 1, to: 2})
	r.drive(3000)
	for port, want := range []int{1, 1, 0, 0} {
		if got := len(r.left(port)); got != want {
			t.Errorf("port %d: %d frames to stations that are known, want %d", port, got, want)
		}
	}
	r.receive(2, packet{from: 1, to: 1}) // it has moved
	if c := r.sw.Port(2).Counters(r.now); c.Dropped.Filtered != 1 {
		t.Errorf("counters %+v", c)
	}
	r.idle()
}

// TestSwitch_Tags: frames leave an access port, and in its native VLAN a trunk, without a tag, in others with one that has the
// priority that they were given; a tag that is there keeps its own.
func TestSwitch_Tags(t *testing.T) {
	r := newRig(t, Config{}, PortConfig{PVID: 5, Default: 3}, PortConfig{Tagged: vlans(5, 6)}, PortConfig{PVID: 6, Tagged: vlans(5)})
	tci := func(b []byte) int {
		if b[12] != 0x81 {
			return -1
		}
		return int(b[14])<<8 | int(b[15])
	}
	for _, c := range []struct {
		name string
		in   int
		x    packet
		want [3]int // the tag with which it leaves, -1: none, -2: it does not leave
	}{
		{"access to trunk", 0, packet{from: 1, to: 9}, [3]int{-2, 3<<13 | 5, 3<<13 | 5}},
		{"trunk to access and native", 1, packet{from: 2, to: 9, tagged: true, vlan: 6, pcp: 7}, [3]int{-2, -2, -1}},
		{"trunk to trunk", 1, packet{from: 2, to: 9, tagged: true, vlan: 5, pcp: 7}, [3]int{-1, -2, 7<<13 | 5}},
		{"native to trunk", 2, packet{from: 3, to: 9}, [3]int{-2, 6, -2}},
		{"a priority alone", 2, packet{from: 3, to: 9, tagged: true, pcp: 4}, [3]int{-2, 4<<13 | 6, -2}},
		{"no native VLAN", 1, packet{from: 2, to: 9}, [3]int{-2, -2, -2}},
		{"another VLAN", 0, packet{from: 1, to: 9, tagged: true, vlan: 6}, [3]int{-2, -2, -2}},
	} {
		r.receive(c.in, c.x)
		r.drive(r.now + 10*microsecond)
		for port, want := range c.want {
			got := -2
			var b []byte
			if all := r.left(port); len(all) == 1 {
				b = all[0]
				got = tci(b)
			}
			if got != want {
				t.Errorf("%s: port %d: tag %#x, want %#x", c.name, port, got, want)
			}
			if b != nil && !bytes.Equal(b[len(b)-40:], c.x.bytes()[headers-40:]) {
				t.Errorf("%s: port %d: % x is not what was sent", c.name, port, b)
			}
		}
	}
	if c := r.sw.Port(1).Counters(r.now); c.Dropped.UnknownVLAN != 1 {
		t.Errorf("counters %+v", c)
	}
	r.idle()
}

// TestSwitch_Rate: frames follow each other as the rate of the port allows, with preamble, frame check sequence and gap, without a
// rounding error that adds up, and arrive one delay later.
func TestSwitch_Rate(t *testing.T) {
	const frames, length = 1000, 1000
	r := newRig(t, Config{}, PortConfig{}, PortConfig{Rate: 40e9, Delay: 700 * time.Nanosecond, MTU: 1500})
	for i := range frames {
		r.receive(0, packet{from: 1, to: 2, length: length, serial: uint32(i)})
	}
	r.drive(clock.Time(time.Second))
	want := clock.Time(frames*(length+24)*8/40) + 700
	if last := r.out[len(r.out)-1].At; last != want {
		t.Errorf("the last frame arrives at %d ns, want %d", last, want)
	}
	for i, b := range r.left(1) {
		if _, n := serial(b); int(n) != i {
			t.Fatalf("frame %d leaves as number %d", n, i)
		}
	}
	r.idle()
}

// TestSwitch_Drops: every frame that goes nowhere is counted, by cause.
func TestSwitch_Drops(t *testing.T) {
	r := newRig(t, Config{}, PortConfig{PVID: 1, MTU: 1500}, PortConfig{PVID: 1})
	drop := func(b []byte) Drops {
		before := r.sw.Port(0).Counters(r.now).Dropped
		r.sw.Receive(r.now, 0, r.store.Put(b, 0))
		after := r.sw.Port(0).Counters(r.now).Dropped
		return Drops{after.Malformed - before.Malformed, after.UnknownVLAN - before.UnknownVLAN, after.Reserved - before.Reserved,
			after.Filtered - before.Filtered, after.TooLong - before.TooLong, after.HopLimit - before.HopLimit,
			after.NoRoute - before.NoRoute, after.Down - before.Down, after.Inactive - before.Inactive, after.Lost - before.Lost}
	}
	frame := func(dst, src eth.MAC, kind eth.EtherType, n int) []byte {
		b := (&eth.Ethernet{Dst: dst, Src: src, Type: kind}).Append(nil)
		return append(b, make([]byte, n)...)
	}
	lldp := eth.MAC{0x01, 0x80, 0xc2, 0, 0, 0x0e}
	for name, c := range map[string]struct {
		b    []byte
		want Drops
	}{
		"from a group":            {frame(stationMAC(1), lldp, eth.TypeIPv4, 46), Drops{Malformed: 1}},
		"a tag that is cut off":   {frame(stationMAC(1), stationMAC(2), eth.TypeVLAN, 2), Drops{Malformed: 1}},
		"a VLAN of other ports":   {packet{from: 1, to: 2, tagged: true, vlan: 9}.bytes(), Drops{UnknownVLAN: 1}},
		"LLDP":                    {frame(lldp, stationMAC(2), 0x88cc, 46), Drops{Reserved: 1}},
		"another control frame":   {frame(eth.PauseMAC, stationMAC(2), eth.TypeMACControl, 46), Drops{Reserved: 1}},
		"to the port":             {packet{from: 1, to: 1}.bytes(), Drops{Filtered: 1}},
		"longer than the MTU":     {frame(stationMAC(1), stationMAC(2), eth.TypeIPv4, 1501), Drops{TooLong: 1}},
		"to the switch":           {frame(DefaultMAC, stationMAC(2), eth.TypeARP, 46), Drops{NoRoute: 1}},
		"a packet for the switch": {packet{from: 1, to: 2, gateway: DefaultMAC}.bytes(), Drops{NoRoute: 1}},
	} {
		if got := drop(c.b); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	r.sw.Port(0).SetUp(r.now, false)
	if got := drop(packet{from: 1, to: 2}.bytes()); got != (Drops{Down: 1}) {
		t.Errorf("at a port that is down: %+v", got)
	}
	r.idle()
}

// TestSwitch_PauseIsNotForwarded: pauses end at the port, whatever address they have.
func TestSwitch_PauseIsNotForwarded(t *testing.T) {
	for _, f := range []FlowControl{NoFlowControl, GlobalPause} {
		r := newRig(t, Config{}, PortConfig{FlowControl: f}, PortConfig{})
		for _, dst := range []eth.MAC{eth.PauseMAC, stationMAC(7)} {
			p := eth.Pause{Src: stationMAC(1)}
			b := p.Append(nil)
			copy(b, dst[:])
			r.sw.Receive(r.now, 0, r.store.Put(b, 0))
		}
		r.drive(microsecond)
		if len(r.out) != 0 || len(r.sw.Table(r.now)) != 0 {
			t.Errorf("%v leaves, and %v is learned", r.out, r.sw.Table(r.now))
		}
		if got := r.sw.Port(0).Counters(r.now).Ignored; (got == 2) != (f == NoFlowControl) {
			t.Errorf("flow control %d: %d ignored", f, got)
		}
		r.idle()
	}
}

// TestPort_Down: what waits at a port that goes down is lost and counted, its room is free again, and flows go on when it is up.
func TestPort_Down(t *testing.T) {
	r := newRig(t, Config{}, PortConfig{}, PortConfig{Rate: 1e9}, PortConfig{Rate: 1e9})
	r.receive(1, packet{from: 2, to: 9})
	r.drive(10 * microsecond)
	for range 10 {
		r.receive(0, packet{from: 1, to: 2, length: 1000})
		r.receive(0, packet{from: 1, to: 0xff, length: 1000})
	}
	r.sw.Port(1).SetUp(r.now, false)
	r.receive(0, packet{from: 1, to: 0xff})
	r.drive(clock.Time(time.Second))
	if c := r.sw.Port(1).Counters(r.now).Priority[0]; c.QueueDrops != 19 || c.OutFrames != 1 {
		t.Errorf("port 1: %+v", c)
	}
	if c := r.sw.Port(2).Counters(r.now).Priority[0]; c.OutFrames != 12 {
		t.Errorf("port 2: %+v", c)
	}
	r.idle()
	r.sw.Port(1).SetUp(r.now, true)
	r.receive(0, packet{from: 1, to: 2})
	r.drive(r.now + 10*microsecond)
	if got := len(r.left(1)); got != 1 {
		t.Errorf("%d frames leave the port that is up again", got)
	}
	r.idle()
}

// TestNew_Refuses: what a configuration cannot be is an error that names the field.
func TestNew_Refuses(t *testing.T) {
	var store Store
	for _, c := range []struct {
		want string
		cfg  Config
		port PortConfig
	}{
		{"MAC", Config{MAC: eth.MAC{1}}, PortConfig{}},
		{"Buffer", Config{Buffer: 1}, PortConfig{}},
		{"Buffer", Config{Buffer: 64 << 10}, PortConfig{FlowControl: PriorityPause, Lossless: 0xff}},
		{"Ageing", Config{Ageing: 1}, PortConfig{}},
		{"Entries", Config{Entries: -1}, PortConfig{}},
		{"Storm", Config{Storm: 1}, PortConfig{}},
		{"Rate", Config{}, PortConfig{Rate: 1}},
		{"Delay", Config{}, PortConfig{Delay: -1}},
		{"MTU", Config{}, PortConfig{MTU: 20}},
		{"PVID", Config{}, PortConfig{PVID: 4095}},
		{"Routed", Config{}, PortConfig{PVID: 1, Routed: true}},
		{"Trust", Config{}, PortConfig{Trust: 9}},
		{"PCP[3]", Config{}, PortConfig{PCP: &[8]uint8{3: 8}}},
		{"DSCP[46]", Config{}, PortConfig{DSCP: &[64]uint8{46: 8}}},
		{"Default", Config{}, PortConfig{Default: 8}},
		{"FlowControl", Config{}, PortConfig{FlowControl: 3}},
		{"Lossless", Config{}, PortConfig{Lossless: 1}},
		{"Lossless", Config{}, PortConfig{FlowControl: PriorityPause}},
		{"Quanta", Config{}, PortConfig{FlowControl: GlobalPause, Quanta: 1}},
		{"Groups[1].Xoff", Config{}, PortConfig{Groups: [8]Group{1: {Xoff: -1}}}},
		{"Groups[1].Alpha", Config{}, PortConfig{Groups: [8]Group{1: {Alpha: 65}}}},
		{"Groups[1].Alpha", Config{}, PortConfig{Groups: [8]Group{1: {Xoff: 1, Alpha: 1}}}},
		{"Groups[1].Xon", Config{}, PortConfig{Groups: [8]Group{1: {Xon: -1}}}},
		{"Groups[1].Headroom", Config{}, PortConfig{Groups: [8]Group{1: {Headroom: -2}}}},
		{"Queues[7].Weight", Config{}, PortConfig{Queues: [8]Queue{7: {Weight: 101}}}},
		{"Queues[7].Most", Config{}, PortConfig{Queues: [8]Queue{7: {Most: -1}}}},
		{"Queues[7].Alpha", Config{}, PortConfig{Queues: [8]Queue{7: {Alpha: -1}}}},
		{"Queues[7].ECN.Kmin", Config{}, PortConfig{Queues: [8]Queue{7: {ECN: ECN{Kmin: 2, Kmax: 1}}}}},
		{"Queues[7].ECN.Pmax", Config{}, PortConfig{Queues: [8]Queue{7: {ECN: ECN{Kmax: 1, Pmax: 1.1}}}}},
	} {
		if _, err := New(&store, c.cfg, []PortConfig{c.port}); field(err) != c.want {
			t.Errorf("%v, want an error about %s", err, c.want)
		}
	}
	for name, c := range map[string]func() error{
		"ports": func() error { _, err := New(&store, Config{}, nil); return err },
		"bundles[1]": func() error {
			_, err := New(&store, Config{}, make([]PortConfig, 3), []int{0, 1}, []int{1, 2})
			return err
		},
		"bundles[0]": func() error {
			_, err := New(&store, Config{}, []PortConfig{{PVID: 1}, {PVID: 2}}, []int{0, 1})
			return err
		},
	} {
		if err := c(); field(err) != name {
			t.Errorf("%v, want an error about %s", err, name)
		}
	}
}
