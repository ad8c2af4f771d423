package transport

// Counters are plain words that an engine increments and the control plane reads. The first group is named
// after the table "Mellanox Adapter Diagnostics Counters" (WinOF manual 4.9.4.2); the rest are the "RDMA
// Activity" set and additions of this implementation. "Requester" counts what happened to outbound
// requests, "Responder" what happened to inbound ones.
type Counters struct {
	RequesterLengthErrors         uint64 // local length errors
	ResponderLengthErrors         uint64
	RequesterQPOperationErrors    uint64 // local QP operation errors
	ResponderQPOperationErrors    uint64
	RequesterProtectionErrors     uint64 // local protection errors
	ResponderProtectionErrors     uint64
	RequesterCQEErrors            uint64 // completions with an error, flushes included
	ResponderCQEErrors            uint64
	RequesterInvalidRequestErrors uint64 // NAK invalid request received
	ResponderInvalidRequestErrors uint64 // ... sent
	RequesterRemoteAccessErrors   uint64
	ResponderRemoteAccessErrors   uint64
	RequesterRNRNAK               uint64
	ResponderRNRNAK               uint64
	RequesterOutOfOrderNAK        uint64 // sequence NAKs received
	ResponderOutOfOrder           uint64 // packets ahead of a missing one
	RequesterResync               uint64 // times the requester went back to an earlier PSN
	ResponderResync               uint64 // times the responder restarted a read response
	RequesterRemoteOperationErrs  uint64
	ResponderRemoteOperationErrs  uint64
	RequesterRetriesExceeded      uint64
	RequesterRNRRetriesExceeded   uint64
	BadMulticast                  uint64
	DiscardedUD                   uint64 // no receive was posted
	RawSent, RawReceived          uint64 // whole frames of raw packet QPs
	RawDiscarded                  uint64 // those that found no receive
	DiscardedUC                   uint64
	ResponderDuplicateRequests    uint64
	RequesterTimeouts             uint64
	CopiedPackets                 uint64 // payload gathered: it crosses SGEs, or lies in unmapped memory

	OutboundPackets, OutboundBytes uint64 // packets sent, transport headers and payload
	InboundPackets, InboundBytes   uint64
	RetransmittedPackets           uint64 // request packets sent more than once
	LocalMessages, LocalBytes      uint64 // requests of this side carried out on the local path
	DirectMessages, DirectBytes    uint64 // requests that programs carried out on the direct path

	// The equivalent of messages on the local and direct paths, by the direction of their data: packets of
	// the path MTU, and bytes of payload.
	LocalOutboundPackets, LocalOutboundBytes uint64
	LocalInboundPackets, LocalInboundBytes   uint64

	PKeyViolations  uint64
	QKeyViolations  uint64
	UnknownQP       uint64 // packets for no QP of this engine
	WrongSource     uint64 // packets for a connected QP from an address that is not its peer's
	WrongSourcePort uint64 // packets for a connected QP from its peer's address, but not from the peer's UDP port
	// ConflictingPackets are packets that differ from the one kept for the same PSN, which is dropped.
	ConflictingPackets uint64
	Malformed          uint64 // too short, reserved opcode, wrong version
	WrongState         uint64 // packets for a QP whose state accepts none
	WrongService       uint64 // opcode of another transport service
	GhostACKs          uint64 // acknowledgements of packets that are not outstanding
	Probes             uint64 // oldest packet retransmitted before the ACK timer ends
	ImpliedNAKs        uint64 // lost read or atomic responses that were detected
	SequenceNAKsSent   uint64
	ACKsSent           uint64
	ACKsReceived       uint64
	BrokenUC           uint64 // UC messages dropped because a packet was missing
	CongestionNotices  uint64 // CNPs received
	IgnoredNotices     uint64 // of these, those for a QP whose priority does not react, or not from its peer
	MarkedPackets      uint64 // packets that a switch has marked, of priorities for which any are answered
	NoticesSent        uint64 // CNPs sent
	Unreachable        uint64 // ICMP errors from destinations
	MulticastPackets   uint64
	DatagramDrops      uint64 // MADs dropped because the queue was full
}

// countAgain counts a packet that q sends once more.
func (e *Engine) countAgain(q *QP) {
	e.counters.RetransmittedPackets++
	e.retransmitted = q.num
}

// counterNames is the order in which Each reports.
var counterNames = []struct {
	name string
	at   func(*Counters) *uint64
}{
	{"Requester length errors", func(c *Counters) *uint64 { return &c.RequesterLengthErrors }},
	{"Responder length errors", func(c *Counters) *uint64 { return &c.ResponderLengthErrors }},
	{"Requester QP operation errors", func(c *Counters) *uint64 { return &c.RequesterQPOperationErrors }},
	{"Responder QP operation errors", func(c *Counters) *uint64 { return &c.ResponderQPOperationErrors }},
	{"Requester protection errors", func(c *Counters) *uint64 { return &c.RequesterProtectionErrors }},
	{"Responder protection errors", func(c *Counters) *uint64 { return &c.ResponderProtectionErrors }},
	{"Requester CQE errors", func(c *Counters) *uint64 { return &c.RequesterCQEErrors }},
	{"Responder CQE errors", func(c *Counters) *uint64 { return &c.ResponderCQEErrors }},
	{"Requester Invalid request errors", func(c *Counters) *uint64 { return &c.RequesterInvalidRequestErrors }},
	{"Responder Invalid request errors", func(c *Counters) *uint64 { return &c.ResponderInvalidRequestErrors }},
	{"Requester Remote access errors", func(c *Counters) *uint64 { return &c.RequesterRemoteAccessErrors }},
	{"Responder Remote access errors", func(c *Counters) *uint64 { return &c.ResponderRemoteAccessErrors }},
	{"Requester RNR NAK", func(c *Counters) *uint64 { return &c.RequesterRNRNAK }},
	{"Responder RNR NAK", func(c *Counters) *uint64 { return &c.ResponderRNRNAK }},
	{"Requester out of order sequence NAK", func(c *Counters) *uint64 { return &c.RequesterOutOfOrderNAK }},
	{"Responder out of order sequence received", func(c *Counters) *uint64 { return &c.ResponderOutOfOrder }},
	{"Requester resync", func(c *Counters) *uint64 { return &c.RequesterResync }},
	{"Responder resync", func(c *Counters) *uint64 { return &c.ResponderResync }},
	{"Requester Remote operation errors", func(c *Counters) *uint64 { return &c.RequesterRemoteOperationErrs }},
	{"Responder Remote operation errors", func(c *Counters) *uint64 { return &c.ResponderRemoteOperationErrs }},
	{"Requester transport retries exceeded errors", func(c *Counters) *uint64 { return &c.RequesterRetriesExceeded }},
	{"Requester RNR NAK retries exceeded errors", func(c *Counters) *uint64 { return &c.RequesterRNRRetriesExceeded }},
	{"Bad multicast received", func(c *Counters) *uint64 { return &c.BadMulticast }},
	{"Discarded UD packets", func(c *Counters) *uint64 { return &c.DiscardedUD }},
	{"Raw frames sent", func(c *Counters) *uint64 { return &c.RawSent }},
	{"Raw frames received", func(c *Counters) *uint64 { return &c.RawReceived }},
	{"Discarded raw frames", func(c *Counters) *uint64 { return &c.RawDiscarded }},
	{"Discarded UC packets", func(c *Counters) *uint64 { return &c.DiscardedUC }},
	{"Responder duplicate request received", func(c *Counters) *uint64 { return &c.ResponderDuplicateRequests }},
	{"Requester time out received", func(c *Counters) *uint64 { return &c.RequesterTimeouts }},
	{"TX Copied Packets", func(c *Counters) *uint64 { return &c.CopiedPackets }},
	{"RDMA Outbound Packets", func(c *Counters) *uint64 { return &c.OutboundPackets }},
	{"RDMA Outbound Bytes", func(c *Counters) *uint64 { return &c.OutboundBytes }},
	{"RDMA Inbound Packets", func(c *Counters) *uint64 { return &c.InboundPackets }},
	{"RDMA Inbound Bytes", func(c *Counters) *uint64 { return &c.InboundBytes }},
	{"Retransmitted packets", func(c *Counters) *uint64 { return &c.RetransmittedPackets }},
	{"Local messages", func(c *Counters) *uint64 { return &c.LocalMessages }},
	{"Local bytes", func(c *Counters) *uint64 { return &c.LocalBytes }},
	{"Direct messages", func(c *Counters) *uint64 { return &c.DirectMessages }},
	{"Direct bytes", func(c *Counters) *uint64 { return &c.DirectBytes }},
	{"Local outbound packets", func(c *Counters) *uint64 { return &c.LocalOutboundPackets }},
	{"Local outbound bytes", func(c *Counters) *uint64 { return &c.LocalOutboundBytes }},
	{"Local inbound packets", func(c *Counters) *uint64 { return &c.LocalInboundPackets }},
	{"Local inbound bytes", func(c *Counters) *uint64 { return &c.LocalInboundBytes }},
	{"P_Key violations", func(c *Counters) *uint64 { return &c.PKeyViolations }},
	{"Q_Key violations", func(c *Counters) *uint64 { return &c.QKeyViolations }},
	{"Packets for an unknown QP", func(c *Counters) *uint64 { return &c.UnknownQP }},
	{"Packets from the wrong source", func(c *Counters) *uint64 { return &c.WrongSource }},
	{"Packets from the wrong UDP port", func(c *Counters) *uint64 { return &c.WrongSourcePort }},
	{"Packets that differ from the one kept", func(c *Counters) *uint64 { return &c.ConflictingPackets }},
	{"Malformed packets", func(c *Counters) *uint64 { return &c.Malformed }},
	{"Packets in the wrong state", func(c *Counters) *uint64 { return &c.WrongState }},
	{"Packets of the wrong service", func(c *Counters) *uint64 { return &c.WrongService }},
	{"Ghost ACKs", func(c *Counters) *uint64 { return &c.GhostACKs }},
	{"Probes", func(c *Counters) *uint64 { return &c.Probes }},
	{"Implied NAKs", func(c *Counters) *uint64 { return &c.ImpliedNAKs }},
	{"Sequence NAKs sent", func(c *Counters) *uint64 { return &c.SequenceNAKsSent }},
	{"ACKs sent", func(c *Counters) *uint64 { return &c.ACKsSent }},
	{"ACKs received", func(c *Counters) *uint64 { return &c.ACKsReceived }},
	{"Broken UC messages", func(c *Counters) *uint64 { return &c.BrokenUC }},
	{"Congestion notifications received", func(c *Counters) *uint64 { return &c.CongestionNotices }},
	{"Congestion notifications ignored", func(c *Counters) *uint64 { return &c.IgnoredNotices }},
	{"Packets marked by switches", func(c *Counters) *uint64 { return &c.MarkedPackets }},
	{"Congestion notifications sent", func(c *Counters) *uint64 { return &c.NoticesSent }},
	{"Unreachable destinations", func(c *Counters) *uint64 { return &c.Unreachable }},
	{"Multicast packets", func(c *Counters) *uint64 { return &c.MulticastPackets }},
	{"MADs dropped", func(c *Counters) *uint64 { return &c.DatagramDrops }},
}

// Each calls f with the name and value of every counter, in a fixed order.
func (c *Counters) Each(f func(name string, value uint64)) {
	for _, n := range counterNames {
		f(n.name, *n.at(c))
	}
}
