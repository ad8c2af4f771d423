package port

import (
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/frame"
)

// Function is what is behind a port: what programs or a host's network stack use. Like every engine it is driven.
type Function interface {
	// Receive takes packets that the port classified as this function's; they are valid until it returns.
	Receive(now clock.Time, in []frame.In)
	// Transmit fills in packets of one priority, at most len(out), and returns how many. They are valid until the
	// next call.
	Transmit(now clock.Time, priority uint8, out []frame.Out) int
	// Pending returns the priorities at which Transmit has something to do, bit p for priority p.
	Pending() uint8
	// Advance does what is due.
	Advance(now clock.Time)
	// Deadline is when Advance is wanted next.
	Deadline() clock.Time
}

// Steerer is the Function of a Steered station: it takes frames by rules of its own, whatever their MAC.
type Steerer interface {
	Function
	// Steers reports whether a rule takes a frame that begins with head: with its headers at least.
	Steers(head []byte) bool
	// Names is Steers of rules that name the frame's destination in full.
	Names(head []byte) bool
	// Turn takes frames that a Steered station of the port sends to the MAC of another, for as long as a rule takes the next of
	// them, and returns how many. Their heads have everything that rules look at; nothing of them is used any more when it returns.
	Turn(now clock.Time, out []frame.Out) int
	// SentBy says by which route the frames were sent that Receive takes until the next call; nil: they are not of a Steered station.
	SentBy(route *frame.Route)
	// TakesRest reports whether it takes frames to its MAC, or to nobody's, that nothing else takes.
	TakesRest() bool
	// Sniffs reports whether it is to be shown every frame that comes and goes, by Sniff, beside those that it takes.
	Sniffs() bool
	// Sniff shows it a frame, which is valid until it returns.
	Sniff(now clock.Time, b []byte)
}

// Taker is the Function of an Agent station.
type Taker interface {
	Function
	// Takes reports whether a frame that begins with head, its Ethernet header at least, is for it.
	Takes(head []byte) bool
}

// Waiter is a Function that can leave packets alone for which it has no receive, so that they wait (Dropless).
type Waiter interface {
	Function
	// Take is Receive for as many packets, in order, as there are receives for, and returns how many it took. queue is the number of
	// the receive queue that the next one waits for.
	Take(now clock.Time, in []frame.In) (n int, queue uint32)
}

// Filler is a Function whose receive queues fill up while nobody takes from them.
type Filler interface {
	Function
	// Filled returns the priorities of frames in receive queues that are filled above their threshold.
	Filled() uint8
	// Stands reports whether frames wait for somebody who takes none, and how many were taken so far.
	Stands() (waits bool, taken uint64)
}

// Lender is a Function that has something to do when packets that it has handed out are its own again: at the next Transmit. While all
// that it has to send is paused, the port calls that for no packet.
type Lender interface {
	Function
	// Lent reports whether packets are handed out.
	Lent() bool
}

// Patient is a Function that takes what is late for lost, unless the wire pauses where it would lose.
type Patient interface {
	Function
	// SetLossless tells it at which priorities the port obeys pauses, bit p for priority p, when that has changed.
	SetLossless(priorities uint8)
}

// Placer is a Function that knows where the payloads of packets belong before they are opened, so that opening them
// copies them there.
type Placer interface {
	Function
	// Place returns how many of the packets in, at least 1 and none of them opened, are to be received before the rest.
	// It fills in next with what these are expected to be; ok is false if it expects nothing in particular.
	Place(next *frame.Next, in []frame.In) (n int, ok bool)
}
