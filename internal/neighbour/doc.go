// Package neighbour resolves addresses on an Ethernet for stations that have no system's stack behind them: it answers who
// asks for their IP addresses, and asks who has others', by ARP (RFC 826) and IPv6 neighbour discovery (RFC 4861).
//
// An Engine is pure: it is told frames and the time, and hands out frames, what has changed, and its deadline. Its table is
// bounded. Of RFC 4861 it has what a host needs to find neighbours and to notice that they are gone (7.2 and 7.3); it knows
// no routers, redirects and prefixes. It announces its addresses, answers whoever checks whether they are taken, and counts others
// that use them; with Probe it checks that itself (RFC 5227, RFC 4862 5.4), while it uses them.
//
// Addresses of different VLANs have nothing to do with each other. Echo requests (ping) are not answered: this is no IP
// stack.
package neighbour

import (
	"net/netip"
	"time"

	"github.com/softvpi/softvpi/wire/eth"
)

// Constants of resolution, those of RFC 4861 10 also for ARP.
const (
	retransmit   = time.Second      // RETRANS_TIMER
	multicasts   = 3                // MAX_MULTICAST_SOLICIT
	unicasts     = 3                // MAX_UNICAST_SOLICIT
	reachable    = 30 * time.Second // REACHABLE_TIME
	delayOfProbe = 5 * time.Second  // DELAY_FIRST_PROBE_TIME
	// idle is how long an entry stays that nobody uses.
	idle = 5 * time.Minute
)

const (
	// DefaultEntries is how many neighbours an Engine knows at most.
	DefaultEntries = 4096
	// MostAddresses is how many addresses of its own an Engine has at most.
	MostAddresses = 4096
	// mostFrames is how many frames may wait for Frame; more are dropped, as if the network had lost them.
	mostFrames = 256
)

// Key is an IP address on a VLAN.
type Key struct {
	VLAN uint16     // VLAN ID, 0: untagged
	Addr netip.Addr // without a zone
}

// Source is who asks: a station's MAC and one of its addresses.
type Source struct {
	MAC  eth.MAC
	Addr netip.Addr
}

// Change says what has become of an address that was asked for.
type Change struct {
	Key
	MAC   eth.MAC
	Known bool // packets can be sent to MAC; false: nobody has answered, or nobody does any more
}

// Counters count since the engine was made.
type Counters struct {
	Asked     uint64 // questions sent
	Answered  uint64 // questions answered
	Malformed uint64 // ARP packets and discoveries that cannot be read
	Conflicts uint64 // messages of others that use an address of a station here
	Probes    uint64 // sent, to find out whether others have an address of a station here
	Evicted   uint64 // neighbours forgotten because the table was full
	Dropped   uint64 // frames that were not sent, because too many waited
}
