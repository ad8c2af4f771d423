package ethernet

import (
	"encoding/binary"
	"testing"

	"pgregory.net/rapid"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/frame"
)

// numbered is a frame of a type that nothing coalesces, with a number, at a priority.
func numbered(n int, priority uint16) frame.In {
	b := append(append([]byte{}, macB[:]...), macA[:]...)
	b = append(b, 0x81, 0)
	b = binary.BigEndian.AppendUint16(b, priority<<13)
	b = append(b, 0x88, 0xb5)
	b = binary.BigEndian.AppendUint32(b, uint32(n))
	return frame.In{Data: append(b, make([]byte, 40)...), Raw: true}
}

// TestTake: in dropless mode a frame for which the ring of its queue has no room is not taken, and none is lost or out of order, however
// much the host takes and when (WinOF-2 Ethernet, Dropless Mode).
func TestTake(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := alone(&testing.T{}, plain(macB, func(c *Config) {
			c.ReceiveBuffers = 256
			c.AsyncReceiveIndicate = rapid.SampledFrom([]int{0, 1}).Draw(t, "AsyncReceiveIndicate")
			c.RfdReservationFactor = 0
		}))
		c.host.room = 0
		var waits []frame.In
		sent, now := 0, clock.Time(0)
		for range rapid.IntRange(1, 40).Draw(t, "turns") {
			now += 1000
			for range rapid.IntRange(0, 150).Draw(t, "frames") {
				waits = append(waits, numbered(sent, 3))
				sent++
			}
			n, _ := c.Take(now, waits)
			if n < len(waits) && c.receive[0].ring.Room() > 0 {
				t.Fatalf("%d of %d are taken, although there is room for %d", n, len(waits), c.receive[0].ring.Room())
			}
			waits = waits[n:]
			if more := rapid.IntRange(0, 200).Draw(t, "the host takes"); more > 0 {
				c.host.room += more
				c.Ready(now, 0)
			}
			c.Advance(now)
		}
		c.host.room = -1
		for c.Ready(now, 0); len(waits) > 0; now++ {
			n, _ := c.Take(now, waits)
			waits = waits[n:]
			c.Advance(now)
		}
		for range 4 {
			now += 1000
			c.Advance(now)
		}
		if len(c.host.packets) != sent || c.Counters().NoBuffer != 0 {
			t.Fatalf("%d of %d frames, %d lost", len(c.host.packets), sent, c.Counters().NoBuffer)
		}
		for i, p := range c.host.packets {
			b := p.frame
			if got := binary.BigEndian.Uint32(b[len(b)-44:]); got != uint32(i) {
				t.Fatalf("frame %d comes as number %d", got, i)
			}
		}
	})
}

// TestFilled: a ring that is half full names the priorities of its frames until it is down to a quarter (WinOF-2 1.21, 3.4.5.1).
func TestFilled(t *testing.T) {
	c := alone(t, plain(macB, func(c *Config) { c.ReceiveBuffers = 256 }))
	c.host.room = 0
	take := func(n int, priority uint16) {
		for i := range n {
			c.Receive(0, []frame.In{numbered(i, priority)})
		}
	}
	take(127, 3)
	if got := c.Filled(); got != 0 {
		t.Errorf("%b below the threshold", got)
	}
	take(1, 5)
	if got := c.Filled(); got != 1<<3|1<<5 {
		t.Errorf("%b at the threshold", got)
	}
	if waits, _ := c.Stands(); !waits {
		t.Error("nothing waits for the host")
	}
	for _, x := range []struct {
		more int
		want uint8
	}{{63, 1<<3 | 1<<5}, {1, 0}} {
		c.host.room = x.more
		if c.Ready(0, 0); c.Filled() != x.want {
			t.Errorf("%b after %d more", c.Filled(), x.more)
		}
	}
	c.host.room = -1
	if c.Ready(0, 0); c.receive[0].kept != [8]uint32{} {
		t.Errorf("%v frames are still counted", c.receive[0].kept)
	}
	if waits, taken := c.Stands(); waits || taken != 128 {
		t.Errorf("waits %v, %d taken", waits, taken)
	}
}
