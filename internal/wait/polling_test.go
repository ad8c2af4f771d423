package wait

import "testing"

// TestPolling_GoesOn: an adapter is polled again until Rounds rounds had no packet, and while the packets of the last
// round, or their average over the rounds, are above their limits.
func TestPolling_GoesOn(t *testing.T) {
	for _, c := range []struct {
		name    string
		polling Polling
		packets []int // of each round
		on      string
	}{
		{"rounds without a packet", Polling{Rounds: 2, Average: 1000, Last: 1000}, []int{0, 0, 1, 0, 0, 0}, "+-++--"},
		{"the last round", Polling{Average: 1000, Last: 2}, []int{2, 3, 0, 3}, "-+-+"},
		{"the average, of the last round alone", Polling{Weight: 256, Average: 10, Last: 1000}, []int{10, 11, 0}, "-+-"},
		{"the average, in which the last round has a weight of half", Polling{Weight: 128, Average: 10, Last: 1000}, []int{40, 0, 0, 30},
			"+--+"},
		{"no weight", Polling{Average: 0, Last: 1000}, []int{1000, 0}, "--"},
		{"nothing", Polling{}, []int{0, 1, 0}, "-+-"},
	} {
		var p Rounds
		on := ""
		for _, n := range c.packets {
			if p.Round(&c.polling, n) {
				on += "+"
			} else {
				on += "-"
			}
		}
		if on != c.on {
			t.Errorf("%s: %v goes on %s, want %s", c.name, c.packets, on, c.on)
		}
	}
}

// TestPolling_Ends: the average falls to 0 without packets, so that polling ends.
func TestPolling_Ends(t *testing.T) {
	c := Polling{Weight: 1, Average: 0, Last: 1000}
	var p Rounds
	p.Round(&c, 1000)
	for rounds := 0; p.Round(&c, 0); rounds++ {
		if rounds > 10000 {
			t.Fatal("the loop still polls after 10000 rounds without packets")
		}
	}
}
