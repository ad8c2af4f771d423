package packet

import (
	"math"
	"testing"
	"time"
)

// TestIntake_TendedWhileItSleeps: what Tend finds out while the receiver sleeps, as during a command, lets the programs take nothing
// before the receiver is awake: it would wake nobody.
func TestIntake_TendedWhileItSleeps(t *testing.T) {
	i := &Intake{memory: make([]byte, room), slot: slotsAt, lag: newDrift()}
	i.word(queuedAt).Store(5)
	i.Handed(3)
	if !i.Sleep() {
		t.Fatal("packets wait")
	}
	for range driftTimes {
		i.Missing(2)
	}
	for n := range driftTends + 1 {
		i.Tend(time.Unix(int64(n+1), 0))
	}
	if taken := i.word(takenAt).Load(); taken != math.MaxUint64 {
		t.Errorf("programs may take packets after %d messages while the receiver sleeps", taken)
	}
	if !i.Woken() || i.word(takenAt).Load() != 5 {
		t.Errorf("awake: programs take packets after %d messages, want 5", i.word(takenAt).Load())
	}
}
