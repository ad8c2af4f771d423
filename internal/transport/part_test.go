package transport

import "testing"

// A sender has a quarter of a window at a time, half of one of maximum size. Few senders have a whole burst each as
// soon as two bursts fit.
func TestPart(t *testing.T) {
	const burst = 64
	for _, c := range []struct{ size, senders, want int }{
		{512, 1, 256}, {512, 4, 256}, {512, 100, 256},
		{400, 4, 100}, {256, 4, 64}, {160, 4, 64}, {128, 4, 64}, {127, 4, 63}, {100, 4, 36}, {84, 4, 21}, {64, 4, 16}, {32, 4, 8},
		{32, 2, 8},
		{160, 1, 40}, {128, 8, 64}, {128, 9, 32}, {160, 100, 40}, {2, 4, 0},
	} {
		w := window{size: c.size, most: 512, users: c.senders}
		if n := w.part(burst); n != c.want {
			t.Errorf("window of %d, %d senders: %d packets at a time, want %d", c.size, c.senders, n, c.want)
		}
	}
}
