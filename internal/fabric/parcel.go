package fabric

import (
	"fmt"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/ib"
)

// frameError says why a frame cannot be sent.
type frameError struct {
	Field string
	Got   int
	Want  string
}

// Error implements error.
func (e *frameError) Error() string {
	return fmt.Sprintf("frame: %s is %d, want %s", e.Field, e.Got, e.Want)
}

// Parcel is a packet in transit. A multicast packet is in several queues at once, in each with a parcel of
// its own.
type Parcel struct {
	frame  [MaxFrame]byte
	length int
	vl     uint8
	hops   uint8      // switches passed
	held   hold       // the buffer space it occupies
	since  clock.Time // when it arrived at the switch
	next   *Parcel    // in the one list that it is in
}

// parcels is an ordered list of packets.
type parcels struct {
	first, last *Parcel
	count       int
}

func (l *parcels) add(p *Parcel) {
	if p.next = nil; l.first == nil {
		l.first = p
	} else {
		l.last.next = p
	}
	l.last = p
	l.count++
}

// remove removes the first packet; there must be one.
func (l *parcels) remove() *Parcel {
	p := l.first
	l.first, p.next = p.next, nil
	l.count--
	return p
}

// hold is space in the buffer of the port where a packet arrived; several parcels of one packet share it.
type hold struct {
	port   int32  // noPort: it comes from a program
	epoch  uint32 // of the link on which it arrived
	shared *int   // number of parcels left; nil: one
}

// bytes returns the space that the packet occupies in a buffer.
func (p *Parcel) bytes() int { return p.length }

func (p *Parcel) lrh() ib.LRH { return ib.LRH(p.frame[:ib.LRHLen]) }

// bth returns the packet's base transport header, which follows the GRH if there is one.
func (p *Parcel) bth() ib.BTH {
	at := p.transport()
	return ib.BTH(p.frame[at : at+ib.BTHLen])
}

// transport returns the offset of the BTH.
func (p *Parcel) transport() int {
	if p.lrh().NextHeader() == ib.LNHGlobal {
		return ib.LRHLen + ib.GRHLen
	}
	return ib.LRHLen
}

func (d *dataPlane) give(p *Parcel) {
	p.next = d.free
	d.free = p
}

// Bytes returns the packet from its LRH to its ICRC, valid until it is released.
func (p *Parcel) Bytes() []byte { return p.frame[:p.length] }
