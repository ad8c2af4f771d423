package lan

import (
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/fabric/ethernet"
	"github.com/softvpi/softvpi/internal/pause"
)

// TestAdvance_Late: pauses hold and nothing is lost though whoever drives the network is late again and again by far more than a pause
// lasts, as on a machine that stands still: the ends say again in time what they want paused, and that counts before the present does.
func TestAdvance_Late(t *testing.T) {
	const priority = 3
	b := star(t, true, ethernet.PortConfig{FlowControl: ethernet.PriorityPause, Lossless: 1 << priority}, 1e9, 1e9)
	from, to := b.plug("h0"), b.plug("h1")
	b.learned(from, to)
	from.SetPauses(b.now, pause.Only(1<<priority), pause.Scope{})
	b.do("storm h1 3")
	b.to(b.now.Add(time.Millisecond))
	sent := 0
	for from.Transmit(b.now, packet(0, 1, priority<<3, 1400)) { // until the switch and the host's end of the link are full
		sent++
		b.to(b.now.Add(20 * time.Microsecond))
	}
	if here, _ := b.fabric.Port(ethernet.End{}).Paused(b.now); here != 1<<priority {
		t.Fatalf("after %d frames the host is paused at %#x, want priority %d", sent, here, priority)
	}
	for range 10 { // what is not paused goes on, and gives the lines something to do
		from.Transmit(b.now, packet(0, 1, 0, 100))
		b.now = b.now.Add(300 * time.Millisecond)
		b.Advance(b.now)
	}
	if n, bytes := b.drain(to); n != 10 || bytes != 1000 {
		t.Errorf("%d frames of %d bytes pass, want the ten that are not paused", n, bytes)
	}
	b.do("storm h1 none")
	got := 0
	for b.to(b.now.Add(time.Second)); to.Waiting() > 0; b.to(b.now.Add(time.Second)) {
		n, _ := b.drain(to)
		got += n
	}
	if got != sent {
		t.Errorf("%d frames of %d arrive", got, sent)
	}
}
