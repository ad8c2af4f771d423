package cm

import (
	"net/netip"

	"github.com/softvpi/softvpi/internal/command"
)

// Ephemeral ports, as Linux and RFC 6335 together would have them.
const (
	firstEphemeral = 32768
	lastEphemeral  = 65535
)

// binding is an address and port that an id holds.
type binding struct {
	space  command.PortSpace
	local  netip.AddrPort
	remote netip.AddrPort // of an ephemeral port that a connection took for itself
}

// ports is the table of bindings, by port space and port.
type ports map[portKey][]*binding

type portKey struct {
	space command.PortSpace
	port  uint16
}

// bind reserves an address and port. Port 0 takes an ephemeral one, searched
// from a random start. Ports that connections took for themselves may be shared
// by those with different remote ends; nothing else may share one.
func (p ports) bind(space command.PortSpace, local, remote netip.AddrPort, random uint64) (*binding, error) {
	if local.Port() != 0 {
		return p.take(&binding{space: space, local: local, remote: remote})
	}
	const n = lastEphemeral - firstEphemeral + 1
	for i := range uint64(n) {
		port := uint16(firstEphemeral + (random%n+i)%n)
		if b, err := p.take(&binding{space, netip.AddrPortFrom(local.Addr(), port), remote}); err == nil {
			return b, nil
		}
	}
	return nil, ErrNoPorts
}

func (p ports) take(b *binding) (*binding, error) {
	key := portKey{b.space, b.local.Port()}
	for _, other := range p[key] {
		if b.conflicts(other) {
			return nil, ErrPortInUse
		}
	}
	p[key] = append(p[key], b)
	return b, nil
}

func (p ports) release(b *binding) {
	if b == nil {
		return
	}
	key := portKey{b.space, b.local.Port()}
	held := p[key]
	for i := range held {
		if held[i] == b {
			held[i] = held[len(held)-1]
			held[len(held)-1] = nil
			held = held[:len(held)-1]
			break
		}
	}
	if len(held) == 0 {
		delete(p, key)
		return
	}
	p[key] = held
}

func (b *binding) conflicts(other *binding) bool {
	if b.remote.IsValid() && other.remote.IsValid() && b.remote != other.remote {
		return false
	}
	x, y := b.local.Addr(), other.local.Addr()
	return x == y || covers(x, y) || covers(y, x)
}

// covers reports whether a listener at address a takes requests for address b:
// no address and :: stand for all, 0.0.0.0 for every IPv4 address.
func covers(a, b netip.Addr) bool {
	switch {
	case !a.IsValid() || a == netip.IPv6Unspecified():
		return true
	case a == netip.IPv4Unspecified():
		return b.Is4()
	}
	return a == b
}
