// Package transport is the InfiniBand transport layer of an adapter: queue pairs
// of the RC, XRC, UC and UD services, requester and responder, from the BTH onward
// (IBA chapter 9, with the queue pair model of chapter 10).
//
// An Engine is pure. It does no I/O, starts no goroutine and reads no clock; it is told the time and
// handed packets and work, and it returns packets, completions, events, and copies that it cannot make
// itself. One turn of a driver is
//
//	e.Receive(now, packets)         // what encap.Open let through
//	e.Doorbell(q)                   // for each QP whose client posted work
//	e.Advance(now)                  // when now has reached Deadline
//	n := e.Transmit(now, out)       // packets for encap.Seal and the link
//	e.Copies(copies)                // memory that only its owner can reach
//	e.Copied(now, results)
//	e.Completions(out); e.Events(out); e.Datagrams(out)
//
// and it is repeated while Pending reports that there is more to transmit. Outgoing payloads point into
// registered memory, or into the engine's scratch, until the next call of Transmit.
//
// A loop may have several engines. Only one goroutine at a time may call the methods of a loop's engines;
// nothing here takes a lock. Two connected queue pairs of a loop's engines are a Pair, and their messages may go by the
// loop itself (package path): TransmitLocal and ReceiveLocal are for them what Transmit and Receive are for packets, and an
// Exchange carries what passes between engines.
//
// The package congestion, which is independent of this one, implements the window of packets in flight to
// a destination.
package transport
