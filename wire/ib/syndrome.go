package ib

import "fmt"

// Syndrome is the first byte of an AETH (IBA 9.7.5.2.1, table "AETH Syndrome Field").
// Bit 7 is reserved, bits 6 and 5 are the kind and the low five bits a value whose
// meaning depends on the kind.
type Syndrome uint8

// The kinds of syndrome.
const (
	SyndromeACK    = 0 // the value is a credit count code
	SyndromeRNR    = 1 // receiver not ready: the value is a timer code
	SyndromeUnused = 2 // reserved
	SyndromeNAK    = 3 // the value is a NAK code
)

// The NAK syndromes (IBA 9.7.5.2.8, table "NAK Codes").
const (
	NAKSequence          Syndrome = 0x60 // PSN sequence error
	NAKInvalidRequest    Syndrome = 0x61
	NAKRemoteAccess      Syndrome = 0x62
	NAKRemoteOperational Syndrome = 0x63
	NAKInvalidRDRequest  Syndrome = 0x64
)

// ACK is the syndrome of an acknowledgement that advertises a credit count code (0 to 31).
func ACK(creditCode uint8) Syndrome { return Syndrome(creditCode & 0x1f) }

// RNR is the syndrome of a receiver-not-ready NAK with a timer code (0 to 31).
func RNR(timerCode uint8) Syndrome { return SyndromeRNR<<5 | Syndrome(timerCode&0x1f) }

// Kind is one of SyndromeACK, SyndromeRNR, SyndromeUnused and SyndromeNAK.
func (s Syndrome) Kind() int { return int(s>>5) & 3 }

// Value is the low five bits.
func (s Syndrome) Value() uint8 { return uint8(s & 0x1f) }

// IsACK reports whether it is a positive acknowledgement.
func (s Syndrome) IsACK() bool { return s.Kind() == SyndromeACK }

// IsRNR reports whether it is a receiver-not-ready NAK.
func (s Syndrome) IsRNR() bool { return s.Kind() == SyndromeRNR }

// IsNAK reports whether it is a NAK other than receiver not ready; its code may still be a reserved one.
func (s Syndrome) IsNAK() bool { return s.Kind() == SyndromeNAK }

// String formats the syndrome for logs: "ACK credits=16", "RNR NAK timer=18", "NAK remote access error".
func (s Syndrome) String() string {
	switch s.Kind() {
	case SyndromeACK:
		n, limited := Credits(s.Value())
		if !limited {
			return "ACK credits=unlimited"
		}
		return fmt.Sprintf("ACK credits=%d", n)
	case SyndromeRNR:
		return fmt.Sprintf("RNR NAK timer=%d", s.Value())
	case SyndromeNAK:
		if v := s.Value(); int(v) < len(nakNames) {
			return "NAK " + nakNames[v]
		}
	}
	return fmt.Sprintf("reserved syndrome %#02x", uint8(s))
}

var nakNames = [...]string{
	"PSN sequence error", "invalid request", "remote access error", "remote operational error", "invalid RD request",
}
