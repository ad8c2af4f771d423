package budget

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/softvpi/softvpi/internal/command"
)

// TestLimits: the limits of a program, of a user and of all programs hold each for itself, at the last byte; the error
// names the limit, and what was refused is counted for the one that wanted it and not taken from anybody.
func TestLimits(t *testing.T) {
	l := New(Limits{Program: 100, User: 150, Total: 200}, Share(64))
	a, b, c, d := l.Open(1), l.Open(1), l.Open(2), l.Open(3)
	take := func(x *Account, n uint64, want string) {
		t.Helper()
		err := x.Take(Memory, n, "a queue")
		if want == "" && err != nil || want != "" && (!errors.Is(err, &command.Error{Code: command.Exhausted}) ||
			!strings.Contains(err.Error(), want)) {
			t.Errorf("taking %d: %v, want %q", n, err, want)
		}
	}
	take(a, 100, "")
	take(a, 1, "a queue takes 1 bytes of memory: the driver holds 100 for this program: allowed: 100 (limits.memory_per_program)")
	take(b, 51, "150 (limits.memory_per_user)")
	take(b, 50, "")
	take(c, 50, "")
	take(d, 1, "holds 200 for all programs: allowed: 200 (limits.memory)")
	take(c, ^uint64(0), "limits.memory_per_program")
	take(d, 0, "")
	if u := a.Usage(Memory); u != (Usage{100, 1}) {
		t.Errorf("the first program holds %+v", u)
	}
	if u := l.Usage(Memory); u != (Usage{200, 4}) {
		t.Errorf("all programs hold %+v", u)
	}
	if u := l.Usage(Descriptors); u != (Usage{}) {
		t.Errorf("of the other resource %+v is held", u)
	}
	a.Give(Memory, 100)
	take(d, 100, "")
	a.Close()
	b.Close()
	take(c, 1, "limits.memory)")
	b.Give(Memory, 50) // what a program left behind is counted until it is gone
	take(c, 50, "")
	if len(l.users) != 2 {
		t.Errorf("%d users are known, want 2", len(l.users))
	}
	if err := (*Account)(nil).Take(Memory, 1<<60, "anything"); err != nil {
		t.Errorf("a program without limits: %v", err)
	}
}

// Programs of one container share its quota, whoever their users are; those of others have theirs.
func TestQuota(t *testing.T) {
	all := Limits{Program: 100, User: 150, Total: 400}
	l := New(all, all)
	one, two := NewQuota("container 0", 120, 0), NewQuota("container 1", 120, 0)
	a, b, c := l.OpenIn(1, one), l.OpenIn(2, one), l.OpenIn(2, two)
	if err := a.Take(Memory, 80, "a queue"); err != nil {
		t.Fatal(err)
	}
	const want = "a queue takes 41 bytes of memory: the driver holds 80 for container 0: allowed: 120 (containers.memory)"
	if err := b.Take(Memory, 41, "a queue"); !errors.Is(err, &command.Error{Code: command.Exhausted}) || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
	if err := errors.Join(b.Take(Memory, 40, "a queue"), c.Take(Memory, 100, "a queue"), b.Take(Descriptors, 100, "a file")); err != nil {
		t.Error(err)
	}
	if u, limit := l.UsageOf(one, Memory); u != (Usage{120, 1}) || limit != 120 {
		t.Errorf("container 0 holds %+v of %d", u, limit)
	}
	a.Give(Memory, 80)
	if u, _ := l.UsageOf(one, Memory); u.Used != 40 {
		t.Errorf("container 0 holds %d after 80 were given back", u.Used)
	}
	if err := b.Take(Memory, 10, "a queue"); err != nil {
		t.Error(err)
	}
}

// TestSums: whatever is taken and given, the totals are the sums of the accounts, no limit is exceeded, and nothing is
// left when everything was given back.
func TestSums(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lim := Limits{Program: rapid.Uint64Range(0, 100).Draw(t, "program"), User: rapid.Uint64Range(0, 200).Draw(t, "user"),
			Total: rapid.Uint64Range(0, 300).Draw(t, "total")}
		l := New(lim, lim)
		accounts := make([]*Account, 6)
		for i := range accounts {
			accounts[i] = l.Open(i % 3)
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			a := accounts[rapid.IntRange(0, len(accounts)-1).Draw(t, "account")]
			r := Resource(rapid.IntRange(0, int(resources)-1).Draw(t, "resource"))
			n := rapid.Uint64Range(0, 120).Draw(t, "amount")
			if rapid.Bool().Draw(t, "give") {
				a.Give(r, min(n, a.Usage(r).Used))
			} else {
				_ = a.Take(r, n, "it")
			}
			var total uint64
			users := map[int]uint64{}
			for _, a := range accounts {
				u := a.Usage(r).Used
				total += u
				users[a.uid] += u
				if u > lim.Program || users[a.uid] > lim.User {
					t.Fatalf("%d for a program, %d for its user: limits %+v", u, users[a.uid], lim)
				}
			}
			if total != l.Usage(r).Used || total > lim.Total {
				t.Fatalf("%d in total, counted as %d: limits %+v", total, l.Usage(r).Used, lim)
			}
		}
		for _, a := range accounts {
			a.Close()
			for r := range resources {
				a.Give(r, a.Usage(r).Used)
			}
		}
		if l.used != [resources]uint64{} || len(l.users) != 0 {
			t.Fatalf("left: %v, %d users", l.used, len(l.users))
		}
	})
}
