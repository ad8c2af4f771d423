package port

import (
	"cmp"
	"encoding/binary"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/offload"
	"github.com/softvpi/softvpi/wire/eth"
)

// straight hands frames at the front of out, which a Steered station sends, straight to the rules at the wire that take them, and
// returns how many: from the memory where they are, so that they need not wait in a buffer. It takes only what classify would give
// to those rules and to nobody else, and nothing while frames wait that were sent before.
func (p *Port) straight(now clock.Time, w *Wire, from *Station, out []frame.Out) int {
	if from.Kind != Steered || p.turned.waiting() {
		return 0
	}
	n := w.plain(from, out)
	if n == 0 {
		return 0
	}
	for i := range w.places {
		s := w.places[i].station
		if s.Kind != Steered || s.off || s.cut {
			continue
		}
		if n := s.steerer.Turn(now, out[:n]); n > 0 {
			for j := range out[:n] {
				out[j].Inside = true
			}
			s.Carried.handed(out[:n])
			p.counters.Turned += uint64(n)
			p.counters.Received += uint64(n)
			return n
		}
	}
	return 0
}

// plain returns how many frames at the front of out are complete, go to the same MAC, which another station than from has, and
// are not for an RDMA function.
func (w *Wire) plain(from *Station, out []frame.Out) int {
	var dst eth.MAC
	for i := range out {
		o := &out[i]
		b := o.Head[o.HeadStart:o.HeadEnd]
		switch {
		case len(b) < eth.EthernetLen || o.Task != (offload.Task{}) || isControl(b):
			return i
		case i == 0:
			if dst = eth.MAC(b); dst[0]&group != 0 || !w.other(from, dst) {
				return 0
			}
		case eth.MAC(b) != dst:
			return i
		}
		if w.mayTakeRoCE(dst, b) {
			return i
		}
	}
	return len(out)
}

// mayTakeRoCE reports whether a frame of which b are the headers may be RoCE to an RDMA station with its MAC.
func (w *Wire) mayTakeRoCE(dst eth.MAC, b []byte) bool {
	switch eth.EtherType(binary.BigEndian.Uint16(b[12:])) {
	case eth.TypeIPv4, eth.TypeIPv6, eth.TypeVLAN, eth.TypeRoCEv1:
	default:
		return false
	}
	for i := range w.places {
		if s := w.places[i].station; s.Kind == RDMA && s.MAC == dst && mayBeRoCE(b, cmp.Or(s.UDPPort, eth.PortRoCEv2)) {
			return true
		}
	}
	return false
}

// mayBeRoCE is isRoCE for the beginning of a frame: it does not ask whether what the headers say of the rest is true.
func mayBeRoCE(b []byte, port uint16) bool {
	e, packet, err := eth.ParseEthernet(b)
	if err != nil {
		return false
	}
	var udp []byte
	switch {
	case e.Type == eth.TypeRoCEv1:
		return true
	case e.Type == eth.TypeIPv4 && len(packet) >= eth.IPv4Len && packet[9] == eth.ProtocolUDP:
		udp = packet[min(int(packet[0]&0xf)*4, len(packet)):]
	case e.Type == eth.TypeIPv6 && len(packet) >= eth.IPv6Len && packet[6] == eth.ProtocolUDP:
		udp = packet[eth.IPv6Len:]
	}
	return len(udp) >= 4 && binary.BigEndian.Uint16(udp[2:]) == port
}
