package sa

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// TestSupersede: a request that sets a record ends an unanswered one that deletes it, and the other way round: repeated after it, it would
// undo it. Other records, and other kinds of membership, are not concerned.
func TestSupersede(t *testing.T) {
	port, group, ip := ib.GID{15: 1}, ib.GID{0: 0xff, 15: 7}, netip.MustParseAddr("10.0.0.1")
	member := func(state uint8) mad.MCMemberRecord {
		return mad.MCMemberRecord{MGID: group, PortGID: port, JoinState: state, PKey: ib.PKeyDefault}
	}
	const full, sender = mad.JoinFull, mad.JoinSendOnlyFull
	for _, x := range []struct {
		name          string
		former, later Request
		ends          bool
	}{
		{"an address offered again", Withdraw(0, port, ib.PKeyDefault), Offer(ip, 0, port, ib.PKeyDefault, 300), true},
		{"an address withdrawn", Offer(ip, 0, port, ib.PKeyDefault, 300), Withdraw(0, port, ib.PKeyDefault), true},
		{"another address", Withdraw(1, port, ib.PKeyDefault), Offer(ip, 0, port, ib.PKeyDefault, 300), false},
		{"another partition", Withdraw(0, port, 0x8001), Offer(ip, 0, port, ib.PKeyDefault, 300), false},
		{"an address offered twice", Offer(ip, 0, port, ib.PKeyDefault, 300), Offer(ip, 0, port, ib.PKeyDefault, 300), false},
		{"a group joined again", Leave(group, port, full), Join(member(full)), true},
		{"a group left", Join(member(full)), Leave(group, port, full), true},
		{"a group joined again, of two kinds", Leave(group, port, full|sender), Join(member(full)), true},
		{"a group left, of one of two kinds", Join(member(full | sender)), Leave(group, port, full), false},
		{"a group joined as a sender", Leave(group, port, full), Join(member(sender)), false},
		{"another port", Leave(group, ib.GID{15: 2}, full), Join(member(full)), false},
		{"another record", Leave(group, port, full), Offer(ip, 0, port, ib.PKeyDefault, 300), false},
		{"a look-up", Find(ip), Withdraw(0, port, ib.PKeyDefault), false},
	} {
		t.Run(x.name, func(t *testing.T) {
			c := newClient(t, Config{})
			c.SetManager(3, 0)
			k := ask(t, c, 0, x.former)
			if m, _ := sent(t, c); len(m) != 1 {
				t.Fatalf("%d requests are sent, want 1", len(m))
			}
			ask(t, c, 1, x.later)
			told := answers(c)
			ended := len(told) == 1 && told[0].Ticket == k && errors.Is(told[0].Err, ErrSuperseded)
			if ended != x.ends || len(told) > 0 && !ended {
				t.Errorf("answers: %+v; want the former request ended: %v", told, x.ends)
			}
			want := 2 // repetitions
			if x.ends {
				want = 1
			}
			sent(t, c)
			c.Advance(clock.Time(2 * defaultTimeout))
			if m, _ := sent(t, c); len(m) != want || m[len(m)-1].Method != x.later.Method {
				t.Errorf("repeated: %+v", m)
			}
		})
	}
}

// TestSupersede_BeforeItIsSent: a request that still waits for its turn is not sent any more, and takes nobody's place.
func TestSupersede_BeforeItIsSent(t *testing.T) {
	c := newClient(t, Config{})
	c.SetManager(3, 0)
	port := ib.GID{15: 1}
	for n := range 2 * window {
		ask(t, c, 0, Withdraw(n, port, ib.PKeyDefault))
	}
	last := ask(t, c, 0, Offer(netip.MustParseAddr("10.0.0.1"), 2*window-1, port, ib.PKeyDefault, 300))
	if told := answers(c); len(told) != 1 || !errors.Is(told[0].Err, ErrSuperseded) {
		t.Fatalf("answers: %+v", told)
	}
	for asked := map[uint64]bool{}; ; {
		m, _ := sent(t, c)
		if len(m) == 0 {
			if len(asked) != 2*window || !asked[uint64(last)] {
				t.Errorf("%d requests were sent, want %d; the last is among them: %v", len(asked), 2*window, asked[uint64(last)])
			}
			break
		}
		for _, r := range m {
			asked[r.TransactionID] = true
			c.Receive(0, respond(r, mad.StatusOK, nil))
		}
	}
	if len(answers(c)) != 2*window || c.Deadline() != clock.Never {
		t.Error("something is left")
	}
}
