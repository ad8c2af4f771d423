package cm

import (
	"net/netip"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/wire/ib"
)

// Open makes an idle id. context comes back in its events.
func (e *Engine) Open(space command.PortSpace, context uint64) (ID, error) { return 0, ErrState }

// Bind gives an idle id its address and port. The zero address is the wildcard;
// port 0 takes an ephemeral one. It returns what was bound.
func (e *Engine) Bind(id ID, local netip.AddrPort) (netip.AddrPort, error) {
	return netip.AddrPort{}, ErrState
}

// Listen makes a bound id take requests. backlog is how many may wait to be
// claimed or answered, 0 means DefaultBacklog.
func (e *Engine) Listen(id ID, backlog int) error { return ErrState }

// Claim says that the program has taken the request from its listener: it no
// longer counts in the backlog, and outlives the listener.
func (e *Engine) Claim(id ID) error { return ErrState }

// Connect sends a REQ, or a SIDR_REQ in the UDP port space.
func (e *Engine) Connect(now clock.Time, id ID, c Connect) error { return ErrState }

// Accept answers a request with REP, or SIDR_REP.
func (e *Engine) Accept(now clock.Time, id ID, a Accept) (Attributes, error) {
	return Attributes{}, ErrState
}

// Reject refuses a request, or a response before Establish.
func (e *Engine) Reject(now clock.Time, id ID, reason Reason, private []byte) error { return ErrState }

// Establish sends RTU.
func (e *Engine) Establish(now clock.Time, id ID, private []byte) error { return ErrState }

// Established says that the first packet of the peer arrived on the QP.
func (e *Engine) Established(now clock.Time, id ID) error { return ErrState }

// Disconnect ends a connection with DREQ.
func (e *Engine) Disconnect(now clock.Time, id ID, private []byte) error { return ErrState }

// Fail ends a connection whose QP went to error by itself.
func (e *Engine) Fail(now clock.Time, id ID) error { return ErrState }

// Destroy ends an id in any state, as its client's death does.
func (e *Engine) Destroy(now clock.Time, id ID) error { return ErrState }

// Attributes is what the QP of an id is to be set to.
func (e *Engine) Attributes(id ID) (Attributes, error) { return Attributes{}, ErrState }

// Unreachable reports an ICMP error, or a route that does not exist.
func (e *Engine) Unreachable(now clock.Time, dst netip.Addr, kind link.UnreachableKind) {}

// SetMTU follows a change of the port's largest path MTU.
func (e *Engine) SetMTU(mtu ib.MTU) {}

// Receive takes a MAD of 256 bytes that arrived on QP1.
func (e *Engine) Receive(now clock.Time, mad []byte, from Peer) {}

// Advance runs the timers that are due.
func (e *Engine) Advance(now clock.Time) {}

// Deadline is when Advance is wanted next.
func (e *Engine) Deadline() clock.Time { return clock.Never }

// Transmit moves datagrams that are to be sent to out and returns their number.
func (e *Engine) Transmit(out []Datagram) int { return 0 }

// Events moves events to out and returns their number.
func (e *Engine) Events(out []Event) int { return 0 }

// Counters are the engine's own words: read them, do not write.
func (e *Engine) Counters() *Counters { return &Counters{} }
