package cm

// Counters of the engine. The first five are rows of the manual's "RDMA
// Activity Counters" (WinOF manual 4.9.4.4.2.2).
type Counters struct {
	// Accepted: inbound connections established (RDMA Accepted Connections).
	Accepted uint64
	// Initiated: outbound connections established (RDMA Initiated Connections).
	Initiated uint64
	// Active: connections that are established now (RDMA Active Connections).
	Active uint64
	// FailedAttempts: inbound and outbound attempts that failed (RDMA Failed Connection Attempts).
	FailedAttempts uint64
	// ConnectionErrors: established connections with an error before a
	// consumer disconnected them (RDMA Connection Errors).
	ConnectionErrors uint64

	Received, Sent  uint64 // MADs
	Retransmitted   uint64 // MADs retransmitted after a timeout
	Duplicates      uint64 // MADs that repeat what has already been handled
	Malformed       uint64 // MADs that cannot be parsed, or are of another class, or from an invalid source
	Unknown         uint64 // MADs that do not refer to a connection of their sender
	Unexpected      uint64 // MADs that do not fit the state of their connection
	BacklogOverflow uint64 // requests refused because a listener's backlog was full
	HalfOpenLimit   uint64 // requests refused because MaxHalfOpen or MaxIDs was reached
	Displaced       uint64 // requests that made room for one of a peer with fewer, or for one that was repeated
	Unanswered      uint64 // requests not answered that there was no room, because many others were
	OutputDropped   uint64 // answers dropped because the driver did not take earlier ones
}
