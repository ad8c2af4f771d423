package device

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/softvpi/softvpi/internal/offload"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/wire/eth"
)

// tcp6Frame makes a frame of TCP over IPv6 in a VLAN, of n bytes.
func tcp6Frame(dst, src [6]byte, n int) []byte {
	b := make([]byte, n)
	fill(b, uint64(n))
	(&eth.Ethernet{Dst: dst, Src: src, Tagged: true, TCI: 5, Type: eth.TypeIPv6}).Put(b)
	copy(b[18:], []byte{0x60, 0, 0, 0, 0, 0, 6, 64, 0xfd, 0})
	binary.BigEndian.PutUint16(b[22:], uint16(n-58))
	b[58+12] = 5 << 4
	return b
}

// sums returns what a frame's checksums are.
func sums(f []byte) offload.Sums {
	var h eth.Headers
	h.Parse(f)
	return offload.Check(&h, f)
}

// TestRawPackets_Checksums: a frame that is sent with the flag arrives with right checksums, whatever was in their place, to a program
// of the driver and over the wire, from one piece of memory, from several and from the request, and the memory stays as it is. A
// receive says that they are right, and nothing of wrong ones, of those that were not asked for and of what is no IP packet.
func TestRawPackets_Checksums(t *testing.T) {
	one, two, third := threeEnds(t)
	to, own := [6]byte{2, 0, 0, 0, 9, 1}, [6]byte{2, 0, 0, 0, 9, 7}
	rx := one.rawEnd()
	rx.flow(toMAC(to, 0))
	const good = offload.GoodTransport
	for _, from := range []*program{two, third} {
		tx := from.rawEnd()
		for _, c := range []struct {
			what string
			f    []byte
			want offload.Sums
		}{
			{"a short datagram", udpFrame(to, own, 7, 60), good | offload.GoodIP},
			{"a datagram", udpFrame(to, own, 7, 1400), good | offload.GoodIP},
			{"a long datagram", udpFrame(to, own, 7, 4200+14), good | offload.GoodIP},
			{"a segment in a VLAN", tcp6Frame(to, own, 1001), good},
		} {
			binary.BigEndian.PutUint16(c.f[38:], uint16(len(c.f)-34)) // UDP's length; of IPv6 a part of an address
			f := tx.b.b[1<<15:][:len(c.f)]
			for _, way := range []string{"asked for", "not asked for", "in two pieces", "in the request"} {
				copy(f, c.f)
				wr := of(tx.b.sge(1<<15, len(f)))
				switch way {
				case "in two pieces":
					wr = of(tx.b.sge(1<<15, 20), tx.b.sge(1<<15+20, len(f)-20))
				case "in the request":
					if len(f) > 64 {
						continue
					}
					wr = ring.SendWR{Inline: f, Flags: ring.Signaled | ring.Inline}
				}
				want := c.want
				if wr.Flags |= ring.Checksums; way == "not asked for" {
					wr.Flags, want = ring.Signaled, 0
				}
				rx.receive(1)
				tx.burst(wr)
				tx.ends(ring.Success)
				if !bytes.Equal(f, c.f) {
					t.Errorf("%s, %s: the program's memory has changed", c.what, way)
				}
				e := rx.cq.next()
				got := rx.b.b[:e.ByteLen]
				if s := sums(got); want != 0 && s != want || (e.Flags&ring.GoodChecksums != 0) != (want != 0) || len(got) != len(f) {
					t.Errorf("%s, %s: %d bytes arrive with the sums %#x, flags %#x; want %d with %#x", c.what, way, len(got), s, e.Flags,
						len(f), want)
				}
			}
		}
		f := tx.b.b[1<<15:][:60]
		copy(f, append(append(to[:], own[:]...), 0x88, 0xb5))
		wr := of(tx.b.sge(1<<15, 60))
		wr.Flags |= ring.Checksums
		rx.receive(1)
		tx.burst(wr)
		tx.ends(ring.Success)
		if e := rx.cq.next(); e.Flags&ring.GoodChecksums != 0 || !bytes.Equal(rx.b.b[:60], f) {
			t.Errorf("a frame without a packet: flags %#x, %x", e.Flags, rx.b.b[:60])
		}
	}
}
