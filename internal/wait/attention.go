package wait

import "time"

const (
	// streamPackets is the number of packets in one turn of the loop from which on they count as a stream.
	streamPackets = 8
	// attentionMost is the maximum time for which the loop looks for more of a stream, beyond its usual time.
	attentionMost = 500 * time.Microsecond
)

// Attention is how long a loop keeps looking for packets, beyond its usual time, before it sleeps. It earns
// the time that it took to handle packets of streams, and thus never looks in vain for longer than it
// worked. Sleeping and waking costs both ends more than looking, most of all in a virtual machine, and a
// receiver slightly faster than the sender would do it after every burst.
type Attention struct{ left time.Duration }

// Worked is called after each turn that found something, with its duration and number of packets.
func (a *Attention) Worked(took time.Duration, arrived int) {
	if arrived >= streamPackets {
		a.left = min(a.left+took, attentionMost)
	}
}

// Idled is called after each vain look beyond the usual time, with its duration. It reports whether to keep
// looking.
func (a *Attention) Idled(took time.Duration) bool {
	a.left = max(a.left-took, 0)
	return a.left > 0
}
