package device

import "time"

const (
	// streamPackets is the number of packets in one turn of the loop from which on they count as a stream.
	streamPackets = 8
	// attentionMost is the maximum time for which the loop looks for more of a stream, beyond Config.Spin.
	attentionMost = 500 * time.Microsecond
)

// attention is how long the background goroutine keeps looking for packets, beyond Config.Spin, before it
// sleeps. It earns the time that it took to handle packets of streams, and thus never looks in vain for
// longer than it worked. Sleeping and waking costs both ends more than looking, most of all in a virtual
// machine, and a receiver slightly faster than the sender would do it after every burst.
type attention struct{ left time.Duration }

// worked is called after each turn that found something, with its duration and number of packets.
func (a *attention) worked(took time.Duration, arrived int) {
	if arrived >= streamPackets {
		a.left = min(a.left+took, attentionMost)
	}
}

// idled is called after each vain look beyond Config.Spin, with its duration. It reports whether to keep
// looking.
func (a *attention) idled(took time.Duration) bool {
	a.left = max(a.left-took, 0)
	return a.left > 0
}
