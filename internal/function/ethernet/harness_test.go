package ethernet

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"slices"
	"testing"

	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/port"
	"github.com/softvpi/softvpi/wire/eth"
)

// got is a packet that a host was given.
type got struct {
	queue int
	frame []byte
	Packet
}

// host is a Host that keeps what it is given.
type host struct {
	packets []got
	calls   int
	most    int // packets of a call, and sends that were reported in one
	sent    map[int]int
	events  []Event
	room    int // how many more packets it takes; -1: any
}

func (h *host) Indicate(_ clock.Time, q int, list []Packet) int {
	h.calls++
	h.most = max(h.most, len(list))
	n := len(list)
	if h.room >= 0 {
		n = min(n, h.room)
		h.room -= n
	}
	for i := range list[:n] {
		p := list[i]
		b := bytes.Join(p.Parts, nil)
		parts := make([][]byte, len(p.Parts))
		for j := range parts {
			parts[j] = bytes.Clone(p.Parts[j])
		}
		p.Parts = parts
		h.packets = append(h.packets, got{q, b, p})
	}
	return n
}

func (h *host) Sent(_ clock.Time, q, n int) {
	h.sent[q] += n
	h.most = max(h.most, n)
}

func (h *host) Raised(_ clock.Time, e Event) { h.events = append(h.events, e) }
func (h *host) frames() (list [][]byte) {
	for _, p := range h.packets {
		list = append(list, p.frame)
	}
	return list
}

func (h *host) total() (n int) {
	for _, v := range h.sent {
		n += v
	}
	return n
}

var (
	macA = eth.MAC{2, 0, 0, 0, 0, 0xa}
	macB = eth.MAC{2, 0, 0, 0, 0, 0xb}
	macC = eth.MAC{2, 0, 0, 0, 0, 0xc}
)

// plain is a configuration in which nothing waits for an interrupt.
func plain(mac eth.MAC, change ...func(*Config)) Config {
	c := Defaults(catalogue.MLX5)
	c.MAC, c.InterruptModeration = mac, 0
	for _, f := range change {
		f(&c)
	}
	return c
}

// card is a function with its host, on a port and wire of its own or shared.
type card struct {
	*Function
	host host
	port *port.Port
	wire *port.Wire
	at   *port.Station
}

func newCard(t testing.TB, p *port.Port, w *port.Wire, cfg Config) *card {
	t.Helper()
	c := &card{host: host{sent: map[int]int{}, room: -1}, port: p, wire: w}
	var err error
	if c.Function, err = New(cfg, &c.host); err != nil {
		t.Fatal(err)
	}
	c.at = p.Attach(c.Function, port.Station{MAC: cfg.MAC, Kind: port.Ethernet})
	c.at.Plug(w, netip.Addr{}, nil)
	c.SetWire(c.at)
	return c
}

func alone(t testing.TB, cfg Config) *card { return newCard(t, &port.Port{}, &port.Wire{}, cfg) }

// post sends a frame by the queue of its flow.
func (c *card) post(t testing.TB, s Send) {
	t.Helper()
	if err := c.Send(0, c.QueueFor(s.Frame), &s); err != nil {
		t.Fatal(err)
	}
}

// leave gives a port turns until it has nothing to send, and returns the frames that leave by its link.
func leave(now clock.Time, p *port.Port) (list []frame.In) {
	out := make([]frame.Out, 32)
	for {
		n := p.Transmit(now, out)
		for rest := out[:n]; len(rest) > 0; {
			w, k := p.Run(rest)
			for i := range rest[:k] {
				if w == nil || rest[i].Inside { // links leave the latter out
					continue
				}
				o := &rest[i]
				b := slices.Concat(o.Head[o.HeadStart:o.HeadEnd], o.Payload, o.Tail[:o.TailLen])
				list = append(list, frame.In{Data: b, Raw: true, Task: o.Task})
			}
			rest = rest[k:]
		}
		if n == 0 {
			return list
		}
	}
}

// data returns the bytes of frames.
func data(in []frame.In) (list [][]byte) {
	for i := range in {
		list = append(list, in[i].Data)
	}
	return list
}

// flow is a TCP or UDP flow between two stations.
type flow struct {
	from, to   eth.MAC
	src, dst   netip.AddrPort
	protocol   uint8
	tags       []uint16
	options    []byte // of TCP
	flags      byte
	sequence   uint32
	unfinished bool // checksums are wrong
}

func tcpFlow() flow {
	return flow{from: macA, to: macB, src: netip.MustParseAddrPort("10.0.0.1:4000"), dst: netip.MustParseAddrPort("10.0.0.2:5201"),
		protocol: eth.ProtocolTCP, flags: 0x10}
}

func (x flow) v6() flow {
	x.src, x.dst = netip.MustParseAddrPort("[fd00::1]:4000"), netip.MustParseAddrPort("[fd00::2]:5201")
	return x
}

func (x flow) udp() flow {
	x.protocol = eth.ProtocolUDP
	return x
}

// frame returns a frame of the flow with a payload.
func (x flow) frame(payload []byte) []byte {
	b := append(x.to[:], x.from[:]...)
	b = slices.Clone(b)
	for _, tci := range x.tags {
		b = binary.BigEndian.AppendUint16(b, uint16(eth.TypeVLAN))
		b = binary.BigEndian.AppendUint16(b, tci)
	}
	p := binary.BigEndian.AppendUint16(nil, x.src.Port())
	p = binary.BigEndian.AppendUint16(p, x.dst.Port())
	sum := 6
	if x.protocol == eth.ProtocolUDP {
		p = binary.BigEndian.AppendUint16(p, uint16(8+len(payload)))
		p = append(p, 0, 0)
	} else {
		p = binary.BigEndian.AppendUint32(p, x.sequence)
		p = append(p, 0, 0, 0, 77, byte(20+len(x.options))<<2, x.flags, 2, 0, 0, 0, 0, 0)
		p = append(p, x.options...)
		sum = 16
	}
	p = append(p, payload...)
	if !x.unfinished {
		binary.BigEndian.PutUint16(p[sum:], eth.PseudoChecksum(x.src.Addr(), x.dst.Addr(), x.protocol, p))
	} else {
		binary.BigEndian.PutUint16(p[sum:], eth.PseudoSum(x.src.Addr(), x.dst.Addr(), x.protocol, len(p)))
	}
	if x.src.Addr().Is4() {
		b = binary.BigEndian.AppendUint16(b, uint16(eth.TypeIPv4))
		ip := make(eth.IPv4, eth.IPv4Len)
		ip.Encode(0, eth.IPv4Len+len(p), 1, 64, x.protocol, x.src.Addr().As4(), x.dst.Addr().As4())
		return slices.Concat(b, ip, p)
	}
	b = binary.BigEndian.AppendUint16(b, uint16(eth.TypeIPv6))
	ip := make(eth.IPv6, eth.IPv6Len)
	ip.Encode(0, 0, len(p), x.protocol, 64, x.src.Addr().As16(), x.dst.Addr().As16())
	return slices.Concat(b, ip, p)
}

// arrive lets frames arrive at a card's wire.
func (c *card) arrive(now clock.Time, frames ...[]byte) {
	in := make([]frame.In, len(frames))
	for i, b := range frames {
		in[i] = frame.In{Data: bytes.Clone(b), Raw: true}
	}
	c.port.Receive(now, c.wire, in)
}

// counting returns n bytes that differ.
func counting(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i * 7)
	}
	return b
}

var netipNone netip.Addr

func netip4791() netip.AddrPort { return netip.MustParseAddrPort("10.0.0.2:4791") }

// rdmaCount stands for an RDMA function: it counts what it is given.
type rdmaCount struct{ got int }

func (r *rdmaCount) Receive(_ clock.Time, in []frame.In)         { r.got += len(in) }
func (r *rdmaCount) Transmit(clock.Time, uint8, []frame.Out) int { return 0 }
func (r *rdmaCount) Pending() uint8                              { return 0 }
func (r *rdmaCount) Advance(clock.Time)                          {}
func (r *rdmaCount) Deadline() clock.Time                        { return clock.Never }

func netip4(a netip.AddrPort, port uint16) netip.AddrPort { return netip.AddrPortFrom(a.Addr(), port) }

func newOut(n int) []frame.Out { return make([]frame.Out, n) }
