package device

import (
	"encoding/binary"
	"testing"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/function/ethernet/rss"
)

// TestRSS: a flow to a table of raw packet QPs gives each frame to the one that its Toeplitz hash chooses, over the fields that were
// asked for, and to the first one without them.
func TestRSS(t *testing.T) {
	one, two, third := threeEnds(t)
	to, own := [6]byte{2, 0, 0, 0, 9, 1}, [6]byte{2, 0, 0, 0, 9, 7}
	hash := rss.NewToeplitz(&rss.DefaultKey)
	for name, fields := range map[string]command.RSSFields{
		"addresses": command.RSSSrcIPv4 | command.RSSDstIPv4, "ports": command.RSSSrcUDP | command.RSSDstUDP,
		"all": command.RSSSrcIPv4 | command.RSSDstIPv4 | command.RSSSrcUDP | command.RSSDstUDP, "destination": command.RSSDstIPv4,
		"nothing": 0, "IPv6": command.RSSSrcIPv6, "TCP": command.RSSSrcIPv4 | command.RSSSrcTCP,
	} {
		var rx [4]*rawEnd
		r := command.CreateRSS{Entries: 8, Fields: fields, Key: rss.DefaultKey}
		for i := range rx {
			rx[i] = one.rawEnd()
			rx[i].receive(8)
		}
		for i := range r.Entries {
			r.Table[i] = rx[i%4].q.Handle
		}
		group, err := one.c.CreateRSS(bg, r)
		one.check(err)
		rule := toMAC(to, 0)
		rule.QP = group
		f, err := one.c.CreateFlow(bg, rule)
		one.check(err)
		for n, from := range []*program{two, third, two, third, two, third} {
			tx := from.rawEnd()
			b := udpFrame(to, own, uint16(1000+7*n), 100)
			b[29], b[33], b[35] = byte(3*n), byte(200-n), byte(n)
			tx.sends(b)
			var in []byte
			for _, x := range []struct {
				field    command.RSSFields
				from, to int
			}{{command.RSSSrcIPv4, 26, 30}, {command.RSSDstIPv4, 30, 34}, {command.RSSSrcUDP, 34, 36}, {command.RSSDstUDP, 36, 38}} {
				if fields&x.field != 0 {
					in = append(in, b[x.from:x.to]...)
				}
			}
			want := hash.Sum(in) & 7 & 3
			if name == "IPv6" || name == "TCP" {
				want = 0
			}
			if got := rx[want].got(); binary.BigEndian.Uint16(got[36:]) != uint16(1000+7*n) {
				t.Errorf("%s: QP %d has got %x, want frame %d", name, want, got, n)
			}
		}
		if err := one.c.Destroy(bg, command.KindRSS, group); codeOf(err) != command.Busy {
			t.Errorf("a group with a flow is destroyed: %v", err)
		}
		one.check(one.c.Destroy(bg, command.KindFlow, f))
		if err := one.c.Destroy(bg, command.KindQP, rx[0].q.Handle); codeOf(err) != command.Busy {
			t.Errorf("a QP of a group is destroyed: %v", err)
		}
		one.check(one.c.Destroy(bg, command.KindRSS, group))
		one.check(one.c.Destroy(bg, command.KindQP, rx[0].q.Handle))
	}
}

// TestRSS_Refused: wrong tables are refused with their field, and disabling the adapter ends flows.
func TestRSS_Refused(t *testing.T) {
	one, two, _ := threeEnds(t)
	a, b, rc := one.rawEnd(), two.rawEnd(), one.idleQP()
	good := command.CreateRSS{Entries: 2, Table: [command.MostRSSEntries]command.Handle{a.q.Handle, a.q.Handle}}
	for name, c := range map[string]struct {
		change func(*command.CreateRSS)
		want   command.Code
	}{
		"no entries":        {func(r *command.CreateRSS) { r.Entries = 0 }, command.Invalid},
		"three entries":     {func(r *command.CreateRSS) { r.Entries = 3 }, command.Invalid},
		"too many":          {func(r *command.CreateRSS) { r.Entries = 256 }, command.Invalid},
		"unknown fields":    {func(r *command.CreateRSS) { r.Fields = 1 << 9 }, command.Unsupported},
		"both versions":     {func(r *command.CreateRSS) { r.Fields = 5 }, command.Unsupported},
		"both transports":   {func(r *command.CreateRSS) { r.Fields = 0x50 }, command.Unsupported},
		"no QP":             {func(r *command.CreateRSS) { r.Table[1] = 0 }, command.NotFound},
		"a QP of RDMA":      {func(r *command.CreateRSS) { r.Table[1] = rc.q.Handle }, command.Invalid},
		"a QP of a program": {func(r *command.CreateRSS) { r.Table[1] = b.q.Handle | 1<<19 }, command.NotFound},
	} {
		r := good
		c.change(&r)
		if _, err := one.c.CreateRSS(bg, r); codeOf(err) != c.want {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	group, err := one.c.CreateRSS(bg, good)
	one.check(err)
	rule := toMAC([6]byte{2, 0, 0, 0, 9, 1}, 0)
	rule.QP = group
	_, err = one.c.CreateFlow(bg, rule)
	one.check(err)
	one.check(one.host.SetAdapterState(one.adapter, false))
	if _, err = one.c.CreateFlow(bg, rule); codeOf(err) != command.Removed {
		t.Errorf("a flow of a disabled adapter: %v", err)
	}
	one.check(one.c.Destroy(bg, command.KindRSS, group))
}
