package device

import (
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/wire/ib"
)

const (
	// keepTime is how long an acknowledgement waits behind the answer that a program gave to
	// what it acknowledges, where the peer may go on with another message: then one
	// acknowledgement tells of both. To send it takes as long as to send the answer, in which
	// time the next message would lie unseen.
	keepTime = 14 * time.Microsecond
	// keepMost is for how long acknowledgements are replaced by later ones.
	keepMost = 60 * time.Microsecond
	// After keepMisses in a row that waited in vain keepPause are sent at once, and
	// keepLongPause where nobody drove the loop for keepLate meanwhile.
	keepMisses    = 2
	keepPause     = 256
	keepLongPause = 8192
	keepLate      = 100 * time.Microsecond
)

// keeper keeps one acknowledgement back. For the engine it was sent, and for the peer the network
// delayed it.
type keeper struct {
	packet frame.Out
	on     bool
	since  clock.Time // when its answer left
	first  clock.Time // since when none was sent; 0: the last one was
	misses int
	pause  int
}

// keepBack takes the acknowledgement out of a batch of an answer and it, where the program
// that answered looks for what follows.
func (a *adapter) keepBack(now clock.Time) {
	k := &a.keep
	if a.queued != 2 || k.on || now.Sub(a.host.drove) >= pollingTime || !acknowledges(&a.out[1]) {
		return
	}
	first, second := &a.out[0], &a.out[1]
	if first.Route != second.Route || ib.BTH(first.Head[frame.HeadRoom:]).Opcode() > ib.RCWriteOnlyImmediate {
		return
	}
	if k.pause > 0 {
		k.pause--
		return
	}
	if k.first == 0 {
		k.first = now
	}
	if now.Sub(k.first) > keepMost {
		k.first = 0
		return
	}
	k.packet, k.on, k.since = *second, true, now
	a.queued = 1
}

// acknowledges reports whether o is an acknowledgement that says nothing but that all is well.
func acknowledges(o *frame.Out) bool {
	return ib.BTH(o.Head[frame.HeadRoom:]).Opcode() == ib.RCAcknowledge && ib.AETH(o.Head[frame.HeadRoom+ib.BTHLen:]).Syndrome().IsACK()
}

// unkeep adds the kept acknowledgement to n packets, when its time has come, or forgets it where one
// of them tells as much. It returns how many there are then.
func (a *adapter) unkeep(now clock.Time, n int) int {
	k := &a.keep
	if !k.on {
		return n
	}
	for i := range a.out[:n] {
		if o := &a.out[i]; o.Route == k.packet.Route && answers(ib.BTH(o.Head[frame.HeadRoom:]).Opcode()) {
			k.on, k.misses = false, 0
			return n
		}
	}
	waited := now.Sub(k.since)
	if n == 0 && waited < keepTime {
		return 0
	}
	k.on, k.first = false, 0
	if k.misses++; k.misses >= keepMisses {
		k.misses, k.pause = 0, keepPause
	}
	if waited > keepLate {
		k.pause = keepLongPause
	}
	a.out[n] = k.packet
	return n + 1
}

// answers reports whether a responder sends packets of an opcode: they acknowledge all that came before.
func answers(op ib.Opcode) bool { return op >= ib.RCReadResponseFirst && op <= ib.RCAtomicAcknowledge }
