// Package packet sends and receives whole Ethernet frames through an AF_PACKET socket of Linux, beside the
// UDP socket of a link. It speeds up small single packets: sending skips the system's UDP and IP output,
// and received packets are in a ring of shared memory, so that polling takes no system call.
//
// A Port has a ring in which every packet to the UDP port and address of a link leaves
// something, in the order of arrival: a short one itself, a longer one (a burst, mostly)
// a mark, which says that the socket has a message more. The socket's filter (Rule.socket)
// drops the packets that the ring has whole, so that each comes once. What only the
// socket sees (packets by other interfaces, and with IP options) leaves no mark.
//
// If tc has nothing at the interface's ingress, the ring gets a packet before the system's IP input; otherwise after it.
// In the first case, and on Ethernet, the packet socket's ring is not used for receiving: a program at the ingress (gate)
// copies packets and marks into shared memory, and drops those it copied completely, which saves their way to a packet
// socket and to the UDP socket's filter. Waking a process from there is expensive, so a consumer that is about to sleep
// says so (ArmWakeUp); one frame is then sent in again with the Ethernet type 0x88b5 (local experiments), to which the packet
// socket is bound, and that wakes the consumer.
//
// While a link mostly receives bursts, the ring takes nothing (Pause, Resume).
//
// Short packets leave as single frames (Send), longer ones and bursts of up to some kilobytes as one message that the
// system divides (Begin). What is longer leaves through the UDP socket.
//
// A frame leaves through the interface that has the address, and only if the system would send it there
// too: routes, rules and neighbours are the system's, queried and followed over netlink. Queueing
// disciplines, taps and the filters of tc see it, as the IP packet that it is; the firewall (netfilter)
// and IPsec do not, so Open refuses if a firewall has tables.
//
// The UDP checksum of received packets is not checked: it may be absent, or left for a device to fill in,
// and the ICRC covers everything that matters. Single frames are sent without one over IPv4, as in Annex A17,
// and with a correct one over IPv6, which other systems require; those of bursts have one, as from a socket.
package packet

import (
	"fmt"
	"net/netip"
)

// MostPayload is the longest UDP payload, in bytes, that the ring takes and Send sends.
const MostPayload = 256

// Mode says whether links use frames.
type Mode uint8

// The modes.
const (
	Auto Mode = iota // if the system allows it, and has no firewall that would be bypassed
	On               // also bypassing a firewall
	Off
)

// Modes are the names of the modes, in order.
var Modes = []string{"auto", "on", "off"}

// String is the mode's name.
func (m Mode) String() string {
	if int(m) < len(Modes) {
		return Modes[m]
	}
	return fmt.Sprintf("mode %d", uint8(m))
}

// ParseMode parses a mode; "" is Auto. ok is false if s is not a mode.
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

// Config describes the link to which a Port belongs.
type Config struct {
	Addr      netip.Addr // of the link
	Port      uint16     // UDP port on which packets arrive
	Interface int        // index of the interface with Addr
	Firewall  bool       // use frames although there is a firewall
}

// unavailableError says why there are no frames: it is no fault.
type unavailableError struct{ Why string }

func (e *unavailableError) Error() string { return "no frames: " + e.Why }

// Stats are counters of a Port since it was opened.
type Stats struct {
	Sent     uint64 // packets sent as frames
	Received uint64 // packets received from the ring
	Frames   uint64 // frames completely in the ring, so that the socket dropped them; a burst counts once
	Bad      uint64 // frames in the ring that are not datagrams for the port, dropped
}
