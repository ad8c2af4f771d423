// Package cm is the connection manager of an adapter: the InfiniBand
// communication management protocol (IBA volume 1, chapter 12) with the RDMA IP
// CM addressing (IBA annex A11) that Linux, Windows and the cards use for RoCE.
//
// An [Engine] is pure. Its driver tells it the time, hands it the MADs that
// arrived on QP1, and takes from it the datagrams to send and the events to act
// on; it never blocks, waits, reads a clock or draws a random number of its own.
//
// A connection is an [ID], as it is in the RDMA CM of Linux:
//
//	active:  Open, (Bind,) Connect -> EventConnectResponse, Establish -> EventEstablished
//	passive: Open, Bind, Listen -> EventConnectRequest, Accept -> EventEstablished
//	both:    Disconnect -> EventDisconnected -> EventTimewaitExit, Destroy
//
// In the UDP port space Connect asks for a datagram QP (SIDR_REQ) and Accept
// names one (SIDR_REP): EventConnectResponse is then the end of it.
//
// Every MAD is untrusted. One that does not fit the state of the connection it
// names, or that comes from an address other than the connection's peer, is
// answered as the specification says where it says so, and otherwise counted and
// forgotten; what peers can make the engine keep is bounded by [Config].
package cm
