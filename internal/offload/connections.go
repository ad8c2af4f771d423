package offload

import (
	"encoding/binary"
	"sync/atomic"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
)

const (
	// lately is for how long a connection counts as active after segments of it were joined.
	lately = time.Second
	// connectionSets times connectionWays is how many connections are told apart.
	connectionSets, connectionWays = 64, 4
)

// Connections tells of how many TCP connections segments are being joined ("TCP Active RSC Connections"): those of which some were
// within the last second. It knows 256 connections; of more, those that were joined longest ago are forgotten. One goroutine says what was
// joined, any may ask. The zero value is ready.
type Connections struct {
	// slots hold what tells a connection from others, and in the lower half when segments of it were last joined, in ms; 0: free.
	slots [connectionSets][connectionWays]atomic.Uint64
}

// Joined says that segments were joined to a packet, whose headers are in the first of its parts.
func (c *Connections) Joined(now clock.Time, p *Packet) {
	hash := connectionOf(p)
	set := &c.slots[hash%connectionSets]
	at, oldest := 0, uint32(0)
	for i := range set {
		v := set[i].Load()
		if v == 0 || uint32(v>>32) == hash {
			at = i
			break
		}
		if age := milliseconds(now) - uint32(v); age >= oldest {
			at, oldest = i, age
		}
	}
	set[at].Store(uint64(hash)<<32 | uint64(milliseconds(now)))
}

// Active returns of how many connections segments were joined within the last second.
func (c *Connections) Active(now clock.Time) (n int) {
	for i := range c.slots {
		for k := range c.slots[i] {
			v := c.slots[i][k].Load()
			if age := int32(milliseconds(now) - uint32(v)); v != 0 && age <= int32(lately/time.Millisecond) {
				n++
			}
		}
	}
	return n
}

// milliseconds returns a time as a slot has it, which begins anew after 49 days.
func milliseconds(t clock.Time) uint32 { return uint32(int64(t) / int64(time.Millisecond)) }

// connectionOf returns a number, not 0, of the addresses and ports of a packet (FNV-1a in words of 32 bits, with its halves
// mixed since the lowest bits choose the set).
func connectionOf(p *Packet) uint32 {
	h, b := &p.Headers, p.Parts[0]
	addresses := b[h.Network+12 : h.Network+20]
	if h.Version == 6 {
		addresses = b[h.Network+8 : h.Network+40]
	}
	n := uint32(2166136261)
	for ; len(addresses) >= 4; addresses = addresses[4:] {
		n = (n ^ binary.BigEndian.Uint32(addresses)) * 16777619
	}
	n = (n ^ binary.BigEndian.Uint32(b[h.Transport:])) * 16777619
	return max(n^n>>15, 1)
}
