package direct

import (
	"testing"

	"github.com/softvpi/softvpi/internal/ring"
)

// TestTimesOnlyWhereWanted: the clock is read for queues that want to know when completions were made, and for no others,
// unless the driver does not say which do.
func TestTimesOnlyWhereWanted(t *testing.T) {
	for _, c := range []struct {
		flags  uint32
		stamps bool
		reads  int // for a write, and for a send
	}{{0, false, 0}, {SendTimes, false, 2}, {RecvTimes, false, 1}, {SendTimes | RecvTimes, false, 2}, {0, true, 2}} {
		b := newBench(t)
		reads := 0
		b.i.env.Now, b.i.env.Stamps = func() uint64 { reads++; return 77 }, c.stamps
		b.conf.Flags = Receives | Answers | c.flags
		b.delegate()
		b.receive(1, place(0, 8))
		if !b.i.Execute(b.wr(ring.OpWrite, b.sge(0, 8))) || !b.i.Execute(b.wr(ring.OpSend, b.sge(0, 8))) {
			t.Fatal("a request was not carried out")
		}
		if reads != c.reads {
			t.Errorf("flags %#x: the clock was read %d times, want %d", c.flags, reads, c.reads)
		}
	}
}
