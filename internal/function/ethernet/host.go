package ethernet

import (
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/function/ethernet/queue"
	"github.com/softvpi/softvpi/wire/eth"
)

// Packet is a received frame as it is indicated.
type Packet = queue.Packet

// Host is what uses a function. It must not call the function from these methods, except Send.
type Host interface {
	// Indicate takes frames of a receive queue, in order; they are valid until it returns. It returns how many it took. If it
	// has no room for all, the rest waits in the queue until Ready.
	Indicate(now clock.Time, queue int, list []Packet) int
	// Sent says that the next n sends of a send queue, in the order in which they were posted, are complete: the function no
	// longer needs their memory.
	Sent(now clock.Time, queue, n int)
	// Raised takes an event.
	Raised(now clock.Time, e Event)
}

// Wire is what a function knows of where its frames go: a *port.Station.
type Wire interface {
	// TakesLarge reports whether a frame to a MAC, in a VLAN by its tag, 0: without one, may be larger than those of a wire, with
	// checksums still to be made.
	TakesLarge(dst eth.MAC, vlan uint16) bool
	// Encloses reports whether a large frame of n bytes of TCP to a MAC may be, although TakesLarge says no: it leaves in a tunnel.
	Encloses(dst eth.MAC, n int) bool
	// Priority returns that of a received frame.
	Priority(frame []byte) uint8
}
