package cm

import (
	"net/netip"

	"github.com/softvpi/softvpi/internal/command"
)

// Ephemeral ports: the union of the ranges of Linux and RFC 6335.
const (
	firstEphemeral = 32768
	lastEphemeral  = 65535
)

// binding is an address and port that an id holds.
type binding struct {
	space  command.PortSpace
	local  netip.AddrPort
	remote netip.AddrPort // for an ephemeral port that a connection took for itself
	BindOptions

	next *binding // for the same port
}

// BindOptions are options for an id's address and port, as in rdma_set_option(3).
type BindOptions struct {
	// Reuse allows ids that all set it to share one port, until one of them listens (REUSEADDR).
	Reuse bool
	// IPv6Only excludes IPv4 addresses from :: (AFONLY).
	IPv6Only bool
}

// ports is the table of bindings, by port space and port.
type ports map[portKey]*binding

type portKey struct {
	space command.PortSpace
	port  uint16
}

// bind reserves an address and port. Port 0 selects an ephemeral one, searched from a random start. Ports
// that connections took for themselves may be shared by those with different remote ends; no others may be
// shared.
func (p ports) bind(space command.PortSpace, local, remote netip.AddrPort, opt BindOptions, random uint64) (*binding, error) {
	b := binding{space: space, local: local, remote: remote, BindOptions: opt}
	if local.Port() != 0 {
		if !p.free(&b) {
			return nil, ErrPortInUse
		}
		return p.take(b), nil
	}
	const n = lastEphemeral - firstEphemeral + 1
	for i := range uint64(n) {
		b.local = netip.AddrPortFrom(local.Addr(), uint16(firstEphemeral+(random%n+i)%n))
		if p.free(&b) {
			return p.take(b), nil
		}
	}
	return nil, ErrNoPorts
}

// free reports whether no other binding conflicts with b.
func (p ports) free(b *binding) bool {
	for other := p[b.key()]; other != nil; other = other.next {
		if b.conflicts(other) {
			return false
		}
	}
	return true
}

func (p ports) take(b binding) *binding {
	key := b.key()
	b.next = p[key]
	p[key] = &b
	return &b
}

func (b *binding) key() portKey { return portKey{b.space, b.local.Port()} }

// alone ends the sharing of a port by a binding that is about to listen, if nobody else has the port.
func (p ports) alone(b *binding) error {
	for other := p[b.key()]; other != nil; other = other.next {
		if other != b && b.overlaps(other) {
			return ErrPortInUse
		}
	}
	b.Reuse = false
	return nil
}

func (p ports) release(b *binding) {
	if b == nil {
		return
	}
	key := b.key()
	first := p[key]
	if first == b {
		if b.next == nil {
			delete(p, key)
		} else {
			p[key] = b.next
		}
		return
	}
	for ; first != nil; first = first.next {
		if first.next == b {
			first.next = b.next
			return
		}
	}
}

func (b *binding) conflicts(other *binding) bool {
	if b.remote.IsValid() && other.remote.IsValid() && b.remote != other.remote {
		return false
	}
	return !(b.Reuse && other.Reuse) && b.overlaps(other)
}

func (b *binding) overlaps(other *binding) bool {
	return b.covers(other.local.Addr()) || other.covers(b.local.Addr())
}

// covers reports whether a listener accepts requests for an address: no address and :: stand for all,
// 0.0.0.0 for every IPv4 address.
func (b *binding) covers(addr netip.Addr) bool {
	switch own := b.local.Addr(); {
	case !own.IsValid() || own == netip.IPv6Unspecified():
		return !b.IPv6Only || !addr.Is4()
	case own == netip.IPv4Unspecified():
		return addr.Is4()
	default:
		return own == addr
	}
}
