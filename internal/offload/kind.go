package offload

import (
	"encoding/binary"

	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/tunnel"
)

// Tunnel4 and Tunnel6 beside one of the kinds of TCP say that the packet to be cut is inside a tunnel, over IPv4 or IPv6: each part gets
// the headers outside as well. The bits are the header's gso_type's for tunnels over UDP (VIRTIO 1.4, 5.1.6.4); between functions, ports
// and links NVGRE's packets have them too. A UDP checksum outside that is not 0 is made for each part.
const (
	Tunnel4 Kind = 0x20
	Tunnel6 Kind = 0x40
	tunnels      = Tunnel4 | Tunnel6
)

// InTunnel reports whether packets of the kind are inside a tunnel.
func (k Kind) InTunnel() bool { return k&tunnels != 0 }

// Inner returns the kind of the packet inside, or of one that is in no tunnel.
func (k Kind) Inner() Kind { return k &^ tunnels }

// Around returns the kind of a packet of this one inside a tunnel over an IP version.
func (k Kind) Around(version uint8) Kind {
	if version == 6 {
		return k | Tunnel6
	}
	return k | Tunnel4
}

// TCP reports whether it is a kind of TCP in no tunnel.
func (k Kind) TCP() bool { return k == TCPv4 || k == TCPv6 }

// layout is where the headers of a packet are whose first bytes, with all headers, are there.
type layout struct {
	eth.Headers
	udp   int // the UDP header around, from the start; 0: there is no tunnel of UDP
	inner int // the IP header inside; 0: there is no tunnel
}

// find finds the headers up to those of the transport in the first bytes of a frame, whatever its lengths are. It returns false if they
// are not there, or none of TCP or UDP behind the IP header itself.
func (l *layout) find(b []byte, k Kind) bool {
	if !l.plain(b, 0) {
		return false
	}
	if !k.InTunnel() {
		return l.known(b)
	}
	at := l.Transport + tunnel.HeaderLen
	l.udp = 0
	switch l.Protocol {
	case eth.ProtocolUDP:
		l.udp, at = l.Transport, at+eth.UDPLen
	case tunnel.ProtocolGRE:
	default:
		return false
	}
	udp := l.udp
	if !l.plain(b, at) || !l.known(b) {
		return false
	}
	l.udp, l.inner = udp, l.Network
	return true
}

// plain finds the IP header of the frame that begins at a place.
func (l *layout) plain(b []byte, at int) bool {
	if at >= len(b) || !l.Parse(b[at:]) {
		return false
	}
	l.Network += at
	switch p := b[min(l.Network, len(b)):]; {
	case l.Type == eth.TypeIPv4 && len(p) >= eth.IPv4Len:
		l.Version, l.Protocol, l.Transport = 4, eth.IPv4(p).Protocol(), l.Network+eth.IPv4(p).HeaderLen()
	case l.Type == eth.TypeIPv6 && len(p) >= eth.IPv6Len:
		l.Version, l.Protocol, l.Transport = 6, eth.IPv6(p).NextHeader(), l.Network+eth.IPv6Len
	default:
		return false
	}
	return true
}

// known finds where the payload of TCP or UDP begins.
func (l *layout) known(b []byte) bool {
	switch {
	case l.Protocol == eth.ProtocolUDP:
		l.Data = l.Transport + eth.UDPLen
	case l.Protocol == eth.ProtocolTCP && len(b) >= l.Transport+eth.TCPLen:
		l.Data = l.Transport + int(b[l.Transport+tcpOffset]>>4)*4
	default:
		return false
	}
	return l.Data <= len(b)
}

// TaskOf returns what a header of the system says about a frame with these headers, in a tunnel too. Linux describes a large frame in a
// tunnel by what is inside; packet sockets do not say that there is something around, which shows by the place of the checksum. The
// error is a *formatError.
func (h Header) TaskOf(e *eth.Headers, b []byte) (t Task, err error) {
	if !h.Kind.InTunnel() && (!h.Kind.TCP() || e.Protocol == eth.ProtocolTCP) {
		return h.Task(e)
	}
	var f tunnel.Frame
	if !tunnelAny(&f, e, b) || f.Inner.Transport != h.ChecksumStart {
		return t, &formatError{"packet to cut", int(h.Kind), "one in a tunnel, whose checksum is to be made"}
	}
	h.Kind = h.Kind.Inner()
	if t, err = h.Task(&f.Inner); err == nil {
		t.Kind = t.Kind.Around(f.Outer.Version)
	}
	return t, err
}

// tunnelOf returns the tunnel of a frame by the places that a header has, whatever kind of tunnel over UDP it is.
func (h Header) tunnelOf(e *eth.Headers, b []byte) (f tunnel.Frame, ok bool) {
	if !h.Kind.InTunnel() || e.Protocol != eth.ProtocolUDP || e.Data == 0 || h.Outer != e.Transport ||
		h.Inner < e.Data || h.Inner >= e.End {
		return f, false
	}
	f.Header, f.Outer, f.At = tunnel.Header{Kind: tunnel.VXLAN}, *e, h.Inner // what is over UDP is cut alike
	f.Inner.ParseIP(b[h.Inner:e.End])
	for _, at := range [...]*int{&f.Inner.Network, &f.Inner.Transport, &f.Inner.End, &f.Inner.Data} {
		*at += h.Inner
	}
	return f, f.Inner.Version != 0 && f.Inner.Protocol == eth.ProtocolTCP && f.Inner.Transport == h.ChecksumStart
}

// BeginHeader begins to cut a frame by a system's header, which has to stay as it is until the last Next. The error is a *formatError.
func (s *Segments) BeginHeader(h Header, e *eth.Headers, frame []byte) error {
	t, err := h.TaskOf(e, frame)
	if err == nil {
		return s.BeginFrame(t, e, frame)
	}
	f, ok := h.tunnelOf(e, frame)
	if !ok || f.Inner.Data <= h.Inner {
		return err
	}
	return s.BeginTunnel(Task{Kind: h.Kind.Inner(), Segment: uint16(h.Segment)}, &f, frame)
}

// HeaderOf returns the Header of a frame whose first bytes, with all headers up to that of the transport, are b. ok is false
// if they are not there, or not of TCP or UDP behind the IP header itself, or in a tunnel of NVGRE, which no Header describes.
func (t Task) HeaderOf(b []byte) (h Header, ok bool) {
	var l layout
	if !l.find(b, t.Kind) || t.Kind.InTunnel() && l.udp == 0 {
		return h, false
	}
	h = t.Header(&l.Headers)
	h.around(&l, b)
	return h, true
}

// around completes the Header of a packet in a tunnel.
func (h *Header) around(l *layout, b []byte) {
	if l.udp > 0 {
		h.Outer, h.Inner, h.OuterSum = l.udp, l.inner, eth.UDP(b[l.udp:]).Checksum() != 0
	}
}

// OnWire returns as how many frames, of how many bytes together, a frame of n bytes goes by a wire that takes none of several
// segments. Its first bytes, with all headers, are b.
func (t Task) OnWire(b []byte, n int) (frames, bytes int) {
	if t.Kind == Whole || t.Segment == 0 {
		return 1, n
	}
	headers, ok := t.HeadersOf(b)
	if !ok || n <= headers {
		return 1, n
	}
	full := (n - headers - 1) / int(t.Segment) // all but the last
	last := n - full*int(t.Segment)
	return full + 1, full*max(headers+int(t.Segment), minFrame) + max(last, minFrame)
}

// HeadersOf returns the length of all headers of a frame whose first bytes, with these, are b; ok is false if they are not there.
func (t Task) HeadersOf(b []byte) (n int, ok bool) {
	var l layout
	ok = l.find(b, t.Kind)
	return l.Data, ok
}

// tunnelAny finds the tunnel of a frame whose sender says that it is in one, whichever the UDP port is.
func tunnelAny(f *tunnel.Frame, h *eth.Headers, b []byte) bool {
	r := tunnel.Recognition{NVGRE: true}
	if h.Protocol == eth.ProtocolUDP && h.Data != 0 {
		r.VXLANPort = eth.UDP(b[h.Transport:]).DstPort()
	}
	return f.Find(h, b, r)
}

// PartialSum returns what a UDP checksum field has that is still to be made: the sum of the pseudo header. packet begins with the IP
// header, and n is the datagram's length.
func PartialSum(packet []byte, n int) uint16 { return fold(pseudo(packet, eth.ProtocolUDP, n)) }

// Between are the parts of TunnelHeaderLen bytes that say what is around: hash and its type, which say nothing, and two places.
const (
	outerAt = 20
	innerAt = 22
)

// PutTunnel writes the header with what it says of a tunnel to the start of b.
func (h Header) PutTunnel(b []byte) {
	clear(b[HeaderLen:TunnelHeaderLen])
	h.Put(b)
	if !h.Kind.InTunnel() {
		return
	}
	if h.OuterSum {
		b[0] |= flagOuterSum
	}
	binary.LittleEndian.PutUint16(b[outerAt:], uint16(h.Outer))
	binary.LittleEndian.PutUint16(b[innerAt:], uint16(h.Inner))
}

// ParseTunnelHeader reads a header of TunnelHeaderLen bytes at the start of b, and returns what follows it. The error is a *formatError.
func ParseTunnelHeader(b []byte) (h Header, packet []byte, err error) {
	if len(b) < TunnelHeaderLen {
		return h, nil, &formatError{"virtio-net header", len(b), "24 bytes at least"}
	}
	h = parse(b)
	if h.Kind.InTunnel() {
		h.OuterSum = b[0]&flagOuterSum != 0
		h.Outer, h.Inner = int(binary.LittleEndian.Uint16(b[outerAt:])), int(binary.LittleEndian.Uint16(b[innerAt:]))
		if !h.Kind.Inner().TCP() || h.Kind&tunnels == tunnels || !h.NeedsChecksum {
			return h, nil, &formatError{"gso type", int(h.Kind), "one of TCP in a tunnel, with a checksum to be made"}
		}
	} else if !h.Kind.valid() {
		return h, nil, &formatError{"gso type", int(h.Kind), "0, 1, 4 or 5"}
	}
	return h, b[TunnelHeaderLen:], nil
}
