package fabric

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/fabric/topology"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// datagram returns a packet to queue pair 1 with a MAD of a class.
func datagram(from, to ib.LID, class, method uint8, attribute uint16) []byte {
	b := frame(from, to, 0, ib.PKeyDefault, ib.DETHLen+mad.Len, 0)
	ib.BTH(b[ib.LRHLen:]).Encode(ib.UDSendOnly, false, false, 0, ib.PKeyDefault, ib.QPGSI, 0)
	ib.DETH(b[ib.LRHLen+ib.BTHLen:]).Encode(ib.QKeyGSI, 0x77)
	m := b[ib.LRHLen+ib.BTHLen+ib.DETHLen:]
	m[0], m[1], m[2], m[3] = mad.BaseVersion, class, 1, method
	binary.BigEndian.PutUint16(m[16:], attribute)
	m[mad.PMADataOffset+1] = 1 // the port that the performance attribute is about
	return b
}

func madOf(b []byte) []byte { return b[len(b)-ib.ICRCLen-mad.Len:][:mad.Len] }

// sealed reports whether the ICRC of a packet without a GRH is right.
func sealed(b []byte) bool {
	var s ib.ICRCScratch
	crc := ib.ICRCSeedLRH(&s, b[:ib.LRHLen], nil, b[ib.LRHLen:][:ib.BTHLen])
	return ib.ICRC(b[len(b)-ib.ICRCLen:]) == ib.ICRCUpdate(crc, b[ib.LRHLen+ib.BTHLen:len(b)-ib.ICRCLen])
}

// TestAgentsAnswerPackets: a management request that an adapter sends as a packet, to an adapter or a switch, is
// answered by a packet.
func TestAgentsAnswerPackets(t *testing.T) {
	f := star(t, 2, topology.Rate{})
	for _, to := range []ib.LID{2, 3, 1} { // another adapter, the switch, itself
		transmit(t, f, settle(f), 0, datagram(1, to, mad.ClassPerf, mad.MethodGet, mad.AttrPortCounters))
		got := received(f, settle(f), 0)
		if len(got) != datagramLen || !sealed(got) {
			t.Errorf("LID %d: got %d bytes, want a sealed answer of %d", to, len(got), datagramLen)
			continue
		}
		h, b := ib.LRH(got), ib.BTH(got[ib.LRHLen:])
		if h.SLID() != to || h.DLID() != 1 || b.DestQP() != 0x77 || madOf(got)[3] != mad.MethodGetResp {
			t.Errorf("LID %d: answered from %d to %d, queue pair %d, method %#x", to, h.SLID(), h.DLID(), b.DestQP(), madOf(got)[3])
		}
	}
	settle(f)
	conserved(t, f)
}

// TestClaims: a program at a port gets the MADs it claims, and the adapter there all others. Subnet management MADs
// go to neither.
func TestClaims(t *testing.T) {
	f := star(t, 2, topology.Rate{})
	var claimed []uint8
	f.Claim(func(_ clock.Time, at Place, p *Packet) bool {
		if at != (Place{1, 1}) || p.SLID != 1 || p.SQP != 0x77 || p.PKey != ib.PKeyDefault {
			t.Errorf("claiming at %+v: packet %+v", at, p)
		}
		if p.MAD[1] == mad.ClassSubnetAdm {
			claimed = append(claimed, p.MAD[1])
			return true
		}
		return false
	})
	for class, want := range map[uint8]bool{mad.ClassSubnetAdm: false, 7: true, mad.ClassSubnetLID: false, mad.ClassSubnetDir: false} {
		sent := datagram(1, 2, class, mad.MethodGet, 1)
		transmit(t, f, settle(f), 0, sent)
		if got := received(f, settle(f), 1); (len(got) > 0) != want || want && !bytes.Equal(got, sent) {
			t.Errorf("class %#x: the adapter got %d bytes; wanted: %v", class, len(got), want)
		}
	}
	if len(claimed) != 1 {
		t.Errorf("the program claimed %v, want one MAD", claimed)
	}
	settle(f)
	conserved(t, f)
}

// TestHand: a datagram for an adapter's port is handed to it as a packet, up to a bounded number that wait.
func TestHand(t *testing.T) {
	f := star(t, 1, topology.Rate{})
	m := Packet{SLID: 9, DLID: 1, SQP: 1, DQP: 1, SL: 3, MAD: [mad.Len]byte{1, 7, 2, 3}}
	for range 3 * handed {
		f.Hand(0, Place{0, 1}, &m)
	}
	n := 0
	for b := received(f, 0, 0); len(b) > 0; b = received(f, 0, 0) {
		if n++; !sealed(b) || ib.LRH(b).SLID() != 9 || ib.LRH(b).SL() != 3 || ib.BTH(b[ib.LRHLen:]).PKey() != ib.PKeyDefault ||
			madOf(b)[1] != 7 {
			t.Fatalf("handed the packet % x", b)
		}
	}
	if n != handed {
		t.Errorf("%d packets were handed over, want %d", n, handed)
	}
	if f.Plug(0, Place{0, 1}, false); f.Hand(0, Place{0, 1}, &m) {
		t.Error("a datagram was handed to an unplugged port")
	}
}

// TestLoopsEnd: in an untimed fabric, packets and copies of them that the tables send round in circles come to an
// end.
func TestLoopsEnd(t *testing.T) {
	top, err := topology.Torus([]int{3}, 1, topology.Rate{})
	if err != nil {
		t.Fatal(err)
	}
	f := bringUp(top)
	f.Untimed()
	for i := range f.nodes {
		if sw := f.nodes[i].sw; sw != nil {
			sw.info.LinearFDBTop = 40
			sw.block(0)[40] = 1
			for p := uint8(1); p <= f.nodes[i].count; p++ { // in one direction round the ring
				if peer := f.port(Place{i, p}).peer; peer != noPort && f.nodes[f.ports[peer].node].sw != nil &&
					int(f.ports[peer].node) == 3+(i-3+1)%3 {
					sw.block(0)[40] = p
				}
			}
			sw.cast = [][]uint16{{0xffff}}
		}
	}
	transmit(t, f, 0, 0, frame(1, 40, 0, ib.PKeyDefault, 8, 1))
	f.Advance(0)
	if f.Deadline() != clock.Never {
		t.Error("the packet is still on its way")
	}
	transmit(t, f, 0, 0, frame(1, 0xc000, 0, ib.PKeyDefault, 8, 1))
	for range 3 {
		f.Advance(0) // the copies too must come to an end
	}
}
