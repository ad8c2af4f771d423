package ethernet

import (
	"encoding/binary"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link/batch"
	"github.com/softvpi/softvpi/internal/link/station"
	"github.com/softvpi/softvpi/internal/offload"
	"github.com/softvpi/softvpi/wire/eth"
)

const (
	// largest is the length of the largest frame that the system passes on, as one that it has coalesced.
	largest = offload.HeaderLen + eth.EthernetLen + eth.VLANLen + offload.MaxPacket
	// controlLen is the space of a tpacket_auxdata.
	controlLen = 48
	// cutMost is how many frames that were coalesced one Receive hands out.
	cutMost = 256
)

// receiver takes frames from a packet socket, and makes them what they were on the wire.
type receiver struct {
	in     *batch.In
	got    int // messages received
	next   int // of them, to be looked at
	cut    offload.Segments
	memory []byte // for frames that are cut
	slot   int    // bytes of memory for one
}

func newReceiver(mtu int) *receiver {
	r := &receiver{in: batch.NewIn(largest, controlLen)}
	r.grow(mtu)
	return r
}

// grow makes room for frames with packets of up to mtu bytes.
func (r *receiver) grow(mtu int) {
	if size := eth.EthernetLen + eth.VLANLen + mtu; size > r.slot {
		r.slot, r.memory = size, make([]byte, cutMost*size)
	}
}

// receive fills in with the frames that the set wants, from at most one batch, and returns their number.
func (r *receiver) receive(s *station.Set, fd int, in []frame.In) int {
	n, cut := 0, 0
	fetched := r.next < r.got || r.cut.Cutting() // those handed out stay where they are until the next call
	for n < len(in) {
		switch {
		case r.cut.Cutting():
			if cut == cutMost {
				return n
			}
			n += r.segment(s, in[n:], r.memory[cut*r.slot:(cut+1)*r.slot])
			cut++
		case r.next < r.got:
			r.next++
			n += r.take(s, in[n:], r.next-1)
		case fetched:
			return n
		default:
			fetched = true
			r.next, r.got = 0, 0
			got, errno := r.in.Receive(fd, batch.Most)
			if errno == unix.EINVAL { // a frame that the system cannot describe is lost
				s.Counted().ReceiveTruncated++
			}
			r.got = got
		}
	}
	return n
}

// take looks at message i.
func (r *receiver) take(s *station.Set, in []frame.In, i int) int {
	b, whole := r.in.Frame(i)
	h, f, err := offload.ParseHeader(b)
	if err != nil || !whole || len(f) < eth.EthernetLen {
		s.Counted().ReceiveTruncated++
		return 0
	}
	if tci, protocol, tagged := tag(r.in.Control(i)); tagged {
		if protocol != eth.TypeVLAN {
			return 0 // a tag in a tag: for no station
		}
		f = retag(b, tci)
		h.ChecksumStart += eth.VLANLen
	}
	if h.Kind == offload.Whole || h.Kind != offload.UDP && s.HearsLarge(f) {
		t, ok := leave(s, h, f)
		return s.Take(in, f, t, ok)
	}
	if s.Wants(f) {
		r.begin(s, h, f)
	}
	return 0
}

// tag returns the VLAN tag that the system took out of a frame.
func tag(control []byte) (tci uint16, protocol eth.EtherType, tagged bool) {
	const at = unix.SizeofCmsghdr
	const auxdata = 20
	if len(control) < at+auxdata || binary.NativeEndian.Uint32(control[at-8:]) != unix.SOL_PACKET ||
		binary.NativeEndian.Uint32(control[at-4:]) != unix.PACKET_AUXDATA {
		return 0, 0, false
	}
	// struct tpacket_auxdata: status, len, snaplen, mac, net, vlan_tci, vlan_tpid
	a := control[at:]
	status := binary.NativeEndian.Uint32(a)
	if status&unix.TP_STATUS_VLAN_VALID == 0 {
		return 0, 0, false
	}
	protocol = eth.TypeVLAN
	if status&unix.TP_STATUS_VLAN_TPID_VALID != 0 {
		protocol = eth.EtherType(binary.NativeEndian.Uint16(a[18:]))
	}
	return binary.NativeEndian.Uint16(a[16:]), protocol, true
}

// retag puts a tag into a frame behind its virtio header, in whose place the frame then begins.
func retag(b []byte, tci uint16) []byte {
	const from, macs = offload.HeaderLen - eth.VLANLen, 12
	f := b[from:]
	copy(f, f[eth.VLANLen:eth.VLANLen+macs])
	binary.BigEndian.PutUint16(f[macs:], uint16(eth.TypeVLAN))
	binary.BigEndian.PutUint16(f[macs+2:], tci)
	return f
}

// etherLen is the length of a frame's Ethernet header.
func etherLen(f []byte) int {
	if eth.EtherType(binary.BigEndian.Uint16(f[12:])) == eth.TypeVLAN {
		return min(eth.EthernetLen+eth.VLANLen, len(f))
	}
	return eth.EthernetLen
}

// complete makes the checksum of a frame that an interface would have made. UDP's is left out: nobody checks it, and the
// sum of a long packet takes time.
func complete(h offload.Header, f []byte) {
	n := etherLen(f)
	h.ChecksumStart -= n
	if !unsum(f[n:]) {
		_ = offload.Complete(h, f[n:]) // where there is no place for it there is no checksum
	}
}

// unsum takes the checksum out of a UDP packet, and reports whether it is one.
func unsum(p []byte) bool {
	var udp []byte
	if h, payload, err := eth.ParseIPv4(p); err == nil && h.Protocol() == eth.ProtocolUDP && !h.Fragment() {
		udp = payload
	} else if h, payload, err := eth.ParseIPv6(p); err == nil && h.NextHeader() == eth.ProtocolUDP {
		udp = payload
	}
	if len(udp) < eth.UDPLen {
		return false
	}
	eth.UDP(udp).SetChecksum(0)
	return true
}

// begin begins to cut a frame that the system has coalesced.
func (r *receiver) begin(s *station.Set, h offload.Header, f []byte) {
	if h.Kind == offload.UDP && !s.HearsLarge(f) {
		unsum(f[etherLen(f):])
	}
	var e eth.Headers
	if !e.Parse(f) || r.cut.BeginFrame(offload.Task{Kind: h.Kind, Segment: uint16(h.Segment)}, &e, f) != nil {
		s.Counted().ReceiveTruncated++
	}
}

// segment hands out the next part of the frame that is cut, in memory of its own.
func (r *receiver) segment(s *station.Set, in []frame.In, memory []byte) int {
	head, body, _ := r.cut.Next()
	n := len(head) + len(body)
	if n > len(memory) {
		s.Counted().ReceiveTruncated++
		return 0
	}
	copy(memory, head)
	copy(memory[len(head):], body)
	s.Hand(in, memory[:n:n], offload.Task{})
	return 1
}
