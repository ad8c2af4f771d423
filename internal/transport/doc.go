// Package transport is the InfiniBand transport layer of an adapter: queue pairs
// of the RC, UC and UD services, requester and responder, from the BTH onward
// (IBA chapter 9, with the queue pair model of chapter 10).
//
// An Engine is pure. It does no I/O, starts no goroutine and reads no clock; it
// is told the time and handed packets and work, and it hands back packets,
// completions, events, and copies that it cannot make itself. A driver's turn is
//
//	e.Receive(now, packets)         // what encap.Open let through
//	e.Doorbell(q)                   // for each QP whose client posted work
//	e.Advance(now)                  // when now has reached Deadline
//	n := e.Transmit(now, out)       // packets for encap.Seal and the link
//	e.Copies(copies)                // memory that only its owner can reach
//	e.Copied(now, results)
//	e.Completions(out); e.Events(out); e.Datagrams(out)
//
// and it comes round again while Pending reports more to transmit. Outgoing
// payloads point into registered memory, or into the engine's scratch, until the
// next call of Transmit.
//
// Several engines may live on one loop. One goroutine at a time calls the
// methods of the engines of a loop; nothing here takes a lock.
//
// Below it, and knowing nothing of it: congestion, how the window of packets in flight to a destination grows and shrinks.
package transport
