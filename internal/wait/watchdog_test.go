package wait

import "testing"

// TestBackoff_DoublesToItsLimit: for every question of the table.
func TestBackoff_DoublesToItsLimit(t *testing.T) {
	for q := range questions {
		b := Ask(q)
		want := b.First
		for range 30 {
			if got := b.Next(); got != want || got <= 0 {
				t.Fatalf("question %d: %v, want %v", q, got, want)
			}
			want = min(2*want, b.Most)
		}
	}
}

// TestWatchdog_EveryScript: whatever it finds in seven looks, the watchdog polls exactly when nobody is the poll owner and
// either nobody has driven the loop or followers need it; wakes a poll owner whom others have disarmed, once they have stopped; parks
// only if the same poll owner was found asleep parkAfter times in a row; and looks seldomer and seldomer until it is woken.
func TestWatchdog_EveryScript(t *testing.T) {
	const depth = 7
	for same := range parkAfter + 1 {
		for n := range 1 << (2 * depth) {
			var w Watchdog
			w.Begin()
			w.owners, w.same = 1, same
			o, interval, quiet := Observed{Owners: 1}, w.Interval(), same
			for rest := n; rest > 0; rest >>= 2 {
				// The script has the four most telling events; the flags of an event follow from its place as well.
				o.Owned, o.Woken, o.Followers = rest&1 != 0, rest&8 != 0, rest&4 != 0
				moved, other := rest&2 != 0, o.Owned && rest&16 != 0
				o.Disarmed = rest&32 != 0
				if moved {
					o.Turns++
				}
				if other {
					o.Owners++
				}
				want := Sleep
				switch {
				case !o.Owned && (!moved || o.Followers):
					want = Poll
				case o.Owned && (moved || other):
					quiet = 0
				case o.Owned && o.Disarmed:
					want = Rearm
				case o.Owned:
					if quiet++; quiet >= parkAfter {
						want, quiet = Park, 0
					}
				}
				if got := w.Look(o); got != want {
					t.Fatalf("script %#x after %d looks at the same: %+v: %d, want %d", n, same, o, got, want)
				}
				if interval = min(2*interval, watchMost); o.Woken {
					interval = watchFirst
				}
				if w.Interval() != interval {
					t.Fatalf("script %#x: looks after %v, want %v", n, w.Interval(), interval)
				}
				if w.Polled(o.Turns) || !w.Polled(o.Turns+1) || o.Owned && !w.Same(o.Owners) {
					t.Fatalf("script %#x: does not know what it has seen", n)
				}
			}
		}
	}
}
