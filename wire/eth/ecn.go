package eth

// ECN is the lower two bits of an IP packet's traffic class or type of service (RFC 3168, 5), ECNMask all of it.
const (
	ECNMask    = 3
	ECNCapable = 2 // ECT(0): switches may mark the packet
	ECNMarked  = 3 // CE: one has
)

// Marked reports whether a switch has marked a packet with this traffic class.
func Marked(class uint8) bool { return class&ECNMask == ECNMarked }

// Mark returns a traffic class that says that the packet met congestion, whatever it said before.
func Mark(class uint8) uint8 { return class | ECNMarked }

// MarkCongestion makes the IP header, or GRH, of a frame say "congestion experienced" whatever it said before, as a switch with a
// long queue does. It reports whether all of the header is there. frame may end behind it.
func MarkCongestion(frame []byte) bool {
	e, b, err := ParseEthernet(frame)
	if err != nil {
		return false
	}
	switch {
	case e.Type == TypeIPv4 && len(b) >= IPv4Len && len(b) >= IPv4(b).HeaderLen():
		h := IPv4(b)
		h.SetToS(Mark(h.ToS()))
		h.SetChecksum()
	case (e.Type == TypeIPv6 || e.Type == TypeRoCEv1) && len(b) >= IPv6Len:
		b[1] |= ECNMarked << 4
	default:
		return false
	}
	return true
}
