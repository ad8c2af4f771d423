package neighbour

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/eth"
)

var (
	macA = eth.MAC{2, 0, 0, 0, 0, 0xa}
	macB = eth.MAC{2, 0, 0, 0, 0, 0xb}
	macC = eth.MAC{2, 0, 0, 0, 0, 0xc}

	families = map[string][2]netip.Addr{
		"ipv4": {netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")},
		"ipv6": {netip.MustParseAddr("fd00::1"), netip.MustParseAddr("fd00::2")},
	}
	sameAddr = cmp.Comparer(func(a, b netip.Addr) bool { return a == b })
)

const second = clock.Time(time.Second)

// inFamilies runs a test over IPv4 and IPv6, untagged and in a VLAN. a asks as macA with addr[0]; macB has addr[1].
func inFamilies(t *testing.T, test func(t *testing.T, vlan uint16, addr [2]netip.Addr)) {
	for name, addr := range families {
		for vlan, tag := range map[uint16]string{0: "", 100: "/vlan"} {
			t.Run(name+tag, func(t *testing.T) { test(t, vlan, addr) })
		}
	}
}

// engine returns an engine that answers for an address, after its announcement.
func engine(t *testing.T, mac eth.MAC, vlan uint16, addr netip.Addr) *Engine {
	t.Helper()
	e := New(Config{})
	if err := e.Answer(Key{vlan, addr}, mac); err != nil {
		t.Fatal(err)
	}
	frames(e)
	return e
}

// frames takes everything that an engine has to send.
func frames(e *Engine) (all [][]byte) {
	for f := e.Frame(nil); f != nil; f = e.Frame(nil) {
		all = append(all, f)
	}
	return all
}

// exchange carries frames between two engines until there are none.
func exchange(now clock.Time, a, b *Engine) {
	for {
		to, from := frames(a), frames(b)
		for _, f := range to {
			b.Receive(now, f)
		}
		for _, f := range from {
			a.Receive(now, f)
		}
		if len(to)+len(from) == 0 {
			return
		}
	}
}

func wantChanges(t *testing.T, e *Engine, want ...Change) {
	t.Helper()
	if d := cmp.Diff(want, append([]Change(nil), e.Changes()...), sameAddr); d != "" {
		t.Errorf("changes: %s", d)
	}
}

func wantFrames(t *testing.T, e *Engine, n int, to eth.MAC) {
	t.Helper()
	all := frames(e)
	if len(all) != n {
		t.Fatalf("%d frames are sent, want %d", len(all), n)
	}
	for _, f := range all {
		if got := eth.MAC(f); got != to {
			t.Errorf("a frame goes to %v, want %v", got, to)
		}
	}
}

// TestFind_AnsweredByItsOwner: who asks learns the MAC, and who was asked knows the asker without asking.
func TestFind_AnsweredByItsOwner(t *testing.T) {
	inFamilies(t, func(t *testing.T, vlan uint16, addr [2]netip.Addr) {
		a, b := engine(t, macA, vlan, addr[0]), engine(t, macB, vlan, addr[1])
		if _, known := a.Find(0, Key{vlan, addr[1]}, Source{macA, addr[0]}); known {
			t.Fatal("it is known before it was asked for")
		}
		exchange(0, a, b)
		wantChanges(t, a, Change{Key{vlan, addr[1]}, macB, true})
		wantChanges(t, b, Change{Key{vlan, addr[0]}, macA, true})
		if mac, known := a.Find(0, Key{vlan, addr[1]}, Source{macA, addr[0]}); !known || mac != macB {
			t.Errorf("%v, %v", mac, known)
		}
		if mac, known := b.Find(0, Key{vlan, addr[0]}, Source{macB, addr[1]}); !known || mac != macA || len(frames(b)) != 0 {
			t.Errorf("the asker is %v, %v to who was asked", mac, known)
		}
	})
}

// TestFind_OtherVLAN: an address is of its VLAN only.
func TestFind_OtherVLAN(t *testing.T) {
	for _, addr := range families {
		a, b := engine(t, macA, 1, addr[0]), engine(t, macB, 2, addr[1])
		a.Find(0, Key{1, addr[1]}, Source{macA, addr[0]})
		for _, f := range frames(a) {
			if b.Receive(0, f) || len(frames(b)) != 0 {
				t.Error("a question in VLAN 1 is answered in VLAN 2")
			}
		}
	}
}

// TestFind_NobodyAnswers: three questions to everybody, a second apart, and then a Change without an answer (RFC 4861
// 7.2.2, MAX_MULTICAST_SOLICIT).
func TestFind_NobodyAnswers(t *testing.T) {
	inFamilies(t, func(t *testing.T, vlan uint16, addr [2]netip.Addr) {
		a := engine(t, macA, vlan, addr[0])
		a.Find(0, Key{vlan, addr[1]}, Source{macA, addr[0]})
		to := eth.Broadcast
		if addr[1].Is6() {
			to, _ = eth.MulticastMAC(eth.SolicitedNode(addr[1]))
		}
		for i := range 3 {
			wantFrames(t, a, 1, to)
			if due := a.Deadline(); due != clock.Time(i+1)*second {
				t.Fatalf("after question %d the deadline is %v", i+1, due)
			}
			wantChanges(t, a)
			a.Find(a.Deadline()-1, Key{vlan, addr[1]}, Source{macA, addr[0]}) // asks no sooner
			a.Advance(a.Deadline())
		}
		wantFrames(t, a, 0, to)
		wantChanges(t, a, Change{Key: Key{vlan, addr[1]}})
		if a.Deadline() != clock.Never {
			t.Errorf("the deadline is %v after the end", a.Deadline())
		}
	})
}

// TestUse_OfSilentNeighbour: who was not heard of for its time is asked when it is used, by three questions to itself, and
// then is gone (RFC 4861 7.3.3).
func TestUse_OfSilentNeighbour(t *testing.T) {
	inFamilies(t, func(t *testing.T, vlan uint16, addr [2]netip.Addr) {
		a, b := engine(t, macA, vlan, addr[0]), engine(t, macB, vlan, addr[1])
		key := Key{vlan, addr[1]}
		a.Find(0, key, Source{macA, addr[0]})
		exchange(0, a, b)
		a.Changes()
		a.Advance(30 * second)
		a.Use(40*second, key)
		wantFrames(t, a, 0, macB)
		if a.Deadline() != 45*second {
			t.Fatalf("the check begins at %v, want 45 s", a.Deadline())
		}
		for range 3 {
			a.Advance(a.Deadline())
			wantFrames(t, a, 1, macB)
			wantChanges(t, a)
		}
		a.Advance(a.Deadline())
		wantChanges(t, a, Change{Key: key})
	})
}

// TestUse_OfNeighbourThatAnswers: a neighbour that is there stays, and nothing changes.
func TestUse_OfNeighbourThatAnswers(t *testing.T) {
	inFamilies(t, func(t *testing.T, vlan uint16, addr [2]netip.Addr) {
		a, b := engine(t, macA, vlan, addr[0]), engine(t, macB, vlan, addr[1])
		key := Key{vlan, addr[1]}
		a.Find(0, key, Source{macA, addr[0]})
		exchange(0, a, b)
		a.Changes()
		for now := clock.Time(0); now < 300*second; now += second {
			a.Use(now, key)
			a.Advance(now)
			exchange(now, a, b)
		}
		wantChanges(t, a)
		if n := a.Counters().Asked; n < 5 || n > 10 {
			t.Errorf("%d questions in five minutes, want one in some 35 s", n)
		}
	})
}

// TestIdle_NeighbourIsForgotten: nobody is asked about a neighbour that is not used, and its entry goes.
func TestIdle_NeighbourIsForgotten(t *testing.T) {
	addr := families["ipv4"]
	a, b := engine(t, macA, 0, addr[0]), engine(t, macB, 0, addr[1])
	a.Find(0, Key{0, addr[1]}, Source{macA, addr[0]})
	exchange(0, a, b)
	a.Changes()
	for a.Deadline() != clock.Never {
		a.Advance(a.Deadline())
		wantFrames(t, a, 0, macB)
	}
	wantChanges(t, a, Change{Key: Key{0, addr[1]}})
}

// TestReceive_MovedNeighbour: an announcement of a neighbour in the table changes its MAC; of another it is no news and
// makes no entry (RFC 826, RFC 4861 7.2.5).
func TestReceive_MovedNeighbour(t *testing.T) {
	inFamilies(t, func(t *testing.T, vlan uint16, addr [2]netip.Addr) {
		a, b := engine(t, macA, vlan, addr[0]), engine(t, macB, vlan, addr[1])
		a.Find(0, Key{vlan, addr[1]}, Source{macA, addr[0]})
		exchange(0, a, b)
		a.Changes()
		c := New(Config{})
		if err := c.Answer(Key{vlan, addr[1]}, macC); err != nil {
			t.Fatal(err)
		}
		for _, f := range frames(c) {
			a.Receive(second, f)
		}
		wantChanges(t, a, Change{Key{vlan, addr[1]}, macC, true})
		stranger := engine(t, macC, vlan, addr[0].Next().Next().Next())
		stranger.announce(Key{vlan, addr[0].Next().Next().Next()}, macC)
		for _, f := range frames(stranger) {
			if a.Receive(second, f) {
				t.Error("the announcement of a stranger is taken")
			}
		}
		wantChanges(t, a)
	})
}

// TestReceive_OverrideClear: an advertisement that does not override leaves the MAC, and makes the neighbour prove itself
// (RFC 4861 7.2.5).
func TestReceive_OverrideClear(t *testing.T) {
	addr := families["ipv6"]
	a, b := engine(t, macA, 0, addr[0]), engine(t, macB, 0, addr[1])
	key := Key{0, addr[1]}
	a.Find(0, key, Source{macA, addr[0]})
	exchange(0, a, b)
	a.Changes()
	d := eth.Discovery{Advertisement: true, Target: addr[1], Link: macC[:]}
	h := eth.Ethernet{Dst: macA, Src: macC, Type: eth.TypeIPv6}
	a.Receive(second, d.AppendPacket(h.Append(nil), addr[1], addr[0]))
	wantChanges(t, a)
	a.Use(second, key)
	if a.Deadline() != 6*second {
		t.Errorf("the check begins at %v, want 6 s", a.Deadline())
	}
}

// TestAnswer_ToCheckForDuplicates: who asks whether an address is free, from no address, gets the answer that it is not
// (RFC 5227 2.1.1, RFC 4862 5.4.3).
func TestAnswer_ToCheckForDuplicates(t *testing.T) {
	v4, v6 := engine(t, macA, 0, families["ipv4"][0]), engine(t, macA, 0, families["ipv6"][0])
	p := eth.ARP{Operation: eth.ARPRequest, SenderMAC: macB, TargetIP: families["ipv4"][0]}
	h := eth.Ethernet{Dst: eth.Broadcast, Src: macB, Type: eth.TypeARP}
	if !v4.Receive(0, p.Append(h.Append(nil))) {
		t.Error("the probe is not taken")
	}
	wantFrames(t, v4, 1, macB)
	d := eth.Discovery{Target: families["ipv6"][0]}
	h.Type = eth.TypeIPv6
	if !v6.Receive(0, d.AppendPacket(h.Append(nil), netip.IPv6Unspecified(), eth.SolicitedNode(d.Target))) {
		t.Error("the solicitation is not taken")
	}
	group, _ := eth.MulticastMAC(allNodes)
	wantFrames(t, v6, 1, group)
	wantChanges(t, v4)
	wantChanges(t, v6)
}

// TestReceive_Conflict: another station with an address of ours is counted, told of once, and not believed; the address is defended,
// at most every ten seconds (RFC 5227 2.4).
func TestReceive_Conflict(t *testing.T) {
	inFamilies(t, func(t *testing.T, vlan uint16, addr [2]netip.Addr) {
		a, thief := engine(t, macA, vlan, addr[0]), New(Config{})
		if err := thief.Answer(Key{vlan, addr[0]}, macB); err != nil {
			t.Fatal(err)
		}
		for _, f := range frames(thief) {
			a.Receive(0, f)
		}
		if got := a.Counters().Conflicts; got != 1 {
			t.Errorf("%d conflicts, want 1", got)
		}
		if mac, _ := a.Find(0, Key{vlan, addr[0]}, Source{}); mac != macA {
			t.Errorf("the address is at %v now", mac)
		}
		wantChanges(t, a)
		defence := frames(a)
		if len(defence) != 1 {
			t.Fatalf("it sends %d frames, want one to defend itself", len(defence))
		}
		if c := a.Conflicts(); len(c) != 1 || c[0] != (Conflict{Key: Key{vlan, addr[0]}, MAC: macB}) || a.Conflicts() != nil {
			t.Errorf("conflicts %v", c)
		}
		thief.Receive(0, defence[0])
		if c := thief.Conflicts(); len(c) != 1 || c[0].MAC != macA {
			t.Errorf("the other knows of the conflicts %v", c)
		}
		answer := frames(thief)
		a.Receive(clock.Time(defendInterval-1), answer[0])
		if n := len(frames(a)); n != 0 {
			t.Errorf("it defends itself %d times more within ten seconds", n)
		}
		a.Receive(clock.Time(defendInterval), answer[0])
		if n := len(frames(a)); n != 1 {
			t.Errorf("it defends itself %d times after ten seconds, want once", n)
		}
	})
}

// TestTable_Bounded: neighbours that nobody uses make room first, those in use stay, and a flood of askers leaves no more
// than the table holds.
func TestTable_Bounded(t *testing.T) {
	a := New(Config{Entries: 16})
	own := netip.MustParseAddr("10.0.0.1")
	if err := a.Answer(Key{0, own}, macA); err != nil {
		t.Fatal(err)
	}
	used, b := Key{0, netip.MustParseAddr("10.0.0.2")}, engine(t, macB, 0, netip.MustParseAddr("10.0.0.2"))
	a.Find(1, used, Source{macA, own})
	exchange(1, a, b)
	for i := range uint32(1000) {
		var v4 [4]byte
		binary.BigEndian.PutUint32(v4[:], 10<<24|1<<16|i)
		p := eth.ARP{Operation: eth.ARPRequest, SenderMAC: macC, SenderIP: netip.AddrFrom4(v4), TargetIP: own}
		h := eth.Ethernet{Dst: eth.Broadcast, Src: macC, Type: eth.TypeARP}
		a.Receive(2, p.Append(h.Append(nil)))
		frames(a)
		for _, c := range a.Changes() {
			if c.Key == used && !c.Known {
				t.Fatal("a neighbour in use makes room for an asker")
			}
		}
	}
	if len(a.entries) != 16 || a.Counters().Evicted != 1000-15 {
		t.Errorf("%d entries, %+v", len(a.entries), a.Counters())
	}
}

// TestAnswer_Refused: an address has one station, and is one that stations have.
func TestAnswer_Refused(t *testing.T) {
	e := engine(t, macA, 0, families["ipv4"][0])
	for _, a := range []netip.Addr{{}, families["ipv4"][0], netip.MustParseAddr("224.0.0.1"), netip.MustParseAddr("0.0.0.0"),
		netip.MustParseAddr("fe80::1%eth0"), netip.MustParseAddr("::ffff:10.0.0.9")} {
		if e.Answer(Key{0, a}, macB) == nil {
			t.Errorf("%v is accepted", a)
		}
	}
	e.Silence(Key{0, families["ipv4"][0]})
	if err := e.Answer(Key{0, families["ipv4"][0]}, macB); err != nil {
		t.Error(err)
	}
}

// TestPart_NothingIsAskedAnyMore: with its station go the questions on its behalf.
func TestPart_NothingIsAskedAnyMore(t *testing.T) {
	addr := families["ipv4"]
	a := engine(t, macA, 0, addr[0])
	a.Find(0, Key{0, addr[1]}, Source{macA, addr[0]})
	a.Part(0, macA)
	wantChanges(t, a, Change{Key: Key{0, addr[1]}})
	if a.Deadline() != clock.Never {
		t.Error("a deadline is left")
	}
}

// FuzzReceive: no frames make the engine panic, send more than it may or grow, and Concerns tells all that it takes.
func FuzzReceive(f *testing.F) {
	own := [2]netip.Addr{families["ipv4"][0], families["ipv6"][0]}
	e := New(Config{})
	for i, other := range []netip.Addr{families["ipv4"][1], families["ipv6"][1]} {
		e.announce(Key{7, other}, macB)
		e.Find(0, Key{uint16(i), own[i]}, Source{macB, other})
		f.Add(e.Frame(nil))
		f.Add(e.Frame(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		e := New(Config{Entries: 2})
		for _, a := range own {
			for _, vlan := range []uint16{0, 7} {
				if err := e.Answer(Key{vlan, a}, macA); err != nil {
					t.Fatal(err)
				}
			}
		}
		e.Find(0, Key{0, families["ipv4"][1]}, Source{macA, own[0]})
		frames(e)
		if len(b) > 57 && eth.EtherType(binary.BigEndian.Uint16(b[12:])) == eth.TypeIPv6 { // a correct checksum lets more of it be read
			if h, p, err := eth.ParseIPv6(b[14:]); err == nil && len(p) > 4 {
				p[2], p[3] = 0, 0
				binary.BigEndian.PutUint16(p[2:], eth.PseudoChecksum(h.Src(), h.Dst(), eth.ProtocolICMPv6, p))
			}
		}
		if e.Receive(1, b) && !Concerns(b) {
			t.Errorf("%x is taken, but does not concern neighbours", b)
		}
		if n := len(frames(e)); n > 1 {
			t.Errorf("%d frames for one", n)
		}
		if len(e.entries) > 2 {
			t.Errorf("%d entries, want at most 2", len(e.entries))
		}
	})
}
