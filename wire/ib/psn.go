package ib

// PSNMask is the largest packet sequence number, 2^24-1.
const PSNMask = 1<<24 - 1

// PSN is a packet sequence number: 24 bits that wrap (IBA 9.7.2). Count and compare with its methods; <
// and + ignore the wrap.
type PSN uint32

// Add is the PSN n packets later.
func (p PSN) Add(n uint32) PSN { return PSN(uint32(p)+n) & PSNMask }

// Sub is the PSN n packets earlier.
func (p PSN) Sub(n uint32) PSN { return PSN(uint32(p)-n) & PSNMask }

// Next is the PSN after p.
func (p PSN) Next() PSN { return (p + 1) & PSNMask }

// Prev is the PSN before p.
func (p PSN) Prev() PSN { return (p - 1) & PSNMask }

// Diff is how far p is ahead of q, from -2^23 (behind) to 2^23-1.
func (p PSN) Diff(q PSN) int32 { return int32(uint32(p-q)<<8) >> 8 }

// Before reports whether p is earlier than q: by 1 to 2^23 packets, the window in which a responder treats
// a request as a duplicate (IBA 9.7.1).
func (p PSN) Before(q PSN) bool { return p.Diff(q) < 0 }

// After reports whether p is later than q, by 1 to 2^23-1 packets.
func (p PSN) After(q PSN) bool { return p.Diff(q) > 0 }
