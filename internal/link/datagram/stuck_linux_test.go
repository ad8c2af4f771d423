package datagram

import (
	"testing"
	"time"
)

// TestStuck: the other side's patience is used up by time in which it was looked at, and not by a pause of whoever looks.
func TestStuck(t *testing.T) {
	const patience = 100 * time.Millisecond
	at := time.Unix(1, 0)
	for _, c := range []struct {
		name  string
		every time.Duration
		looks int // of which the last finds that it has lasted too long
	}{
		{"often", time.Millisecond, 102}, {"seldom", 20 * time.Millisecond, 7}, {"by one that stands still", time.Hour, 7},
	} {
		var s stuck
		looks := 1
		for ; !s.look(at, patience) && looks < 1000; looks++ {
			at = at.Add(c.every)
		}
		if looks != c.looks {
			t.Errorf("looked at %s, it takes %d looks, want %d", c.name, looks, c.looks)
		}
	}
}
