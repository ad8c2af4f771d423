package device

import (
	"testing"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/transport"
)

// TestCompletionsTogetherRaiseOneEvent: completions that are published together raise one event, also if the program that
// it wakes has polled all of them and armed again while the loop goes on.
func TestCompletionsTogetherRaiseOneEvent(t *testing.T) {
	g := ring.CQGeometry(8)
	mem := make([]byte, g.Size())
	loop, err := ring.OpenCQ(mem, g)
	if err != nil {
		t.Fatal(err)
	}
	program, err := ring.OpenCQ(mem, g)
	if err != nil {
		t.Fatal(err)
	}
	polled, vain := 0, 0
	c := &Client{cfg: ClientConfig{Notify: func(uint32, uint64) {
		program.Arm(ring.ArmAny)
		var out [8]ring.CQE
		n := program.Poll(out[:])
		if polled += n; n == 0 {
			vain++
		}
	}}}
	q := &cq{ring: loop, client: c, adapter: &adapter{}, own: true, due: clock.Never}
	program.Sleep()
	program.Arm(ring.ArmAny)
	q.push(0, make([]transport.Completion, 3))
	if polled != 3 || vain != 0 || program.Sequence() != 1 {
		t.Errorf("%d completions polled in %d events, %d in vain; want 3 in one", polled, program.Sequence(), vain)
	}
}
