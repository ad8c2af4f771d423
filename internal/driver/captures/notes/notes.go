// Package notes puts together what a capture of an adapter has: its packets, and what the adapter's engine has noted of those of
// one queue pair. The note of a packet that is sent comes before it, with its mark, and that of one that has arrived behind it. Of the
// other packets nothing is left.
package notes

import (
	"slices"
	"time"

	"github.com/softvpi/softvpi/internal/link/capture"
	"github.com/softvpi/softvpi/internal/transport"
	"github.com/softvpi/softvpi/wire/ib"
)

const (
	// Patience is how long an arrived packet waits for its note. It has one at once, unless it does not reach its queue pair, or its port
	// keeps it until a receive is posted.
	Patience = 2 * time.Second
	// mostNotes is how many notes of sent packets are kept: those of packets that the link delays, or has lost.
	mostNotes = 1 << 14
	// mostWaiting is how many bytes of packets wait for their notes.
	mostWaiting = 16 << 20
)

// The comments of packets without a note.
const (
	commentDamaged = "arrived: ICRC is wrong: dropped before the queue pair"
	commentUnknown = "arrived: did not reach the queue pair, or waits before it"
	commentTwice   = " (once more: the link has doubled it)"
)

// Joiner puts packets and notes together.
type Joiner struct {
	qpn  uint32
	icrc ib.ICRCScratch

	sent   []*note          // the oldest first
	byMark map[uint32]*note // all of sent
	byKey  map[key][]*note  // those whose packets have not come, the oldest first

	ready   []*packet
	waiting map[key][]*packet // those of ready without a note, the oldest first
	bytes   int               // of ready
}

// key is by what a packet and its note are known as each other's.
type key struct {
	dest   uint32
	psn    ib.PSN
	opcode ib.Opcode
}

// note is one of a packet that was sent.
type note struct {
	transport.PacketNote
	at   time.Time
	used bool
}

func (n *note) key() key { return key{n.Dest, n.PSN, n.Opcode} }

// packet is one of the queue pair.
type packet struct {
	capture.Packet
	key
	comment string // "": it waits for its note
}

// New returns a joiner for the packets of a queue pair.
func New(qpn uint32) *Joiner {
	return &Joiner{qpn: qpn, byMark: map[uint32]*note{}, byKey: map[key][]*note{}, waiting: map[key][]*packet{}}
}

// Add takes what comes next out of the capture. It keeps nothing of p's memory. The error is that of a note which is none.
func (j *Joiner) Add(p *capture.Packet) error {
	if p.Note {
		n, err := transport.ReadPacketNote(p.Data)
		if err != nil {
			return err
		}
		j.note(p.Time, n)
		return nil
	}
	k, damaged, ok := j.dissect(p)
	switch {
	case !ok:
	case p.Outbound:
		if text, ok := j.noteOf(p.Mark, k); ok {
			j.keep(p, k, text)
		}
	case k.dest == j.qpn && damaged:
		j.keep(p, k, commentDamaged)
	case k.dest == j.qpn:
		j.keep(p, k, "")
	}
	return nil
}

// note takes a note: of a packet that is still to come, or of the oldest one that waits for it.
func (j *Joiner) note(at time.Time, n transport.PacketNote) {
	if n.Sent {
		for len(j.sent) > 0 && (len(j.sent) >= mostNotes || at.Sub(j.sent[0].at) > Patience) {
			j.forget()
		}
		x := &note{PacketNote: n, at: at}
		j.sent, j.byMark[n.Mark] = append(j.sent, x), x
		j.byKey[x.key()] = append(j.byKey[x.key()], x)
		return
	}
	if p := first(j.waiting, key{n.Dest, n.PSN, n.Opcode}); p != nil {
		p.comment = n.String()
	}
}

// forget forgets the oldest note.
func (j *Joiner) forget() {
	n := j.sent[0]
	j.sent[0] = nil
	j.sent = j.sent[1:]
	delete(j.byMark, n.Mark)
	remove(j.byKey, n.key(), n)
}

// noteOf returns the note of a packet that was sent: by its mark, or if that is none of a note, as that of a packet which its link has
// kept for a while, by what it says; false: the queue pair has not sent it.
func (j *Joiner) noteOf(mark uint32, k key) (text string, ok bool) {
	n := j.byMark[mark]
	switch {
	case n == nil || n.key() != k:
		if n = first(j.byKey, k); n == nil {
			return "", false
		}
	case n.used:
		return n.String() + commentTwice, true
	default:
		remove(j.byKey, k, n)
	}
	n.used = true
	return n.String(), true
}

// first takes the first of a list out; nil: there is none.
func first[T any](lists map[key][]*T, k key) *T {
	if len(lists[k]) == 0 {
		return nil
	}
	x := lists[k][0]
	remove(lists, k, x)
	return x
}

// remove takes x out of a list, if it is there.
func remove[T any](lists map[key][]*T, k key, x *T) {
	list := lists[k]
	if i := slices.Index(list, x); i >= 0 {
		lists[k] = slices.Delete(list, i, i+1)
	}
	if len(lists[k]) == 0 {
		delete(lists, k)
	}
}

func (j *Joiner) keep(p *capture.Packet, k key, comment string) {
	x := &packet{Packet: *p, key: k, comment: comment}
	x.Data = append([]byte(nil), p.Data...)
	j.ready = append(j.ready, x)
	j.bytes += len(x.Data)
	if comment == "" {
		j.waiting[k] = append(j.waiting[k], x)
	}
}

// Next takes the oldest packet out whose note is known, or is waited for no longer at now, the time of day; false: there is none.
func (j *Joiner) Next(now time.Time, p *capture.Packet) (comment string, ok bool) {
	if len(j.ready) == 0 {
		return "", false
	}
	k := j.ready[0]
	if k.comment == "" && now.Sub(k.Time) <= Patience && j.bytes <= mostWaiting {
		return "", false
	}
	if comment = k.comment; comment == "" {
		comment = commentUnknown
		remove(j.waiting, k.key, k)
	}
	*p = k.Packet
	j.bytes -= len(k.Data)
	j.ready[0] = nil
	if j.ready = j.ready[1:]; len(j.ready) == 0 {
		j.ready = nil
	}
	return comment, true
}

// Rest is Next when nothing more comes.
func (j *Joiner) Rest(p *capture.Packet) (comment string, ok bool) {
	if len(j.ready) == 0 {
		return "", false
	}
	return j.Next(j.ready[0].Time.Add(2*Patience), p)
}
