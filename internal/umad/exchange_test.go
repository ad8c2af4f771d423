package umad

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/softvpi/softvpi/internal/clock"
)

// TestExchangeEndsEveryRequestOnce: every request ends once: answered, or timed out after its tries, one time-out
// apart.
func TestExchangeEndsEveryRequestOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := newExchange(rapid.Uint32().Draw(t, "first"))
		now := clock.Time(0)
		type life struct {
			r           *pending
			start       clock.Time
			sends, want int
			ended       bool
		}
		lives := map[*pending]*life{}
		end := func(r *pending, over bool) {
			l := lives[r]
			if l.ended {
				t.Fatal("a request ended twice")
			}
			l.ended = true
			if over && (l.sends != l.want || now.Sub(l.start) < time.Duration(l.want)*r.timeout) {
				t.Fatalf("gave up after %d sends of %d and %v of %v each", l.sends, l.want, now.Sub(l.start), r.timeout)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"ask": func(t *rapid.T) {
				r := &pending{timeout: time.Duration(rapid.IntRange(1, 50).Draw(t, "timeout")) * time.Millisecond,
					triesLeft: rapid.IntRange(1, 4).Draw(t, "tries")}
				lives[r] = &life{r: r, start: now, sends: 1, want: r.triesLeft}
				x.add(now, r)
				if x.waiting[r.id] != r || r.id == 0 {
					t.Fatal("the request has no ID of its own")
				}
			},
			"answer": func(t *rapid.T) {
				for _, l := range lives {
					if !l.ended {
						if x.waiting[l.r.id] != l.r {
							t.Fatal("the answer finds no request")
						}
						x.remove(l.r)
						end(l.r, false)
						break
					}
				}
				if x.waiting[0] != nil {
					t.Fatal("ID 0 was waited for")
				}
			},
			"pass time": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(0, 60).Draw(t, "ms")) * time.Millisecond)
				again, over := x.expire(now)
				for _, r := range again {
					lives[r].sends++
				}
				for _, r := range over {
					end(r, true)
				}
				if x.deadline() <= now {
					t.Fatal("after all that was due is done, the deadline has passed")
				}
			},
		})
		for _, r := range x.abandon() {
			end(r, false)
		}
		for _, l := range lives {
			if !l.ended {
				t.Fatal("a request was forgotten")
			}
		}
	})
}

func TestExchangeGivesNoIDTwice(t *testing.T) {
	x := newExchange(1<<32 - 2)
	a, b, c := &pending{triesLeft: 1}, &pending{triesLeft: 1}, &pending{triesLeft: 1}
	for _, r := range []*pending{a, b} {
		x.add(0, r)
	}
	x.last = a.id - 1
	x.add(0, c)
	if a.id != 1<<32-1 || b.id != 1 || c.id != 2 {
		t.Errorf("the IDs are %#x, %#x and %#x", a.id, b.id, c.id)
	}
}

func TestUndeliveredIsAskedAgain(t *testing.T) {
	x := newExchange(0)
	r := &pending{triesLeft: 2, timeout: time.Second}
	x.add(0, r)
	if again, over := x.failed(1, r.id); again != r || over != nil {
		t.Error("the first failure was not tried again")
	}
	if again, over := x.failed(2, r.id); again != nil || over != r {
		t.Error("the second failure was not the end")
	}
	if again, over := x.failed(3, r.id); again != nil || over != nil {
		t.Error("a request that is over failed again")
	}
}
