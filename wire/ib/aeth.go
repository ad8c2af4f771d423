package ib

const (
	aethSyndrome = 0
	aethMSN      = 1
)

// AETH is a view of an ACK extended transport header (IBA 9.3.5), AETHLen bytes.
type AETH []byte

// Syndrome says whether the packet acknowledges or refuses, and why.
func (h AETH) Syndrome() Syndrome { return Syndrome(h[aethSyndrome]) }

// MSN is the message sequence number: how many messages the responder has completed, modulo 2^24.
func (h AETH) MSN() uint32 { return get24(h[aethMSN:]) }

// SetSyndrome sets the syndrome.
func (h AETH) SetSyndrome(s Syndrome) { h[aethSyndrome] = byte(s) }

// SetMSN sets the message sequence number to the low 24 bits of n.
func (h AETH) SetMSN(n uint32) { put24(h[aethMSN:], n) }

// Encode sets both fields.
func (h AETH) Encode(s Syndrome, msn uint32) {
	_ = h[AETHLen-1]
	h[aethSyndrome] = byte(s)
	put24(h[aethMSN:], msn)
}
