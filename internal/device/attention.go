package device

import "time"

const (
	// streamPackets in one turn of the loop are a stream.
	streamPackets = 8
	// attentionMost bounds how long the loop looks for more of a stream, beyond Config.Spin.
	attentionMost = 500 * time.Microsecond
)

// attention is how long the background goroutine goes on looking for packets, beyond Config.Spin, before it sleeps. It has
// earned the time that packets of streams took it: to sleep and to be woken costs both ends more than a look, most
// of all in a virtual machine, and a receiver that is a little faster than the sender would do so behind each burst. At most as long is
// looked in vain as was worked.
type attention struct{ left time.Duration }

// worked is called for each turn that found something: how long it took, and the packets that came in it.
func (a *attention) worked(took time.Duration, arrived int) {
	if arrived >= streamPackets {
		a.left = min(a.left+took, attentionMost)
	}
}

// idled is called for each look in vain past Config.Spin: how long it took. It reports whether to go on.
func (a *attention) idled(took time.Duration) bool {
	a.left = max(a.left-took, 0)
	return a.left > 0
}
