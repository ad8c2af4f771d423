package transport

import (
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ring"
)

const (
	// readChunk is how many response packets one READ request on the wire asks for. A longer read is sent
	// as several requests on chunk boundaries: read responses have no flow control of their own, and this
	// way the window limits them too. The responder sees ordinary reads of consecutive PSNs. The first and
	// last responses of each are longer than the others, which ends a burst: shorter chunks mean many
	// short bursts.
	readChunk = 64
	// splitMost is the longest write in packets that is sent as one message for each. In a longer one, the packets in the middle, which
	// are of one length anyway, fill a burst, and the responder receives them where they belong (Next).
	splitMost = 16
	// pairsFrom is the number of reads that a queue pair may have outstanding from which short ones are requested as several of two
	// packets. With fewer, what is on the way would be too little for the time of a round trip.
	pairsFrom = 64
	// pairsMost is the longest read in packets that is requested so: in a longer one the packets in the middle fill a burst, and it would
	// be many requests.
	pairsMost = 8
)

// pieceOf returns how many packets each of the messages has that r is on the wire, 0 if it is one.
//
// A link that joins packets into bursts takes those of one length, and the system takes about as long for a burst of two packets as for
// one of sixty. The first packet of a write is longer than the others by its RETH, so a burst would end before it and behind it. Short
// writes are therefore written packet by packet, each a write of its own with a RETH: what a program can tell from one write, or of one
// that fails half-way, it can tell from consecutive ones on a reliable connection, which are carried out in order. It is not so with
// immediate data, where the receiver learns the length of the whole, and on an unreliable connection, where all of a write is lost or
// nothing. XRC, which few use for many short messages, keeps to whole ones too.
//
// In the same way the first and the last response to a read are longer than those between them by their AETH. Short reads are requested
// by two packets at a time, which both have one.
func (q *QP) pieceOf(r *request) uint8 {
	several := q.typ == command.RC && r.packets > 1 && q.route.Bursts
	switch {
	case r.kind == kindRead && several && r.packets <= pairsMost && q.attr.InitiatorDepth >= pairsFrom:
		return 2
	case r.kind == kindRead:
		return readChunk
	case r.wr.Op == ring.OpWrite && several && r.packets <= splitMost:
		return 1
	}
	return 0
}

// messages returns how many messages the responder counts for r.
func messages(r *request) uint32 {
	n := uint32(r.piece)
	if n == 0 || r.packets <= n {
		return 1
	}
	return (r.packets + n - 1) / n
}
