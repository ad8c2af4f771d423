package congestion

import "github.com/softvpi/softvpi/internal/clock"

// Controller decides how many packets may be in flight to one destination. One serves all queue pairs with that destination.
// Transport counts what is in flight itself, and tells the controller what happens; it holds the loop lock meanwhile, so that
// no call may block or, except for the first ones, allocate. From when on a queue pair may send is its ReactionPoint's matter.
type Controller interface {
	// Limit returns how many packets may be in flight, and what that is at most. It changes only in Acked, Lost and Crowded,
	// which return the new one: transport does not ask for each packet.
	Limit() (now, most int)
	// Acked says that n packets have arrived, of inFlight that were in flight before.
	Acked(now clock.Time, n, inFlight int) (limit int)
	// Lost says that n packets are taken for lost and retransmitted.
	Lost(now clock.Time, n int) (limit int)
	// Crowded says that a queue pair found another gap in its packets in flight.
	Crowded() (limit int)
}
