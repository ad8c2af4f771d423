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
)

// receiver takes frames from a packet socket, and makes them what they were on the wire.
type receiver struct {
	in   *batch.In
	got  int // messages received
	next int // of them, to be looked at
	cut  station.Cutter
}

func newReceiver(mtu int) *receiver {
	r := &receiver{in: batch.NewIn(largest, controlLen)}
	r.cut.Grow(mtu)
	return r
}

// receive fills in with the frames that the set wants, from at most one batch, and returns their number.
func (r *receiver) receive(s *station.Set, fd int, in []frame.In) int {
	n := 0
	fetched := r.next < r.got || r.cut.Cutting() // those handed out stay where they are until the next call
	r.cut.Reuse()
	for n < len(in) {
		switch {
		case r.cut.Cutting():
			if n += r.cut.Hand(s, in[n:]); r.cut.Cutting() {
				return n
			}
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
	switch {
	case err != nil || !whole:
		s.Counted().ReceiveTruncated++
		return 0
	case len(f) < eth.EthernetLen:
		s.Counted().ReceiveUndersize++
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
		// A large one in a tunnel nobody takes so.
		if t, ok := s.Undone(h, f); ok || h.Kind == offload.Whole {
			return s.Take(in, f, t, ok)
		}
	}
	if s.Wants(f) {
		r.cut.Begin(s, h, f)
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
