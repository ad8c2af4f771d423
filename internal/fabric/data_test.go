package fabric

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/fabric/topology"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// TestPacketTakesItsTime: a packet arrives unchanged but for its lane, after the time that its bits take on two
// links: with 8b/10b encoding up to QDR, 64b/66b above.
func TestPacketTakesItsTime(t *testing.T) {
	for _, c := range []struct {
		rate topology.Rate
		gbps float64
	}{
		{topology.Rate{Width: mad.Width1x, Speed: mad.SpeedSDR}, 2}, {topology.Rate{Width: mad.Width4x, Speed: mad.SpeedQDR}, 32},
		{topology.Rate{Width: mad.Width4x, Speed: mad.SpeedFDR10}, 40},
		{topology.Rate{Width: mad.Width4x, Speed: mad.SpeedEDR}, 100}, {topology.Rate{Width: mad.Width12x, Speed: mad.SpeedHDR}, 618.18},
		{topology.Rate{Width: mad.Width2x, Speed: mad.SpeedXDR}, 412.12},
	} {
		f := star(t, 2, c.rate)
		b := frame(1, 2, 3, ib.PKeyDefault, 4096, 7)
		transmit(t, f, 0, 0, b)
		want := 2 * (time.Duration(float64(len(b)+4)*8/c.gbps) + linkLatency)
		at := settle(f)
		if off := at.Sub(0) - want; off < -want/100 || off > want/100 {
			t.Errorf("%v: arrived after %v, want %v", c.rate, at.Sub(0), want)
		}
		got := received(f, at, 1)
		if ib.LRH(b).SetVL(3); !bytes.Equal(got, b) {
			t.Errorf("%v: the packet arrived as\n% x, want\n% x", c.rate, got[:24], b[:24])
		}
		if i := f.ports[f.nodes[1].first+1].traffic; i.rcvPkts != 1 || i.rcvData != uint64(len(b)/4) {
			t.Errorf("the receiver counts %+v, want one packet", i)
		}
	}
}

func TestTransmitRefuses(t *testing.T) {
	f := star(t, 2, topology.Rate{})
	good := frame(1, 2, 0, ib.PKeyDefault, 8, 1)
	change := func(do func(ib.LRH)) []byte {
		b := bytes.Clone(good)
		do(ib.LRH(b))
		return b
	}
	for name, b := range map[string][]byte{
		"short": good[:20], "not in words": good[:len(good)-1], "long": make([]byte, MaxFrame+4),
		"length":      change(func(h ib.LRH) { h.SetPktLen(5) }),
		"raw":         change(func(h ib.LRH) { h.SetNextHeader(ib.LNHRaw) }),
		"no room for": change(func(h ib.LRH) { h.SetNextHeader(ib.LNHGlobal) }),
	} {
		var e *frameError
		if ok, err := f.Transmit(0, Place{0, 1}, b, nil, nil); ok || !errors.As(err, &e) {
			t.Errorf("%s: taken %v, error %v; want a refusal", name, ok, err)
		}
	}
}

// TestDataDrops: which packets are dropped, where, and how this is counted and reported.
func TestDataDrops(t *testing.T) {
	sw, key := Place{2, 0}, ib.PKey(0x8005)
	port := func(f *Fabric, n int, number uint8) *port { return f.port(Place{n, number}) }
	for _, c := range []struct {
		name    string
		change  func(f *Fabric)
		frame   []byte
		at      Place
		counter []counter
	}{
		{"no entry", nil, frame(1, 9, 0, ib.PKeyDefault, 8, 1), Place{2, 1}, []counter{ctrSwitchRelayErrors, ctrDLIDMapping}},
		{"back by where it came", func(f *Fabric) { f.nodes[2].sw.block(0)[2] = 1 }, frame(1, 2, 0, ib.PKeyDefault, 8, 1), Place{2, 1},
			[]counter{ctrSwitchRelayErrors, ctrLooping}},
		{"port that is not active", func(f *Fabric) { port(f, 2, 2).info.PortState = mad.PortInit }, frame(1, 2, 0, ib.PKeyDefault, 8, 1),
			Place{2, 2},
			[]counter{ctrXmitDiscards, ctrInactiveDiscards}},
		{"sender that is not active", func(f *Fabric) { port(f, 0, 1).info.PortState = mad.PortArmed },
			frame(1, 2, 0, ib.PKeyDefault, 8, 1), Place{0, 1},
			[]counter{ctrXmitDiscards, ctrInactiveDiscards}},
		{"another's LID", func(f *Fabric) { port(f, 1, 1).info.LID = 77 }, frame(1, 2, 0, ib.PKeyDefault, 8, 1), Place{1, 1},
			[]counter{ctrRcvErrors}},
		{"too long for the link", func(f *Fabric) { port(f, 2, 2).info.NeighborMTU = ib.MTU256 }, frame(1, 2, 0, ib.PKeyDefault, 2048, 1),
			Place{2, 2},
			[]counter{ctrXmitDiscards, ctrMTUDiscards}},
		{"too long for the sender's", func(f *Fabric) { port(f, 0, 1).info.NeighborMTU = ib.MTU256 },
			frame(1, 2, 0, ib.PKeyDefault, 2048, 1), Place{0, 1},
			[]counter{ctrXmitDiscards, ctrMTUDiscards}},
		{"no lane", func(f *Fabric) { port(f, 2, 2).info.OperationalVLs = 1 }, frame(1, 2, 1, ib.PKeyDefault, 8, 1), Place{2, 1},
			[]counter{ctrSwitchRelayErrors, ctrVLMapping}},
		{"no lane of the sender", func(f *Fabric) {
			m := eachLane
			m[1] = 15
			port(f, 0, 1).setLanes(&f.nodes[0], 0, m)
		}, frame(1, 2, 1, ib.PKeyDefault, 8, 1), Place{0, 1}, []counter{ctrXmitDiscards}},
		{"P_Key on its way in", func(f *Fabric) { port(f, 2, 1).info.PartitionEnforcementInbound = true }, frame(1, 2, 0, key, 8, 1),
			Place{2, 1}, []counter{ctrRcvConstraint}},
		{"P_Key on its way out", func(f *Fabric) { port(f, 2, 2).info.PartitionEnforcementOutbound = true }, frame(1, 2, 0, key, 8, 1),
			Place{2, 2}, []counter{ctrXmitConstraint}},
		{"limited to limited", func(f *Fabric) {
			p := port(f, 2, 2)
			p.info.PartitionEnforcementOutbound, p.table().pkeys = true, []ib.PKey{key.Base()}
		}, frame(1, 2, 0, key.Base(), 8, 1), Place{2, 2}, []counter{ctrXmitConstraint}},
		{"a wrong CRC", func(f *Fabric) { f.SetLoss(Place{2, 1}, 1) }, frame(1, 2, 0, ib.PKeyDefault, 8, 1), Place{2, 1},
			[]counter{ctrSymbolErrors, ctrRcvErrors, ctrLocalPhysical}},
		{"a group of nobody", nil, frame(1, 0xc000, 0, ib.PKeyDefault, 8, 1), Place{2, 1}, []counter{ctrSwitchRelayErrors, ctrDLIDMapping}},
	} {
		f := star(t, 2, topology.Rate{})
		if c.change != nil {
			c.change(f)
		}
		transmit(t, f, 0, 0, c.frame)
		at := settle(f)
		if got := received(f, at, 1); len(got) != 0 {
			t.Errorf("%s: the packet arrived", c.name)
		}
		for _, x := range c.counter {
			if got := f.port(c.at).all().value[x]; got != 1 {
				t.Errorf("%s: counter %d of %v is %d, want 1", c.name, x, c.at, got)
			}
		}
		settle(f)
		conserved(t, f)
		constraint := c.counter[0] == ctrRcvConstraint || c.counter[0] == ctrXmitConstraint
		if tr := f.traps.all; constraint != (len(tr) == 1) || constraint && (tr[0].number != mad.TrapBadPKeySwitchPort ||
			tr[0].port != f.index(f.port(sw)) ||
			mad.ParseTrapSwitchPKey(&tr[0].details).Port != c.at.Port) {
			t.Errorf("%s: traps %+v", c.name, tr)
		}
	}
}

// TestPartitionsPass: a full member's P_Key in a port's table lets limited members' packets pass, and the other way
// round.
func TestPartitionsPass(t *testing.T) {
	f := star(t, 2, topology.Rate{})
	p := f.port(Place{2, 2})
	p.info.PartitionEnforcementOutbound, p.table().pkeys = true, []ib.PKey{0, 0x8005, 0x0006}
	for i, key := range []ib.PKey{0x8005, 0x0005, 0x8006} {
		transmit(t, f, settle(f), 0, frame(1, 2, 0, key, 8, uint64(i)))
		if got := received(f, settle(f), 1); len(got) == 0 || numberOf(got) != uint64(i) {
			t.Errorf("P_Key %#x: %d bytes arrived, want the packet", key, len(got))
		}
	}
}

// TestLimitedMemberSends: packets of a limited member pass its switch port, whose table is the member's own; those of
// another partition do not.
func TestLimitedMemberSends(t *testing.T) {
	f := star(t, 2, topology.Rate{})
	p := f.port(Place{2, 1})
	p.info.PartitionEnforcementInbound, p.table().pkeys = true, []ib.PKey{0x0006}
	for i, key := range []ib.PKey{0x0006, 0x0005} {
		transmit(t, f, settle(f), 0, frame(1, 2, 0, key, 8, uint64(i)))
		if got := received(f, settle(f), 1); (len(got) > 0) != (key == 0x0006) {
			t.Errorf("P_Key %#x: %d bytes arrived", key, len(got))
		}
	}
}

// conserved checks that when nothing is under way no port counts room at the other end as taken.
func conserved(t interface {
	Errorf(string, ...any)
	Helper()
}, f *Fabric) {
	t.Helper()
	for i := range f.ports {
		if l := f.ports[i].lanes; l != nil {
			for vl := range l.out {
				if o := &l.out[vl]; o.used != 0 || o.queue.count != 0 {
					t.Errorf("%v lane %d: %d bytes count as taken, %d packets wait", f.place(&f.ports[i]), vl, o.used, o.queue.count)
				}
			}
			if l.sending {
				t.Errorf("%v still sends", f.place(&f.ports[i]))
			}
		}
	}
}

// TestMulticast: a multicast packet goes once to each port of the group, not back, and its room is given back when
// all have it.
func TestMulticast(t *testing.T) {
	f := star(t, 20, topology.Rate{})
	f.nodes[20].sw.cast = [][]uint16{make([]uint16, 32), make([]uint16, 32)}
	f.nodes[20].sw.cast[0][3], f.nodes[20].sw.cast[1][3] = 0b1110, 0b11 // ports 1, 2, 3, 16, 17
	transmit(t, f, 0, 0, frame(1, 0xc003, 0, ib.PKeyDefault, 256, 9))
	at := settle(f)
	for i := range 20 {
		got := received(f, at, i)
		if want := i == 1 || i == 2 || i == 15 || i == 16; (len(got) > 0) != want || want && numberOf(got) != 9 {
			t.Errorf("node %d: %d bytes arrived", i, len(got))
		}
	}
	settle(f)
	conserved(t, f)
	f.nodes[20].sw.info.MulticastFDBTop = 0xc002
	transmit(t, f, at, 0, frame(1, 0xc003, 0, ib.PKeyDefault, 256, 9))
	if got := received(f, settle(f), 1); len(got) != 0 {
		t.Error("a packet above MulticastFDBTop was forwarded")
	}
}

// TestUnplugged: packets to an unplugged port are dropped, and so are those not yet received when it is unplugged.
func TestUnplugged(t *testing.T) {
	f := star(t, 2, topology.Rate{})
	for range 3 {
		transmit(t, f, settle(f), 0, frame(1, 2, 0, ib.PKeyDefault, 4096, 1))
	}
	f.Plug(settle(f), Place{1, 1}, false)
	for range 20 {
		transmit(t, f, settle(f), 0, frame(1, 2, 0, ib.PKeyDefault, 4096, 1))
	}
	if got := received(f, settle(f), 1); len(got) != 0 {
		t.Error("an unplugged adapter received a packet")
	}
	conserved(t, f)
}

// TestEverythingArrivesInOrder: on random trees of switches and with receivers of any pace, each packet arrives once,
// packets of one service level between two hosts arrive in order, and in the end all room is given back. If links go
// down meanwhile, packets may be lost but nothing else.
func TestEverythingArrivesInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		top, err := topology.FatTree(topology.FatTreeShape{Radix: 4, Levels: rapid.IntRange(2, 3).Draw(t, "levels"),
			Hosts: rapid.IntRange(2, 8).Draw(t, "hosts")},
			topology.Rate{Width: mad.Width1x, Speed: mad.Speed(rapid.Uint8Range(1, 9).Draw(t, "speed"))})
		if err != nil {
			t.Fatal(err)
		}
		f := bringUp(top)
		hosts, _, _, _ := top.Counts()
		faults := rapid.Bool().Draw(t, "faults")
		type flow struct {
			from, to int
			sl       uint8
		}
		sentOf, seenOf := map[flow]uint64{}, map[flow]uint64{}
		var now clock.Time
		take := func(at int) bool {
			b := received(f, now, at)
			if len(b) == 0 {
				return false
			}
			h := ib.LRH(b)
			k := flow{int(h.SLID()) - 1, at, h.SL()}
			if got := numberOf(b); got < seenOf[k] || !faults && got != seenOf[k] || got >= sentOf[k] {
				t.Fatalf("%+v: packet %d arrived, want %d, of %d", k, got, seenOf[k], sentOf[k])
			} else {
				seenOf[k] = got + 1
			}
			return true
		}
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			at := rapid.IntRange(0, hosts-1).Draw(t, "host")
			switch what := rapid.IntRange(0, 9).Draw(t, "what"); {
			case what < 5:
				k := flow{at, rapid.IntRange(0, hosts-1).Draw(t, "to"), rapid.Uint8Range(0, 15).Draw(t, "service level")}
				if k.from == k.to {
					continue
				}
				b := frame(ib.LID(k.from+1), ib.LID(k.to+1), k.sl, ib.PKeyDefault, 4*rapid.IntRange(2, 1024).Draw(t, "words"), sentOf[k])
				ok, err := f.Transmit(now, Place{at, 1}, b, nil, nil)
				if err != nil {
					t.Fatal(err)
				}
				if ok {
					sentOf[k]++
				}
			case what < 7:
				take(at)
			case what == 9 && faults:
				p := &f.ports[rapid.IntRange(0, len(f.ports)-1).Draw(t, "port")]
				if f.Check(f.place(p)) == nil {
					f.Unlink(now, f.place(p))
					f.Relink(now, f.place(p))
					p.info.PortState, f.ports[p.peer].info.PortState = mad.PortActive, mad.PortActive
				}
			default:
				now = now.Add(time.Duration(rapid.IntRange(0, 20_000).Draw(t, "time")))
				f.Advance(now)
			}
		}
		for again := true; again; {
			now = max(now, settle(f))
			again = false
			for i := range hosts {
				for take(i) {
					again = true
				}
			}
		}
		conserved(t, f)
		for k, n := range sentOf {
			if seenOf[k] != n && !faults {
				t.Errorf("%+v: %d of %d packets arrived", k, seenOf[k], n)
			}
		}
	})
}

// TestDataDoesNotAllocate: a packet takes no new memory once there has been as much traffic before.
func TestDataDoesNotAllocate(t *testing.T) {
	f := star(t, 2, topology.Rate{})
	b, in := frame(1, 2, 0, ib.PKeyDefault, 1024, 0), make([]*Parcel, 1)
	var now clock.Time
	if n := testing.AllocsPerRun(100, func() {
		if ok, err := f.Transmit(now, Place{0, 1}, b, nil, nil); !ok || err != nil {
			t.Fatal(ok, err)
		}
		if now = settle(f); f.Collect(now, Place{1, 1}, in) == 0 {
			t.Fatal("no packet arrived")
		}
		f.Release(now, in)
		settle(f)
	}); n != 0 {
		t.Errorf("%v allocations per packet, want none", n)
	}
}

// FuzzTransmit: no frame makes the fabric panic or keep room.
func FuzzTransmit(f *testing.F) {
	f.Add(frame(1, 2, 0, ib.PKeyDefault, 8, 1))
	f.Add(frame(1, 0xc000, 3, ib.PKeyDefault, 64, 1))
	f.Add(frame(1, ib.LIDPermissive, 15, 0, 4096, 1))
	f.Fuzz(func(t *testing.T, b []byte) {
		w := star(t, 3, topology.Rate{})
		w.nodes[3].sw.cast = [][]uint16{{0xffff, 0xf}}
		w.port(Place{3, 2}).info.PartitionEnforcementOutbound = true
		_, _ = w.Transmit(0, Place{0, 1}, b, nil, nil)
		if len(b) >= ib.LRHLen {
			ib.LRH(b).SetPktLen(len(b) / 4)
			_, _ = w.Transmit(0, Place{0, 1}, b, nil, nil)
		}
		now := settle(w)
		for i := range 3 {
			for len(received(w, now, i)) > 0 {
			}
		}
		settle(w)
		conserved(t, w)
	})
}
