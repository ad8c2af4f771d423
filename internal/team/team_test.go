package team

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/team/carrier"
)

// TestFailBack: the primary member is active when it can be; another that took over gives way to it, unless the team does not fail back
// (WinOF 5.50, 4.2.8.3).
func TestFailBack(t *testing.T) {
	for _, stays := range []bool{false, true} {
		m := teamOf(t, AFT, 3, func(c *Config) { c.Members[1].Primary, c.NoFailBack = true, stays })
		m.SetLink(0, 1, false, 0)
		if m.active != 0 {
			t.Fatalf("member %d is active while the primary one is down, want 0", m.active)
		}
		m.SetLink(0, 1, true, gigabit)
		if m.active != 0 {
			t.Errorf("member %d is active as soon as the primary one's link is back, want 0 until that is proven", m.active)
		}
		m.Advance(clock.Time(carrier.Proves))
		want := 1
		if stays {
			want = 0
		}
		if m.active != want {
			t.Errorf("NoFailBack %v: member %d is active, want %d", stays, m.active, want)
		}
		m.SetDisabled(0, want, true)
		if m.active == want {
			t.Error("a member that is disabled is active")
		}
	}
}

// TestFailBack_PrimaryFromTheStart: a team that does not fail back takes the primary member once it has none.
func TestFailBack_PrimaryFromTheStart(t *testing.T) {
	m := teamOf(t, AFT, 2, func(c *Config) { c.Members[1].Primary, c.NoFailBack = true, true })
	m.SetLink(0, 0, false, 0)
	m.SetLink(0, 1, false, 0)
	m.SetLink(0, 0, true, gigabit)
	m.SetLink(0, 1, true, gigabit)
	if m.active != 0 {
		t.Errorf("member %d is active, want 0, which came first", m.active)
	}
	m.SetLink(0, 0, false, 0)
	m.SetLink(0, 1, false, 0)
	if up, _ := m.Up(); up || m.active != -1 {
		t.Errorf("up %v by member %d without links", up, m.active)
	}
}

// TestStatus: a member's status and role are in the manual's words (WinOF 5.50, 4.2.8.3), and their changes are told once.
func TestStatus(t *testing.T) {
	m := teamOf(t, AFT, 3)
	m.News()
	m.SetLink(5, 0, false, 0)
	m.SetDisabled(5, 2, true)
	want := [][2]string{{"Disconnected", "Backup"}, {"Connected", "Active"}, {"Disabled", "Backup"}}
	for i, w := range want {
		if s := m.Status(i); s.Status.String() != w[0] || s.Role.String() != w[1] || s.LACP != nil {
			t.Errorf("member %d is %v and %v, want %s and %s", i, s.Status, s.Role, w[0], w[1])
		}
	}
	told := []News{
		{Member: 0, Status: Disconnected, Role: Backup}, {Member: 1, Status: Connected, Role: Active},
		{Member: 2, Status: Disabled, Role: Backup},
	}
	if n := m.News(); !slices.Equal(n, told) {
		t.Errorf("news %v, want %v", n, told)
	}
	if n := m.News(); n != nil {
		t.Errorf("news %v again", n)
	}
	if up, speed := m.Up(); !up || speed != gigabit {
		t.Errorf("up %v with %d bit/s, want the active member's", up, speed)
	}
	if up, speed := teamOf(t, SLA, 3).Up(); !up || speed != 3*gigabit {
		t.Errorf("up %v with %d bit/s, want three members'", up, speed)
	}
}

// TestAnnounce: when another member becomes active, it tells everybody where each address is, and again after a while; a station without
// addresses is told to switches alone.
func TestAnnounce(t *testing.T) {
	m := teamOf(t, AFT, 2)
	m.SetStations([]Station{{MAC: stationMAC, Addrs: m.stations[0].Addrs}, {MAC: strangeMAC, VLAN: 7}})
	pass(m, clock.Never) // the further rounds of the start
	drain(m)
	now := clock.Time(time.Minute)
	m.SetLink(now, 0, false, 0)
	for round := range announcements {
		got := drain(m)
		if len(got) != 3 {
			t.Fatalf("round %d: %d frames, want those of 2 addresses and one for switches", round, len(got))
		}
		for i, f := range got {
			var x notice
			if f.member != 1 || f.frame[0]&1 == 0 {
				t.Errorf("frame %d goes to %x by member %d, want a group by member 1", i, f.frame[:6], f.member)
			}
			if ok := x.parse(f.frame); ok != (i < 2) || i < 2 && (x.answer || x.mac != stationMAC || x.addr != m.stations[0].Addrs[i]) {
				t.Errorf("frame %d says %+v, %v", i, x, ok)
			}
		}
		if kindOf(got[2].frame) != 0x8100 || from(got[2].frame) != strangeMAC || got[2].frame[16] != 0x80 || got[2].frame[17] != 0x35 {
			t.Errorf("for switches: %x", got[2].frame)
		}
		next := m.Deadline()
		if round == len(announcements)-1 {
			if next != clock.Never {
				t.Errorf("there is something to do at %v after the last round", next)
			}
			break
		}
		if gap := next.Sub(now); gap != announcements[round+1] {
			t.Errorf("round %d is %v after the one before, want %v", round+1, gap, announcements[round+1])
		}
		now = next
		m.Advance(now)
	}
	if c := m.Counters(); c.FailOvers != 1 || c.FailBacks != 0 {
		t.Errorf("%d fail-overs, %d fail-backs, want 1 and 0", c.FailOvers, c.FailBacks)
	}
}

// TestAnnounce_Aggregated: a switch that takes the members for one link needs no announcement.
func TestAnnounce_Aggregated(t *testing.T) {
	m := teamOf(t, SLA, 2)
	m.SetLink(1, 0, false, 0)
	if f := drain(m); f != nil {
		t.Errorf("%d frames wait", len(f))
	}
}

// TestFlows: whatever the type, the hash and the links, a frame leaves by one member, which sends; frames of a flow leave by the same as
// long as the members that send are the same; and when one fails, its flows go to others and the rest stay.
func TestFlows(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		n := rapid.IntRange(1, MostMembers).Draw(r, "members")
		kind := rapid.SampledFrom([]Type{AFT, SLB, RLB, ALB, SLA}).Draw(r, "type")
		hash := rapid.SampledFrom([]Hash{L2, L3, L4}).Draw(r, "hash")
		m := teamOf(t, kind, n, func(c *Config) { c.Hash = hash })
		for i := range n {
			m.SetLink(0, i, true, rapid.SampledFrom([]uint64{0, gigabit, 10 * gigabit}).Draw(r, "speed"))
		}
		now, at := clock.Time(0), map[uint16]int{}
		send := func(port uint16) int {
			now += clock.Time(rapid.IntRange(0, int(forgotten)/100).Draw(r, "gap"))
			i := m.Send(now, sentFrom(port), rapid.IntRange(64, 9000).Draw(r, "size"))
			if i >= 0 && m.Status(i).Role != Active {
				r.Fatalf("a frame leaves by member %d, which is %v", i, m.Status(i).Role)
			}
			if up, _ := m.Up(); up != (i >= 0) {
				r.Fatalf("a frame leaves by member %d of a team that is up: %v", i, up)
			}
			return i
		}
		ports := rapid.SliceOfN(rapid.Uint16(), 1, 12).Draw(r, "flows")
		for range rapid.IntRange(1, 30).Draw(r, "frames") {
			p := rapid.SampledFrom(ports).Draw(r, "flow")
			i := send(p)
			if was, ok := at[p]; ok && was != i {
				r.Fatalf("flow %d leaves by member %d after %d", p, i, was)
			}
			at[p] = i
		}
		failed := rapid.IntRange(0, n-1).Draw(r, "failed")
		m.SetLink(now, failed, false, 0)
		for p, was := range at {
			if i := send(p); i == failed || was != failed && i != was {
				r.Fatalf("member %d fails: flow %d goes from %d to %d", failed, p, was, i)
			}
		}
	})
}

// TestSpread: where flows are spread, each member gets some of many, and a member of ten times the speed more than the others.
func TestSpread(t *testing.T) {
	for _, kind := range []Type{SLB, RLB, ALB, SLA} {
		m := teamOf(t, kind, 3)
		m.SetLink(0, 2, true, 10*gigabit)
		var n [3]int
		for p := range uint16(4096) {
			n[m.Send(0, sentFrom(p), 1000)]++
		}
		if n[0] == 0 || n[1] == 0 || n[2] < 2*n[0] || n[2] < 2*n[1] {
			t.Errorf("%v: %v flows, want some at each, and most at the third", kind, n)
		}
	}
}

// TestHash: a layer looks at nothing above it, and fragments go by their addresses.
func TestHash(t *testing.T) {
	a, b := sentFrom(1), sentFrom(2)
	if flow(a, L4) == flow(b, L4) || flow(a, L3) != flow(b, L3) || flow(a, L2) != flow(b, L2) {
		t.Error("ports are looked at with L4, and with that alone")
	}
	const fragment = 14 + 6
	a[fragment], b[fragment] = 0x20, 0x20 // more fragments follow
	if flow(a, L4) != flow(b, L4) {
		t.Error("a first fragment goes by its ports, which others do not have")
	}
	const lastOfSource = 14 + 15
	b[lastOfSource]++
	if flow(a, L3) == flow(b, L3) || flow(a, L2) != flow(b, L2) {
		t.Error("addresses are looked at with L3, and not with L2")
	}
	b[5]++
	if flow(a, L2) == flow(b, L2) {
		t.Error("MACs are not looked at with L2")
	}
}

// TestCounted_Beginning: that the primary member is heard of after others is no fail-back, and what happens later is counted.
func TestCounted_Beginning(t *testing.T) {
	m := teamOf(t, AFT, 3, func(c *Config) { c.Members[2].Primary = true })
	if c := m.Counters(); m.active != 2 || c.FailBacks != 0 || c.FailOvers != 0 {
		t.Errorf("at first member %d is active, and counted are %+v", m.active, c)
	}
	now := clock.Time(time.Second)
	m.SetLink(now, 2, false, gigabit)
	m.SetLink(now, 2, true, gigabit)
	m.Advance(now.Add(2 * carrier.Proves))
	if c := m.Counters(); m.active != 2 || c.FailBacks != 1 || c.FailOvers != 1 {
		t.Errorf("after a failure member %d is active, and counted are %+v", m.active, c)
	}
}
