// Package pause is flow control at one end of an Ethernet link: the global pause of IEEE 802.3, annex 31B, and priority-based flow
// control (PFC; IEEE 802.1Q, clause 36).
//
// An Engine is told the pauses that arrive, and says which priorities may not send, and till when. It is told for which priorities
// the other end is to be silent, and says when a pause is to be sent: at once when that changes, and again before the time of the
// last one is over. It is pure: it does no I/O and reads no clock.
package pause
