package eth

// congestionExperienced is the ECN field of a packet that a switch has marked (RFC 3168).
const congestionExperienced = 3

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
		h.SetToS(h.ToS() | congestionExperienced)
		h.SetChecksum()
	case (e.Type == TypeIPv6 || e.Type == TypeRoCEv1) && len(b) >= IPv6Len:
		b[1] |= congestionExperienced << 4
	default:
		return false
	}
	return true
}
