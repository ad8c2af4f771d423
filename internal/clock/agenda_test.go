package clock

import (
	"testing"

	"pgregory.net/rapid"
)

// Each appointment comes once, when it is due, in the order of time. One that was moved comes at its new time, and
// one that was dropped never.
func TestAgenda(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var a Agenda[int]
		all := make([]Appointment[int], 20)
		set := map[int]Time{}
		for i := range all {
			all[i].Of = i
		}
		now := Time(0)
		at := rapid.Custom(func(t *rapid.T) Time { return Time(rapid.IntRange(0, 100).Draw(t, "at")) })
		one := rapid.IntRange(0, len(all)-1)
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) {
				i, when := one.Draw(t, "which"), at.Draw(t, "when")
				a.Set(&all[i], when)
				if set[i] = when; all[i].At() != when {
					t.Fatalf("%d is due at %v, want %v", i, all[i].At(), when)
				}
			},
			"drop": func(t *rapid.T) {
				i := one.Draw(t, "which")
				a.Drop(&all[i])
				delete(set, i)
			},
			"pass": func(t *rapid.T) {
				now = at.Draw(t, "now")
				last := Time(0)
				for x := a.Due(now); x != nil; x = a.Due(now) {
					when, there := set[x.Of]
					if !there || when != x.At() || when > now || when < last {
						t.Fatalf("%d came at %v after one of %v, and is due at %v: %v", x.Of, now, last, when, there)
					}
					last = when
					delete(set, x.Of)
				}
			},
			"": func(t *rapid.T) {
				first := Never
				for _, when := range set {
					first = Min(first, when)
				}
				if got := a.Deadline(); got != first {
					t.Fatalf("the next is due at %v, want %v", got, first)
				}
			},
		})
	})
}

func TestEmptyAgenda(t *testing.T) {
	var a Agenda[int]
	if a.Due(Never) != nil || a.Deadline() != Never {
		t.Error("an empty agenda has something due")
	}
}
