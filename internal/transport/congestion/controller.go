package congestion

import "github.com/softvpi/softvpi/internal/clock"

// Controller decides how many packets may be in flight to one destination, and from when on the next may leave. One
// serves all queue pairs with that destination. Transport counts what is in flight itself, and tells the controller what
// happens; it holds the loop lock meanwhile, so that no call may block or, except for the first ones, allocate.
type Controller interface {
	// Limit returns how many packets may be in flight, and what that is at most. It changes only in Acked, Lost, Crowded
	// and Notified, which return the new one: transport does not ask for each packet.
	Limit() (now, most int)
	// NextSend returns from when on packets may leave: now, or later if the rate is limited. Transport asks once for each
	// turn of a queue pair, and again at that time.
	NextSend(now clock.Time) clock.Time
	// Sent says that n packets have left, retransmissions among them; one call for each turn.
	Sent(now clock.Time, n int)
	// Acked says that n packets have arrived, of inFlight that were in flight before.
	Acked(now clock.Time, n, inFlight int) (limit int)
	// Lost says that n packets are taken for lost and retransmitted.
	Lost(now clock.Time, n int) (limit int)
	// Crowded says that a queue pair found another gap in its packets in flight.
	Crowded() (limit int)
	// Notified says that a congestion notification has arrived (IBA annex A17.9.3): a switch has marked packets to the
	// destination.
	Notified(now clock.Time) (limit int)
}
