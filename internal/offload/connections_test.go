package offload

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
)

// joined returns a packet of a connection from a port, as a Joiner makes it.
func joined(t *testing.T, v6 bool, port uint16) *Packet {
	t.Helper()
	var j Joiner
	j.Join4, j.Join6 = true, true
	for i := range 2 {
		b := tcpPacket(v6, uint32(1000+100*i), flagACK, nil, make([]byte, 100))
		at := 20
		if v6 {
			at = 40
		}
		before := uint32(binary.BigEndian.Uint16(b[at:]))
		binary.BigEndian.PutUint16(b[at:], port)
		n := uint32(^binary.BigEndian.Uint16(b[at+tcpChecksum:])) + ^before&0xffff + uint32(port) // RFC 1624
		for n > 0xffff {
			n = n>>16 + n&0xffff
		}
		binary.BigEndian.PutUint16(b[at+tcpChecksum:], ^uint16(n))
		j.Add(b)
	}
	list := j.Packets()
	if len(list) != 1 || len(list[0].Parts) != 2 {
		t.Fatalf("%d packets, want 1 of two segments", len(list))
	}
	return &list[0]
}

// TestConnections: a connection counts once, however many of its segments are joined, for a second after the last; of more
// connections than there is room for, the newest are known.
func TestConnections(t *testing.T) {
	var c Connections
	now := clock.Time(5 * time.Second)
	count := func(want int, when string) {
		t.Helper()
		if n := c.Active(now); n != want {
			t.Errorf("%s: %d connections, want %d", when, n, want)
		}
	}
	count(0, "at first")
	for range 3 {
		c.Joined(now, joined(t, false, 4000))
		c.Joined(now, joined(t, true, 4000))
	}
	c.Joined(now, joined(t, false, 4001))
	count(3, "two of IPv4, one of IPv6")
	now = now.Add(lately)
	c.Joined(now, joined(t, false, 4001))
	count(3, "a second later")
	now = now.Add(time.Millisecond)
	count(1, "two are silent")
	now = now.Add(lately)
	count(0, "all are silent")
	for port := range uint16(2000) {
		c.Joined(now, joined(t, false, port))
	}
	if n := c.Active(now); n < connectionSets || n > connectionSets*connectionWays {
		t.Errorf("%d of 2,000 connections are known", n)
	}
	c.Joined(now.Add(time.Millisecond), joined(t, true, 9))
	if now = now.Add(lately + time.Millisecond); c.Active(now) != 1 {
		t.Errorf("%d connections, want the newest", c.Active(now))
	}
}
