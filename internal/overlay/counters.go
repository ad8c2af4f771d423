package overlay

// Reason is why a frame goes nowhere.
type Reason uint8

// The reasons.
const (
	// Malformed frames have headers that cannot be.
	Malformed Reason = iota + 1
	// NoRecord: no record says where the destination is, or where an address is that is asked for.
	NoRecord
	// NoRoute: the routing domain has no route.
	NoRoute
	// HopLimit: the packet was routed as often as it may be.
	HopLimit
	// NoProvider: no provider address of this host reaches the other.
	NoProvider
	// Unresolved: the other host, or the router to it, does not answer.
	Unresolved
	// TooLarge: the packet with its headers outside is larger than the wire takes.
	TooLarge
	// Congested: too many frames wait.
	Congested
	// Tagged frames have a VLAN tag, which means nothing in a virtual subnet (RFC 7348, 6.1).
	Tagged
	// Fragment: a part of a packet from another host, which is not put together again.
	Fragment
	// BadSum: a checksum outside is wrong.
	BadSum
	// NoSubnet: no adapter here is in the virtual subnet.
	NoSubnet
	// NoHost: the host that sent it has no address that a record of the routing domain names.
	NoHost
	// Nobody: no adapter here has the address inside.
	Nobody
	// Foreign: it is no frame of a tunnel.
	Foreign
	reasons
)

var reasonNames = [reasons]string{"", "malformed", "no_record", "no_route", "hop_limit", "no_provider", "unresolved", "too_large", "congested",
	"tagged", "fragment", "bad_checksum", "no_subnet", "no_host", "nobody", "foreign"}

// String names the reason as counters are named.
func (r Reason) String() string {
	if r < reasons {
		return reasonNames[r]
	}
	return "unknown"
}

// Counters count frames since the engine was made.
type Counters struct {
	Sent    uint64 // to other hosts, in a tunnel; a copy for each that gets one
	Arrived uint64 // from other hosts, for adapters here
	// SentBytes and ArrivedBytes are those of these frames, with the headers outside.
	SentBytes, ArrivedBytes uint64
	Local                   uint64 // from one adapter here to others
	Routed                  uint64 // of those, between virtual subnets
	Answered                uint64 // questions of adapters for others' addresses
	Dropped                 [reasons]uint64
}

// sent counts a frame of n bytes, with the headers outside.
func (e *Engine) sent(n int) {
	e.counters.Sent++
	e.counters.SentBytes += uint64(n)
}

// sentLarge counts a frame with headers of n bytes outside, one to be cut as the frames that it stands for.
func (e *Engine) sentLarge(f *Frame, n int) {
	frames, bytes := f.Task.OnWire(f.Head, f.Len())
	e.counters.Sent += uint64(frames)
	e.counters.SentBytes += uint64(bytes + frames*n)
}

// Counters returns a copy of the counters.
func (e *Engine) Counters() Counters { return e.counters }

// DroppedBy returns how many frames were dropped, by the names of the reasons that there were.
func (c *Counters) DroppedBy() map[string]uint64 {
	by := map[string]uint64{}
	for r, n := range c.Dropped {
		if n > 0 {
			by[Reason(r).String()] = n
		}
	}
	return by
}
