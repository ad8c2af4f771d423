package ipoib

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/fabric/topology"
	"github.com/softvpi/softvpi/internal/subnet"
	"github.com/softvpi/softvpi/internal/subnet/partition"
	"github.com/softvpi/softvpi/wire/ib"
)

func defaults(int) Config { return Config{} }

// TestPacketsArrive: with the subnet manager's broadcast group interfaces come up, resolve each other by ARP and
// neighbour discovery, and packets of all sizes up to the MTU arrive (RFC 4391 5, 9).
func TestPacketsArrive(t *testing.T) {
	for _, paths := range []bool{false, true} {
		w := newNetwork(t, 3, subnet.Config{}, func(int) Config { return Config{QueryPaths: paths} })
		w.run(5 * time.Second)
		for n, h := range w.hosts {
			if h.State() != Up || h.has(Connected) != 1 || h.MTU() != 2044 {
				t.Fatalf("host %d is %v with MTU %d, events %v", n, h.State(), h.MTU(), h.events)
			}
			if h.attached[broadcastMGID(linkLocalScope, 0xffff)] == 0 {
				t.Fatalf("host %d is not attached to the broadcast group", n)
			}
		}
		w.asked = 0
		for _, pair := range [][2]netip.Addr{{v4(0), v4(1)}, {v6(0), v6(1)}} {
			var want [][]byte
			for _, size := range []int{0, 1, 100, 1400, w.hosts[0].MTU() - 48} {
				p := udp(pair[0], pair[1], size)
				want = append(want, p)
				w.send(w.hosts[0], p)
			}
			w.run(time.Second)
			if got := w.hosts[1].got; !slices.EqualFunc(got, want, bytes.Equal) {
				t.Errorf("%v: %d packets of %d arrived", pair, len(got), len(want))
			}
			w.hosts[1].got = nil
			w.send(w.hosts[1], udp(pair[1], pair[0], 5)) // the way back is known already
			if w.hosts[0].Deadline(); len(w.hosts[1].neighbours) == 0 {
				t.Error("the host that was asked has not learned the address of the one that asked")
			}
		}
		if queried := w.asked > 2; queried != paths { // 2: joins of the solicited-node groups to send to them
			t.Errorf("QueryPaths %v: %d requests", paths, w.asked)
		}
		if len(w.hosts[2].got) != 0 || len(w.hosts[2].neighbours) != 0 {
			t.Error("the third host took part")
		}
	}
}

// TestUnansweredJoin: an unanswered request to the subnet administration is repeated SaRetries times, SaTimeout
// apart, and the join starts again after a while.
func TestUnansweredJoin(t *testing.T) {
	w := newNetwork(t, 2, subnet.Config{}, func(int) Config { return Config{SATimeout: 500 * time.Millisecond, SARetries: 3} })
	w.deaf, w.asked = true, 0
	h := w.hosts[1]
	w.run(1999 * time.Millisecond)
	if c := h.Counters(); c.Requests != 1 || c.Repeated != 3 || c.Unanswered != 0 || h.has(JoinFailed) != 0 {
		t.Fatalf("before the last time-out: %+v", c)
	}
	w.run(2 * time.Millisecond)
	if c := h.Counters(); c.Unanswered != 1 || h.has(JoinFailed) != 1 || h.State() != Joining {
		t.Fatalf("after the last time-out: %+v", c)
	}
	w.deaf = false
	w.run(2 * time.Second)
	if h.State() != Up {
		t.Error("the interface does not come up when the administration answers again")
	}
}

// TestPartitionRules: an interface gets its P_Key by the rules of part_man (WinOF 5.50, 5.2): a full P_Key needs full
// membership; a limited one uses the full key of the same number if the port has it, else the limited one; none means
// the first of the table.
func TestPartitionRules(t *testing.T) {
	for _, c := range []struct {
		name  string
		want  ib.PKey
		table []ib.PKey
		key   ib.PKey
		index int
	}{
		{"first of the table", 0, []ib.PKey{0x8001, 0xffff}, 0x8001, 0},
		{"empty table", 0, []ib.PKey{0, 0xffff}, 0, 0},
		{"full", 0xf123, []ib.PKey{0xffff, 0x7123, 0xf123}, 0xf123, 2},
		{"full where only limited is there", 0xf123, []ib.PKey{0xffff, 0x7123}, 0, 0},
		{"limited", 0x7123, []ib.PKey{0xffff, 0x7123}, 0x7123, 1},
		{"limited where full is there too", 0x7123, []ib.PKey{0xffff, 0x7123, 0xf123}, 0xf123, 2},
		{"limited where full alone is there", 0x7123, []ib.PKey{0xf123}, 0xf123, 0},
		{"not there", 0xf123, []ib.PKey{0xffff, 0xf124}, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			i, err := New(Config{PKey: c.want}, func() uint64 { return 7 })
			if err != nil {
				t.Fatal(err)
			}
			i.SetQueuePair(0, testQPN)
			p := Port{Active: true, LID: 5, SMLID: 1, GID: ib.GID{0xfe, 0x80, 15: 1}, MTU: ib.MTU4096, PKeys: c.table}
			i.SetPort(0, p)
			key, index := i.PKey()
			if key != c.key || index != c.index {
				t.Errorf("has %#x at %d, want %#x at %d", key, index, c.key, c.index)
			}
			if state := i.State(); (state == Joining) != (c.key != 0) || state != Joining && state != NoPartition {
				t.Errorf("the interface is %v", state)
			}
			p.PKeys = append([]ib.PKey{0xf555}, p.PKeys...) // the subnet manager writes the table again
			i.SetPort(0, p)
			if _, again := i.PKey(); c.want != 0 && c.key != 0 && again != c.index+1 {
				t.Errorf("after a shift of the table its index is %d", again)
			}
		})
	}
}

// TestDisconnectedUntilPartition: an interface on a partition stays disconnected until the port's table has its
// P_Key, then comes up, and goes down when the key is removed.
func TestDisconnectedUntilPartition(t *testing.T) {
	const key = 0xf123
	w := newNetwork(t, 2, subnet.Config{}, func(int) Config { return Config{PKey: key} })
	h := w.hosts[1]
	if h.State() != NoPartition {
		t.Fatalf("without the key the interface is %v, want no partition", h.State())
	}
	if _, ok := h.Send(w.now, udp(v4(1), v4(0), 1)); ok || h.Counters().DroppedDown != 1 {
		t.Error("a packet passed a disconnected interface")
	}
	p := w.port(h)
	p.PKeys = []ib.PKey{0xffff, key}
	h.SetPort(w.now, p)
	if h.State() != Joining {
		t.Fatalf("with the key it is %v", h.State())
	}
	h.SetPort(w.now, w.port(h))
	if h.State() != NoPartition || len(h.queries) != 0 || len(h.groups) != 0 {
		t.Errorf("without the key it is %v, %d requests, %d groups", h.State(), len(h.queries), len(h.groups))
	}
}

// TestMTU: the MTU is the smallest of the configured one, the broadcast group's and the link's. If the configured one
// is larger than the group's, one warning says so.
func TestMTU(t *testing.T) {
	four := partition.Default()
	four.List[0].Flags.MTU = uint8(ib.MTU4096)
	for _, c := range []struct {
		name    string
		subnet  subnet.Config
		mtu     int
		want    int
		warning bool
	}{
		{"2048 in the subnet", subnet.Config{}, 0, 2044, true},
		{"1500 configured", subnet.Config{}, 1500, 1500, false},
		{"2044 configured", subnet.Config{}, 2044, 2044, false},
		{"4096 in the subnet", subnet.Config{Partitions: four}, 0, 4092, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newNetwork(t, 2, c.subnet, func(int) Config { return Config{MTU: c.mtu} })
			w.run(time.Second)
			h := w.hosts[1]
			if h.State() != Up || h.MTU() != c.want || h.has(MTUAboveSubnet) == 1 != c.warning {
				t.Fatalf("%v, MTU %d, events %+v", h.State(), h.MTU(), h.events)
			}
			w.send(h, udp(v4(1), v4(0), c.want-28))
			w.send(h, udp(v4(1), v4(0), c.want-27))
			w.run(time.Second)
			if got := w.hosts[0].got; len(got) != 1 || len(got[0]) != c.want || h.Counters().DroppedLong != 1 {
				t.Errorf("%d packets arrived, %d dropped", len(got), h.Counters().DroppedLong)
			}
		})
	}
}

// TestReregister: when the subnet manager asks clients to register again, or another one becomes master, every group
// is joined again and traffic continues.
func TestReregister(t *testing.T) {
	w := newNetwork(t, 2, subnet.Config{}, defaults)
	w.run(time.Second)
	h := w.hosts[1]
	w.send(h, udp(v4(1), v4(0), 1))
	w.run(time.Second)
	groups, before := len(h.groups), h.Counters().Requests
	h.reregister++
	h.SetPort(w.now, w.port(h))
	if h.State() != Up {
		t.Error("the interface went down")
	}
	w.run(time.Second)
	if n := h.Counters().Requests - before; int(n) < groups {
		t.Errorf("%d requests for %d groups", n, groups)
	}
	w.hosts[0].got = nil
	w.send(h, udp(v4(1), v4(0), 1))
	w.run(time.Second)
	if len(w.hosts[0].got) != 1 {
		t.Error("packets no longer arrive")
	}
}

// TestLIDChange: a port that gets another LID announces its addresses, and its neighbours send to the new LID.
func TestLIDChange(t *testing.T) {
	w := newNetwork(t, 2, subnet.Config{}, defaults)
	w.run(time.Second)
	a, b := w.hosts[0], w.hosts[1]
	w.send(a, udp(v4(0), v4(1), 1))
	w.run(time.Second)
	lid := a.neighbours[v4(1)].to.LID
	p := w.port(b)
	if lid != p.LID {
		t.Fatalf("sends to %d, want %d", lid, p.LID)
	}
	b.sent = nil
	p.LID = 77
	b.SetPort(w.now, p)
	announced := 0
	for x, ok := b.Take(); ok; x, ok = b.Take() {
		d, is := x.(Datagram)
		if !is {
			continue
		}
		announced++
		in := Arrival{SLID: p.LID, SrcQP: b.qpn, HasGRH: true, SGID: p.GID, Data: d.Data}
		a.Receive(w.now, &in)
	}
	if announced != 2 {
		t.Errorf("%d announcements, want one for each address", announced)
	}
	if got := a.neighbours[v4(1)].to.LID; got != p.LID {
		t.Errorf("still sends to %d", got)
	}
}

// TestPortDownAndUp: when a port goes down its interface leaves everything, and comes back by itself.
func TestPortDownAndUp(t *testing.T) {
	w := newNetwork(t, 2, subnet.Config{}, defaults)
	w.run(time.Second)
	h := w.hosts[1]
	down := w.port(h)
	down.Active = false
	h.SetPort(w.now, down)
	w.run(0)
	if h.State() != Down || h.has(Disconnected) != 1 || len(h.attached) != 0 {
		t.Fatalf("%v, %d groups attached", h.State(), len(h.attached))
	}
	h.SetPort(w.now, w.port(h))
	w.run(time.Second)
	w.send(h, udp(v4(1), v4(0), 1))
	w.run(time.Second)
	if h.State() != Up || len(w.hosts[0].got) != 1 {
		t.Errorf("%v, %d packets", h.State(), len(w.hosts[0].got))
	}
	h.Stop(w.now)
	w.run(time.Second)
	if h.State() != Down || len(h.attached) != 0 {
		t.Errorf("stopped it is %v, %d groups attached", h.State(), len(h.attached))
	}
}

// TestConfigLimits: an invalid Config is refused with its field, and its limits are those of the registry.
func TestConfigLimits(t *testing.T) {
	for _, c := range []struct {
		c  Config
		ok bool
	}{
		{Config{}, true}, {Config{PKey: 0x8000}, false}, {Config{PKey: 1}, true}, {Config{Scope: 15}, false},
		{Config{MTU: 1499}, false}, {Config{MTU: 1500}, true}, {Config{MTU: 4092}, true}, {Config{MTU: 4093}, false},
		{Config{SATimeout: 249 * time.Millisecond}, false}, {Config{SATimeout: 250 * time.Millisecond}, true},
		{Config{SATimeout: time.Minute + 1}, false},
		{Config{SARetries: -1}, false}, {Config{SARetries: 64}, true}, {Config{SARetries: 65}, false},
		{Config{GeneralQueryRuns: 11}, false}, {Config{QueryResponseRuns: 11}, false}, {Config{LocalMaxAge: 21}, false},
		{Config{LocalInterval: 9 * time.Second}, false}, {Config{LocalInterval: 20 * time.Minute}, true}, {Config{MaxGroups: 63}, false},
		{Config{MaxGroups: 1025}, false},
	} {
		_, err := New(c.c, func() uint64 { return 0 })
		if (err == nil) != c.ok {
			t.Errorf("%+v: error %v, valid: %v", c.c, err, c.ok)
		}
		if _, is := err.(*ConfigError); err != nil && !is {
			t.Errorf("%+v: a %T", c.c, err)
		}
	}
}

// TestPartitionOfTheSubnet: members of a partition that the subnet manager made reach each other, also limited ones
// full ones, and the third host is not in it.
func TestPartitionOfTheSubnet(t *testing.T) {
	top, err := topology.Star(3, topology.Rate{})
	if err != nil {
		t.Fatal(err)
	}
	parts, err := partition.Parse(fmt.Sprintf("Default=0x7fff, ipoib: ALL=full;\nred=0x123, ipoib: %#x=full, %#x=limited;\n",
		top.Nodes[0].Ports[1].GUID, top.Nodes[1].Ports[1].GUID))
	if err != nil {
		t.Fatal(err)
	}
	w := newNetwork(t, 3, subnet.Config{Partitions: parts}, func(n int) Config {
		return Config{PKey: [...]ib.PKey{0x8123, 0x0123,
			0x8123}[n]}
	})
	w.run(time.Second)
	for n, want := range []State{Up, Up, NoPartition} {
		if s := w.hosts[n].State(); s != want {
			t.Errorf("host %d is %v, want %v", n, s, want)
		}
	}
	w.send(w.hosts[0], udp(v4(0), v4(1), 1))
	w.run(time.Second)
	w.send(w.hosts[1], udp(v4(1), v4(0), 1))
	w.run(time.Second)
	if a, b := len(w.hosts[0].got), len(w.hosts[1].got); a != 1 || b != 1 {
		t.Errorf("the members got %d and %d packets, want 1 each", a, b)
	}
}
