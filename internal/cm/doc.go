// Package cm is the connection manager of an adapter: the InfiniBand communication management protocol
// (IBA volume 1, chapter 12) with the RDMA IP CM addressing (IBA annex A11) that Linux, Windows and
// hardware adapters use for RoCE.
//
// An [Engine] is pure. Its driver tells it the time, passes in the MADs that arrived on QP1, and takes out
// the datagrams to send and the events to act on; it never blocks, waits, reads a clock or draws random
// numbers of its own.
//
// A connection is identified by an [ID], as in the RDMA CM of Linux:
//
//	active:  Open, (Bind,) Connect -> EventConnectResponse, Establish -> EventEstablished
//	passive: Open, Bind, Listen -> EventConnectRequest, Accept -> EventEstablished
//	both:    Disconnect -> EventDisconnected -> EventTimewaitExit, Destroy
//
// In the IB port space, that of RDMA_PS_IB in Linux, connections may also be extended reliable ones (annex A14): the
// active side's QP is the initiator, the passive side's the target.
//
// In the UDP port space Connect asks for a datagram QP (SIDR_REQ) and Accept supplies one (SIDR_REP):
// EventConnectResponse is then the last event.
//
// No MAD is trusted. One that does not fit the state of its connection, or that comes from an address
// other than the connection's peer, is answered if the specification requires it, and otherwise counted
// and dropped; [Config] limits what peers can make the engine store.
package cm
