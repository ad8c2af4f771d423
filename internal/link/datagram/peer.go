package datagram

import (
	"time"

	"github.com/softvpi/softvpi/internal/link"
)

// peerInterval is how often it is looked whether anybody has the other side's socket: nothing tells that it comes or goes. While
// nobody has, every call of Errors looks: somebody wants to send.
const peerInterval = 500 * time.Millisecond

// peer knows whether anybody has the other side's socket.
type peer struct {
	there bool
	seen  time.Time
}

// due reports whether it is time to look, and if so takes it as done.
func (p *peer) due() bool {
	now := time.Now()
	if p.there && now.Sub(p.seen) < peerInterval {
		return false
	}
	p.seen = now
	return true
}

// WireState implements link.Carrier. Two sockets have no speed.
func (p *peer) WireState() link.State { return link.State{Up: p.there} }
