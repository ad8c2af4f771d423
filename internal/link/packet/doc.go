// Package packet is the fast path of a UDP link for short packets and bursts on Linux, beside the link's socket. A Port
// sends them as whole Ethernet frames, which skips the system's UDP and IP output; its Intake receives them in memory that
// programs of the link fill in the kernel, so that polling takes no system call.
//
// # Receiving
//
// Each packet arrives in one way, and the kernel decides which at one point of the packet's way. Two programs lie on that
// way, one behind the other: the gate at the ingress of the interface (tcx), and the filter of the UDP socket. The first
// of them that takes a packet puts it into memory and drops it there, so that nothing behind sees it; what neither takes
// is queued at the socket. They take only short packets and bursts, and only while nothing that came before is still on its way or
// unread at the socket, so that order needs no repair: what is in memory is older than what is at the socket. There is
// nothing to switch from outside that could lose packets or let them come twice (see Intake).
//
// The gate takes nothing while tc has something at the interface's ingress: qdiscs and programs there may drop, change
// and redirect packets. The filter lies behind all that, and behind the firewall, IPsec and the filters of control groups.
// Over the loopback interface there is no gate.
//
// Loading programs takes CAP_BPF, and attaching the gate CAP_NET_ADMIN. Without them there is no such point: a packet
// socket gets copies, so that each packet would have to be dropped at another place by a second decision, at another
// time, and while either is changed packets come twice or not at all. Everything is then received from the UDP socket.
//
// A receiver that is about to sleep says so (Intake.Sleep); what comes then is queued at the socket, and wakes it.
//
// The gate does not check UDP checksums: they may be absent, or left for a device to fill in, and the ICRC covers
// everything that matters.
//
// # Sending
//
// Short packets leave as single frames (Send), longer ones and bursts of up to some kilobytes as one message that the
// system divides (Begin). What is longer leaves through the UDP socket.
//
// A frame leaves through the interface that has the address, and only if the system would send it there
// too: routes, rules and neighbours are the system's, queried and followed over netlink. Queueing
// disciplines, taps and the filters of tc see it, as the IP packet that it is; the firewall (netfilter)
// and IPsec do not, so Open refuses if a firewall has tables.
//
// On its way from there, a frame may only be overtaken, or overtake, where a system coalesces datagrams for the receiving
// socket (GRO, on network cards): it takes frames and what a socket sent for different flows, because of their checksums
// and flow labels.
//
// Single frames are sent without a UDP checksum over IPv4, as in Annex A17, and with a correct one over IPv6, which other
// systems require; those of bursts have one, as from a socket.
//
// # Why this is no link of its own
//
// A link of whole frames that leaves only bursts to UDP would have the same two ways, but two decisions about them: see
// above. It would also need privileges to exist at all, and does not reserve its port, learn of ICMP errors, or receive
// behind the firewall, all of which the UDP socket does. So this stays an addition to the UDP link, whose socket filter is
// the last point of decision, and it gains what such a link would: half of the latency across veth. Medians of 7, one way,
// 8 bytes, polling, of "SOFTVPI_FRAMES=off softvpi bench --part veth9000 --part loopback --row 'polling, median'" and the
// same with auto in turn, on an AMD EPYC beside other work:
//
//	send across veth        off 5.03 us   auto 2.45 us
//	write across veth       off 4.85 us   auto 2.71 us
//	read across veth        off 9.16 us   auto 5.04 us
//	send over loopback      off 4.50 us   auto 3.80 us
//
// What it costs bursts, which two programs see that do not want them, is the processor time of a packet, sent and received,
// as "go test ./internal/link/udp -run '^$' -bench 'ProcessorTime/.*across'" says, medians of 9:
//
//	4096 bytes, in bursts   off  495 ns   auto  490 ns
//	1024 bytes, in bursts   off  152 ns   auto  153 ns
//	4096 bytes, one by one  off 4038 ns   auto 4086 ns
//	1024 bytes, one by one  off 3847 ns   auto 3928 ns
package packet

import (
	"fmt"
	"net/netip"
)

// MostPayload is the longest UDP payload, in bytes, that Send sends.
const MostPayload = 256

// MostTaken is the longest UDP payload, in bytes, that programs take: that of bursts of up to three packets of 1024 bytes,
// into which requests and answers of a few kilobytes are divided since their first and last packets are longer than those
// between. It is shorter than a packet of 4096 bytes: those come in longer bursts, for which the socket is the better way.
const MostTaken = 3328

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
