package vport

import (
	"errors"
	"net/netip"
	"testing"

	"pgregory.net/rapid"

	"github.com/softvpi/softvpi/internal/function/ethernet/rss"
	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/tunnel"
)

// full is a configuration in which everything is on.
var full = Config{VMQ: true, PreferVMQ: true, VLANFiltering: true, SpreadVPorts: true, VPorts: 127, MACs: 127, VLANs: 125, Queues: 16,
	Processors: 4}

func mac(n byte) eth.MAC { return eth.MAC{2, 0, 0, 0, 0, n} }

// udp returns a frame with a datagram of a flow; tci 0: without a tag.
func udp(dst eth.MAC, tci uint16, flow uint16) []byte {
	h := eth.Ethernet{Dst: dst, Src: mac(99), Tagged: tci != 0, TCI: tci, Type: eth.TypeIPv4}
	d := eth.Datagram{Src: netip.MustParseAddr("10.0.0.1"), Dst: netip.MustParseAddr("10.0.0.2"), SrcPort: flow, DstPort: 9, HopLimit: 9}
	p := make([]byte, d.HeaderLen())
	d.Put(p, 0)
	return append(h.Append(nil), p...)
}

func sorter(t testing.TB, cfg Config) *Sorter {
	t.Helper()
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// sort sorts a frame, in a tunnel if it is in one.
func sort(s *Sorter, b []byte) (port, queue int) {
	var h eth.Headers
	var f tunnel.Frame
	h.Parse(b)
	if f.Find(&h, b, tunnel.Recognition{VXLANPort: tunnel.Port, NVGRE: true}) {
		return s.Sort(&h, b, &f)
	}
	return s.Sort(&h, b, nil)
}

// add makes a port of one queue with a filter.
func add(t testing.TB, s *Sorter, n int, f Filter) {
	t.Helper()
	if _, err := s.Set(n, VPort{Weight: 100, Queues: 1}); err != nil {
		t.Fatal(err)
	}
	if err := s.AddFilter(n, f); err != nil {
		t.Fatal(err)
	}
}

// TestSort: which port a frame goes to, by address and VLAN, inside tunnels too.
func TestSort(t *testing.T) {
	s := sorter(t, full)
	add(t, s, 1, Filter{MAC: mac(1), AnyVLAN: true})
	add(t, s, 2, Filter{MAC: mac(2)})
	add(t, s, 3, Filter{MAC: mac(2), VLAN: 7})
	add(t, s, 4, Filter{MAC: mac(1), VLAN: 9})
	add(t, s, 5, Filter{MAC: mac(5), AnyVLAN: true, Tunneled: true, Network: 1000})
	if _, err := s.Set(6, VPort{Weight: 0, Queues: 1}); err != nil {
		t.Fatal(err)
	}
	if err := s.AddFilter(6, Filter{MAC: mac(6), AnyVLAN: true}); err != nil {
		t.Fatal(err)
	}
	o := tunnel.Outer{Ethernet: eth.Ethernet{Dst: mac(1)}, Src: netip.MustParseAddr("192.0.2.1"), Dst: netip.MustParseAddr("192.0.2.2"),
		DstPort: tunnel.Port}
	inside := func(id uint32, dst byte) []byte {
		return o.Append(nil, tunnel.Header{Kind: tunnel.VXLAN, ID: id}, udp(mac(dst), 0, 1))
	}
	for name, c := range map[string]struct {
		frame []byte
		want  int
	}{
		"an address":                          {udp(mac(1), 0, 1), 1},
		"an address in any VLAN":              {udp(mac(1), 5, 1), 1},
		"the VLAN goes before any":            {udp(mac(1), 9, 1), 4},
		"without a tag":                       {udp(mac(2), 0, 1), 2},
		"a tag with a priority alone":         {udp(mac(2), 3<<13, 1), 2},
		"a VLAN, whatever the priority":       {udp(mac(2), 3<<13|7, 1), 3},
		"another VLAN":                        {udp(mac(2), 8, 1), 0},
		"another address":                     {udp(mac(3), 0, 1), 0},
		"a group":                             {udp(eth.Broadcast, 0, 1), 0},
		"weight 0":                            {udp(mac(6), 0, 1), 0},
		"inside a tunnel":                     {inside(1000, 5), 5},
		"inside a tunnel of another network":  {inside(1001, 5), 1},
		"inside a tunnel, an address outside": {inside(1000, 2), 1},
		"an address inside, without a tunnel": {udp(mac(5), 0, 1), 0},
	} {
		if n, q := sort(s, c.frame); n != c.want || q != s.Queues(n)[0].Number {
			t.Errorf("%s: port %d, queue %d, want port %d", name, n, q, c.want)
		}
	}
	s.RemoveFilter(3, Filter{MAC: mac(2), VLAN: 7})
	s.Remove(1)
	for _, b := range [][]byte{udp(mac(2), 7, 1), udp(mac(1), 0, 1)} {
		if n, _ := sort(s, b); n != 0 {
			t.Errorf("a filter that is gone leads to port %d", n)
		}
	}
	if len(s.vlans) != 1 {
		t.Errorf("VLANs of filters: %v", s.vlans)
	}
}

// TestSet_Granted: how many queues a port is granted of those that it asks for.
func TestSet_Granted(t *testing.T) {
	for name, c := range map[string]struct {
		cfg    func(*Config)
		v      VPort
		want   int
		others int // queues that another port has
	}{
		"as asked":               {nil, VPort{Weight: 1, VRSS: true, VMMQ: true, Queues: 8}, 8, 0},
		"what is free":           {nil, VPort{Weight: 1, VRSS: true, VMMQ: true, Queues: 8}, 5, 10},
		"none is free":           {nil, VPort{Weight: 1, VRSS: true, VMMQ: true, Queues: 8}, 0, 15},
		"without VMMQ":           {nil, VPort{Weight: 1, VRSS: true, Queues: 8}, 1, 0},
		"*RssOnHostVPorts 0":     {func(c *Config) { c.SpreadVPorts = false }, VPort{Weight: 1, VRSS: true, VMMQ: true, Queues: 8}, 1, 0},
		"weight 0 has no queues": {nil, VPort{VRSS: true, VMMQ: true, Queues: 8}, 0, 0},
	} {
		cfg := full
		if c.cfg != nil {
			c.cfg(&cfg)
		}
		s := sorter(t, cfg)
		if c.others > 0 {
			if n, err := s.Set(2, VPort{Weight: 100, VRSS: true, VMMQ: true, Queues: c.others}); err != nil || n != c.others {
				t.Fatalf("%s: %d, %v", name, n, err)
			}
		}
		if n, err := s.Set(1, c.v); err != nil || n != c.want || len(s.Queues(1)) != n {
			t.Errorf("%s: %d queues, %v", name, n, err)
		}
	}
}

// TestSort_Spread: a port's flows go to all of its queues, each flow to one, and by the table that is set; the queues are served by
// processors from the first on.
func TestSort_Spread(t *testing.T) {
	s := sorter(t, full)
	add(t, s, 1, Filter{MAC: mac(1), AnyVLAN: true})
	if n, err := s.Set(1, VPort{Weight: 100, VRSS: true, VMMQ: true, Queues: 6, Processor: 3}); err != nil || n != 6 {
		t.Fatal(n, err)
	}
	for round := range 2 {
		for flow := range uint16(500) {
			before := s.Queues(1)[0].Frames
			n, q := sort(s, udp(mac(1), 0, flow))
			if _, again := sort(s, udp(mac(1), 0, flow)); n != 1 || q != again {
				t.Fatalf("a flow goes to queues %d and %d", q, again)
			}
			if round == 1 && s.Queues(1)[0].Frames != before+2 {
				t.Fatal("the table does not count")
			}
		}
		for i, q := range s.Queues(1) {
			if q.Frames == 0 || q.Bytes == 0 || q.Processor != (3+i)%4 {
				t.Errorf("queue %d: %+v", i, q)
			}
		}
		if err := s.SetTable(1, []uint8{0}); err != nil {
			t.Fatal(err)
		}
	}
	var bad *rss.TableError
	if err := s.SetTable(1, []uint8{6}); !errors.As(err, &bad) {
		t.Errorf("a queue of another port: %v", err)
	}
	if s.SetTable(9, []uint8{0}) == nil {
		t.Error("the table of no port")
	}
	s.SetHash(&rss.DefaultKey, 0)
	if _, q := sort(s, udp(mac(1), 0, 3)); q != s.Queues(1)[0].Number {
		t.Error("a frame without a hash goes to another queue than the first")
	}
}

// TestSort_Inner: flows inside one tunnel are spread, by their own headers.
func TestSort_Inner(t *testing.T) {
	s := sorter(t, full)
	if _, err := s.Set(0, VPort{Weight: 100, VRSS: true, VMMQ: true, Queues: 8}); err != nil {
		t.Fatal(err)
	}
	o := tunnel.Outer{Ethernet: eth.Ethernet{Dst: mac(1)}, Src: netip.MustParseAddr("192.0.2.1"), Dst: netip.MustParseAddr("192.0.2.2")}
	for flow := range uint16(300) {
		sort(s, o.Append(nil, tunnel.Header{Kind: tunnel.NVGRE, ID: 5}, udp(mac(1), 0, flow)))
	}
	for i, q := range s.Queues(0) {
		if q.Frames == 0 {
			t.Errorf("queue %d of 8 has nothing", i)
		}
	}
}

// TestRefused: what cannot be is refused by its name.
func TestRefused(t *testing.T) {
	one := VPort{Weight: 100, Queues: 1}
	for name, c := range map[string]struct {
		cfg func(*Config)
		n   int
		v   VPort
	}{
		"*VMQ":                    {func(c *Config) { c.VMQ = false }, 1, one},
		"*RssOrVmqPreference":     {func(c *Config) { c.PreferVMQ = false }, 1, one},
		"virtual port":            {nil, 128, one},
		"VmqWeight":               {nil, 1, VPort{Weight: 101, Queues: 1}},
		"VmmqEnabled":             {nil, 1, VPort{Weight: 1, VMMQ: true, Queues: 1}},
		"VmmqQueuePairs":          {nil, 1, VPort{Weight: 1, Queues: 129}},
		"processor":               {nil, 1, VPort{Weight: 1, Queues: 1, Processor: 4}},
		"number of virtual ports": {func(c *Config) { c.VPorts = 1 }, 1, one},
	} {
		cfg := full
		if c.cfg != nil {
			c.cfg(&cfg)
		}
		s := sorter(t, cfg)
		if name == "number of virtual ports" {
			if _, err := s.Set(2, one); err != nil {
				t.Fatal(err)
			}
		}
		var e *FieldError
		if _, err := s.Set(c.n, c.v); !errors.As(err, &e) || e.Field != name || e.Want == "" {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := s.Set(0, one); err != nil {
			t.Errorf("%s: the default port: %v", name, err)
		}
	}
	for field, c := range map[string]Config{
		"MaxNumVmqs": {}, "MaxNumMacAddrFilters": {VPorts: 1, MACs: 128}, "MaxNumVlanFilters": {VPorts: 1, MACs: 1},
		"receive queues": {VPorts: 1, MACs: 1, VLANs: 1, Queues: 1025}, "processors": {VPorts: 1, MACs: 1, VLANs: 1, Queues: 1},
	} {
		var e *FieldError
		if _, err := New(c); !errors.As(err, &e) || e.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// TestAddFilter_Refused: filters that cannot be, and more than there may be.
func TestAddFilter_Refused(t *testing.T) {
	for field, c := range map[string]struct {
		cfg func(*Config)
		n   int
		f   Filter
	}{
		"virtual port":      {nil, 0, Filter{MAC: mac(1)}},
		"address":           {nil, 1, Filter{MAC: eth.Broadcast}},
		"VLAN":              {nil, 1, Filter{MAC: mac(1), VLAN: 4095}},
		"*VMQVlanFiltering": {func(c *Config) { c.VLANFiltering = false }, 1, Filter{MAC: mac(1), VLAN: 5}},
		"virtual network":   {nil, 1, Filter{MAC: mac(1), AnyVLAN: true, Network: 1}},
		"filter":            {nil, 1, Filter{MAC: mac(9), AnyVLAN: true}},
		"number of filters": {func(c *Config) { c.MACs = 1 }, 1, Filter{MAC: mac(1)}},
		"number of VLANs":   {func(c *Config) { c.VLANs = 1 }, 1, Filter{MAC: mac(1), VLAN: 6}},
	} {
		cfg := full
		if c.cfg != nil {
			c.cfg(&cfg)
		}
		s := sorter(t, cfg)
		add(t, s, 1, Filter{MAC: mac(9), AnyVLAN: true})
		if field == "number of VLANs" {
			add(t, s, 2, Filter{MAC: mac(8), VLAN: 5})
		}
		var e *FieldError
		if err := s.AddFilter(c.n, c.f); !errors.As(err, &e) || e.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// TestQueues_Kept: whatever ports ask for, a queue belongs to one port at a time, none is lost, and no frame is without one.
func TestQueues_Kept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, err := New(full)
		if err != nil {
			t.Fatal(err)
		}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			n := rapid.IntRange(0, 5).Draw(t, "port")
			if rapid.IntRange(0, 3).Draw(t, "step") == 0 {
				s.Remove(n)
			} else if _, err := s.Set(n, VPort{Weight: rapid.IntRange(max(0, 1-n), 100).Draw(t, "weight"), VRSS: true,
				VMMQ: rapid.Bool().Draw(t, "vmmq"), Queues: rapid.IntRange(1, 20).Draw(t, "queues")}); err != nil {
				t.Fatal(err)
			}
			seen := map[int]bool{}
			for p := range 6 {
				for _, q := range s.Queues(p) {
					if seen[q.Number] || q.Number < 0 || q.Number >= full.Queues {
						t.Fatalf("queue %d is there twice, or cannot be", q.Number)
					}
					seen[q.Number] = true
				}
			}
			if len(seen)+len(s.free) != full.Queues || len(s.Queues(0)) == 0 {
				t.Fatalf("%d queues in use and %d free, of %d; the default port has %d", len(seen), len(s.free), full.Queues, len(s.Queues(0)))
			}
		}
	})
}

// TestLookahead: the part that the switch reads ends with the headers, where buffers are split.
func TestLookahead(t *testing.T) {
	var h eth.Headers
	h.Parse(udp(mac(1), 0, 1))
	cfg := full
	if n := sorter(t, cfg).LookaheadEnd(&h); n != 0 {
		t.Errorf("not split, and it ends at %d", n)
	}
	cfg.Lookahead = true
	if n := sorter(t, cfg).LookaheadEnd(&h); n != 14+20+8 {
		t.Errorf("it ends at %d", n)
	}
}

// TestSort_Allocations: a frame costs no allocation.
func TestSort_Allocations(t *testing.T) {
	s := sorter(t, full)
	add(t, s, 1, Filter{MAC: mac(1), AnyVLAN: true})
	b := udp(mac(1), 5, 1)
	if n := testing.AllocsPerRun(100, func() { sort(s, b) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// BenchmarkSort: frames to 127 virtual ports.
func BenchmarkSort(b *testing.B) {
	cfg := full
	cfg.Queues = 256
	s := sorter(b, cfg)
	var frames [Most][]byte
	for n := 1; n <= Most; n++ {
		add(b, s, n, Filter{MAC: mac(byte(n)), AnyVLAN: true})
		frames[n-1] = udp(mac(byte(n)), 0, uint16(n))
	}
	n := 0
	for b.Loop() {
		sort(s, frames[n])
		n = (n + 1) % Most
	}
}
