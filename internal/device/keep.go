package device

import (
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/wire/ib"
)

const (
	// keepTime is how long an acknowledgement may wait after the program's answer to the acknowledged
	// message, if the peer may continue with another message: then one acknowledgement covers both.
	// Sending it takes as long as sending the answer, and the next message would wait unseen meanwhile.
	keepTime = 14 * time.Microsecond
	// keepMost is for how long, and keepRow for how many messages, acknowledgements are replaced by later
	// ones: a program with room for just a few requests would have to wait for one for keepTime.
	keepMost = 60 * time.Microsecond
	keepRow  = 12
	// After keepMisses consecutive ones that waited in vain, keepPause ones leave with the next turn of
	// the loop in which nothing arrives: the other end may be in this process, and its program waiting for
	// the answer. If nobody drove the loop for keepLate meanwhile, keepHaste are sent at once, doubled at
	// each recurrence, up to keepHaste<<keepHastes.
	keepMisses = 2
	keepPause  = 256
	keepHaste  = 16
	keepHastes = 9
	keepLate   = 100 * time.Microsecond
)

// keeper holds back one acknowledgement. To the engine it was sent; to the peer it seems delayed by the
// network.
type keeper struct {
	packet frame.Out
	on     bool
	soon   bool       // it leaves as soon as nothing arrives
	since  clock.Time // when the answer was sent
	due    clock.Time // when it leaves at the latest
	first  clock.Time // since when none was sent; 0: the last one was
	row    int        // number kept since then
	misses int
	pause  int // remaining ones that are not kept for the next message
	haste  int // remaining ones that are sent at once
	late   int // how often nobody drove the loop recently
}

// keepBack takes the acknowledgement out of a batch of an answer and an acknowledgement if the program
// that answered is polling for what follows.
func (a *adapter) keepBack(now clock.Time) {
	k := &a.keep
	if a.queued != 2 || k.on || now.Sub(a.host.drove) >= pollingTime || !acknowledges(&a.out[1]) {
		return
	}
	first, second := &a.out[0], &a.out[1]
	if first.Route != second.Route || ib.BTH(first.Head[frame.HeadRoom:]).Opcode() > ib.RCWriteOnlyImmediate {
		return
	}
	if k.haste > 0 {
		k.haste--
		return
	}
	if k.first == 0 {
		k.first, k.row = now, 0
	}
	if now.Sub(k.first) > keepMost || k.row == keepRow {
		k.first = 0
		return
	}
	k.row++
	if k.soon = k.pause > 0; k.soon {
		if k.pause--; k.pause == 0 {
			k.late = max(k.late-1, 0)
		}
	}
	k.packet, k.on, k.since, k.due = *second, true, now, now.Add(keepTime)
	a.queued = 1
}

// sendKept sends what was kept for a turn of the loop in which nothing arrives.
func (a *adapter) sendKept(now clock.Time) bool { return a.keep.hurry(now) && a.transmit(now) }

// hurry makes the kept packet leave now, unless it is kept for the next message.
func (k *keeper) hurry(now clock.Time) bool {
	if !k.on || !k.soon {
		return false
	}
	k.due = now
	return true
}

// keptUntil returns when the loop must run for the kept packet.
func (k *keeper) keptUntil() clock.Time {
	switch {
	case !k.on:
		return clock.Never
	case k.soon:
		return k.since
	}
	return k.due
}

// acknowledges reports whether o is a plain positive acknowledgement.
func acknowledges(o *frame.Out) bool {
	return ib.BTH(o.Head[frame.HeadRoom:]).Opcode() == ib.RCAcknowledge && ib.AETH(o.Head[frame.HeadRoom+ib.BTHLen:]).Syndrome().IsACK()
}

// unkeep adds the kept acknowledgement to n packets when its time has come, or drops it if one of them
// implies it. It returns the new number of packets.
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
	if n == 0 && now < k.due {
		return 0
	}
	k.on, k.first = false, 0
	if !k.soon {
		k.misses++
	}
	if k.misses >= keepMisses {
		k.misses, k.pause = 0, keepPause
	}
	if now.Sub(k.since) > keepLate {
		k.haste = keepHaste << k.late
		k.late = min(k.late+1, keepHastes)
	}
	a.out[n] = k.packet
	return n + 1
}

// answers reports whether an opcode is that of a response, which acknowledges everything before it.
func answers(op ib.Opcode) bool { return op >= ib.RCReadResponseFirst && op <= ib.RCAtomicAcknowledge }
