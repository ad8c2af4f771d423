// Package packet sends and receives whole Ethernet frames through an AF_PACKET socket
// of Linux, beside the UDP socket of a link. Small packets that come alone gain by it: one
// that is sent skips the system's UDP and IP output, and one that is received lies in a
// ring of shared memory, so that a look at it takes no system call.
//
// A Port has a ring in which every packet to the UDP port and address of a link leaves
// something, in the order of arrival: a short one itself, a longer one (a burst, mostly)
// a mark, which says that the socket has a message more. The socket's filter (Rule.socket)
// drops the packets that the ring has whole, so that each comes once. What only the
// socket sees (packets by other interfaces, and with IP options) leaves no mark.
//
// Where tc has nothing at the entrance of the interface, the ring has a packet before the system's IP input has; else
// behind it. In the first case, and on Ethernet, a program at that entrance (gate) drops what the ring has, which
// so does not take the way to the socket's filter.
//
// A link that mostly receives bursts has the ring take nothing (Pause, Resume).
//
// A frame leaves by the interface that holds the address, and only where the system would
// send it there too: routes, rules and neighbours are the system's, asked for and followed
// over netlink. Queueing disciplines, taps and the filters of tc see it; the firewall
// (netfilter) and IPsec do not, so that Open refuses where a firewall has tables.
//
// The UDP checksum of what is received is not looked at: it may be none, or be left for
// a device to fill in, and the ICRC covers everything that matters. What is sent has none
// over IPv4, as Annex A17 has it, and a right one over IPv6, which other systems want.
package packet

import (
	"fmt"
	"net/netip"
)

// MostPayload is the longest UDP payload that the ring takes and Send sends, in bytes.
const MostPayload = 256

// Mode says whether links use frames.
type Mode uint8

// The modes.
const (
	Auto Mode = iota // where the system lets them, and has no firewall that they would pass by
	On               // also beside a firewall
	Off
)

// Modes are the names of the modes, in their order.
var Modes = []string{"auto", "on", "off"}

// String is the mode's name.
func (m Mode) String() string {
	if int(m) < len(Modes) {
		return Modes[m]
	}
	return fmt.Sprintf("mode %d", uint8(m))
}

// ParseMode reads a mode; "" is Auto. ok is false for what is none.
func ParseMode(s string) (m Mode, ok bool) {
	if s == "" {
		return Auto, true
	}
	for i, name := range Modes {
		if s == name {
			return Mode(i), true
		}
	}
	return Auto, false
}

// Config says for which link a Port is.
type Config struct {
	Addr      netip.Addr // of the link
	Port      uint16     // UDP, that packets arrive at
	Interface int        // index of the one that holds Addr
	Firewall  bool       // use frames although there is a firewall
}

// unavailableError says why there are no frames: it is no fault.
type unavailableError struct{ Why string }

func (e *unavailableError) Error() string { return "no frames: " + e.Why }

// Stats are counters of a Port since it was opened.
type Stats struct {
	Sent     uint64 // packets sent as frames
	Received uint64 // packets received from the ring
	Frames   uint64 // frames that were whole in the ring, so that the socket dropped them; a burst is one
	Bad      uint64 // frames in the ring that are no datagram for the port, dropped
}
