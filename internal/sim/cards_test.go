package sim_test

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/encap"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/function/ethernet"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/offload"
	"github.com/softvpi/softvpi/internal/port"
	"github.com/softvpi/softvpi/internal/sim"
	"github.com/softvpi/softvpi/wire/eth"
)

// learning is an Ethernet switch: it learns who is at which socket, and sends what it has not learned everywhere.
type learning struct {
	sockets int
	where   map[eth.MAC]int
	queue   []forwarded
}

type forwarded struct {
	socket int
	data   []byte
}

func (l *learning) Advance(clock.Time)          {}
func (l *learning) Deadline() clock.Time        { return clock.Never }
func (l *learning) Room() (socket int, ok bool) { return 0, false }

func (l *learning) Accept(_ clock.Time, socket int, b []byte) bool {
	l.where[eth.MAC(b[6:])] = socket
	to, known := l.where[eth.MAC(b)]
	for i := range l.sockets {
		if i != socket && (!known || i == to) {
			l.queue = append(l.queue, forwarded{i, bytes.Clone(b)})
		}
	}
	return true
}

func (l *learning) Collect(clock.Time) (socket int, b []byte, ok bool) {
	if len(l.queue) == 0 {
		return 0, nil, false
	}
	f := l.queue[0]
	l.queue = l.queue[1:]
	return f.socket, f.data, true
}

// whole is the codec of ports whose packets are whole frames already.
type whole struct{}

func (whole) Seal(b []byte, o *frame.Out) []byte {
	return append(append(append(b, o.Head[o.HeadStart:o.HeadEnd]...), o.Payload...), o.Tail[:o.TailLen]...)
}

func (whole) Open(in *frame.In) bool { return in.Raw }

// stack is the host of an Ethernet function: it answers every TCP frame to it with one of its own, and keeps count.
type stack struct {
	t        testing.TB
	f        *ethernet.Function
	mac      eth.MAC
	received []byte
	sent     int
}

func (s *stack) Indicate(_ clock.Time, _ int, list []ethernet.Packet) int {
	for i := range list {
		var h eth.Headers
		b := bytes.Join(list[i].Parts, nil)
		if !h.Parse(b) || h.Data == 0 || list[i].Sums&offload.BadTransport != 0 {
			s.t.Errorf("a frame of %d bytes: %+v, %+v", len(b), h, list[i])
			continue
		}
		s.received = append(s.received, b[h.Data:h.End]...)
	}
	return len(list)
}

func (s *stack) Sent(_ clock.Time, _, n int)           { s.sent += n }
func (s *stack) Raised(_ clock.Time, e ethernet.Event) { s.t.Errorf("event %+v", e) }

// largeSend returns a large send of TCP.
func largeSend(from, to eth.MAC, sequence uint32, payload []byte) ethernet.Send {
	b := (&eth.Ethernet{Dst: to, Src: from, Type: eth.TypeIPv4}).Append(nil)
	ip := make(eth.IPv4, eth.IPv4Len)
	ip.Encode(0, 40+len(payload), 1, 64, eth.ProtocolTCP, [4]byte{10, 1, 0, from[5]}, [4]byte{10, 1, 0, to[5]})
	tcp := make([]byte, eth.TCPLen)
	binary.BigEndian.PutUint16(tcp, 4000)
	binary.BigEndian.PutUint16(tcp[2:], 5201)
	binary.BigEndian.PutUint32(tcp[4:], sequence)
	tcp[12], tcp[13] = 5<<4, 0x10
	binary.BigEndian.PutUint16(tcp[16:], eth.PseudoSum(ip.Src(), ip.Dst(), eth.ProtocolTCP, eth.TCPLen+len(payload)))
	b = append(append(append(b, ip...), tcp...), payload...)
	return ethernet.Send{Frame: b, Task: offload.Task{Kind: offload.TCPv4, Segment: 1460, Sums: offload.MakeTransport}}
}

// TestCards_EthernetBesideRDMA: two ports on an Ethernet, each with an RDMA and an Ethernet function at the same MAC, exchange
// RDMA writes and large sends of TCP at the same time; every byte arrives, in order, with the function that it is for.
func TestCards_EthernetBesideRDMA(t *testing.T) {
	n := sim.New(1)
	hub := &learning{sockets: 2, where: map[eth.MAC]int{}}
	node := n.AddSwitch(hub)
	var peers [2]*peer
	var stacks [2]*stack
	var ports [2]*port.Port
	mac := func(i int) eth.MAC { return eth.MAC{2, 0, 0, 0, 0, byte(1 + i)} }
	for i := range 2 {
		x := newPeer(t, netip.AddrFrom4([4]byte{10, 0, 0, byte(1 + i)}))
		e, err := encap.New(encap.RoCEv2, []netip.Addr{x.addr}, link.Capabilities{Raw: true, MaxSegments: 1, MTU: 1500}, 0)
		if err != nil {
			t.Fatal(err)
		}
		cfg := ethernet.Defaults(catalogue.MLX5)
		cfg.MAC = mac(i)
		s := &stack{t: t, mac: cfg.MAC}
		if s.f, err = ethernet.New(cfg, s); err != nil {
			t.Fatal(err)
		}
		p, w := new(port.Port), new(port.Wire)
		p.Attach(x.e, port.Station{MAC: cfg.MAC}).Plug(w, netip.Addr{}, e)
		at := p.Attach(s.f, port.Station{MAC: cfg.MAC, Kind: port.Ethernet})
		at.Plug(w, netip.Addr{}, nil)
		s.f.SetWire(at)
		x.port = node.Plug(i, x.addr, sim.Drive(p, w))
		x.port.Codec, x.port.Settle, x.port.Rate = whole{}, x.settle, 10e9
		peers[i], stacks[i], ports[i] = x, s, p
	}
	const writes, sends, size = 200, 40, 30000
	for i := range 2 {
		x, y := peers[i], peers[1-i]
		route := func(from, to int) frame.Route {
			return frame.Route{Src: peers[from].addr, Dst: peers[to].addr, SrcPort: 50000, SrcMAC: mac(from), DstMAC: mac(to)}
		}
		x.most = writes
		x.connect(y, route(i, 1-i), route(1-i, i))
	}
	var want []byte
	for k := range sends {
		payload := bytes.Repeat([]byte{byte(k), byte(k >> 8), 3}, size/3)
		for i, s := range stacks {
			x := largeSend(mac(i), mac(1-i), uint32(k*size), payload)
			if err := s.f.Send(n.Now(), s.f.QueueFor(x.Frame), &x); err != nil {
				t.Fatal(err)
			}
		}
		want = append(want, payload...)
	}
	for _, x := range peers {
		for range deep {
			x.post()
		}
		x.port.Wake()
	}
	n.Pass(time.Second)
	for i, s := range stacks {
		if !bytes.Equal(s.received, want) {
			t.Errorf("host %d has received %d bytes, not the %d that were sent", i, len(s.received), len(want))
		}
		if s.sent != sends {
			t.Errorf("host %d: %d of %d sends are complete", i, s.sent, sends)
		}
		if peers[i].completed != writes {
			t.Errorf("peer %d: %d of %d writes", i, peers[i].completed, writes)
		}
		c := s.f.Counters()
		if c.Sent.Segments < sends*size/1460 || c.Sent.Large != sends || c.RSC.Packets == 0 || c.Malformed != 0 || c.NoBuffer != 0 {
			t.Errorf("host %d: %+v", i, c)
		}
		if u := ports[i].Counters().Unclaimed; u != 0 {
			t.Errorf("port %d: %d frames for nobody", i, u)
		}
	}
}
