package packet

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/frame"
)

const (
	maxHops      = 1024
	receiveMost  = 256 // packets that one Receive takes
	resolveMost  = 16  // hops that one Tend asks for
	refreshTicks = 256 // calls of Tend after which a packet leaves by the socket once more
	leastMajor   = 6   // the kernel from which on the virtio header tells of UDP bursts
	leastMinor   = 2
)

// Port is the frames of one link. One goroutine at a time calls its methods; Close is called when
// none does any more.
type Port struct {
	cfg    Config
	ring   *ring
	system *system
	wall   *firewall // nil where nobody asks for it
	device device
	early  bool   // the ring has packets before tc and IP
	late   bool   // there may be more of tc than early says
	gate   *gate  // nil: none
	sole   bool   // what the ring has whole is to come nowhere else
	off    string // why it was switched off; "": it was not
	ticks  uint32

	hops   []hop
	byAddr map[netip.Addr]uint16
	redo   int  // hops from here on are to be asked for again
	other  bool // the interface may be another than device says

	memory [receiveMost * MostPayload]byte // what Receive handed out
	index  uint16                          // of the next packet of the burst in the slot
	done   int                             // bytes of it that were handed out
	stats  Stats
}

// hop is the way to a destination.
type hop struct {
	dst, next        netip.Addr
	srcPort, dstPort uint16
	mac              [12]byte // of the next hop, and of the interface
	usable           bool
	sent             uint32 // tick at which the last packet left by the socket
}

// Open makes the frames of a link; what arrives from now on is in the ring. The error is an
// *UnavailableError.
func Open(cfg Config) (*Port, error) {
	p := &Port{cfg: cfg, byAddr: map[netip.Addr]uint16{}}
	if err := p.open(); err != nil {
		p.Close()
		var u *UnavailableError
		if errors.As(err, &u) {
			return nil, u
		}
		if errors.Is(err, unix.EPERM) {
			return nil, &UnavailableError{"the process may not open packet sockets (CAP_NET_RAW)"}
		}
		return nil, &UnavailableError{err.Error()}
	}
	return p, nil
}

func (p *Port) open() (err error) {
	if !kernelServes() {
		return &UnavailableError{fmt.Sprintf("the kernel is older than %d.%d", leastMajor, leastMinor)}
	}
	if p.system, err = openSystem(); err != nil {
		return err
	}
	var ok bool
	if p.device, ok = p.system.device(p.cfg.Interface); !ok {
		return &UnavailableError{"the interface is not known"}
	}
	switch {
	case p.device.kind != unix.ARPHRD_ETHER && p.device.kind != unix.ARPHRD_LOOPBACK:
		return &UnavailableError{"the interface is not Ethernet"}
	case p.device.enslaved:
		return &UnavailableError{partOfAnother}
	}
	if !p.cfg.Firewall {
		if p.wall, err = openFirewall(p.cfg.Addr); err != nil {
			return err
		}
		if p.wall.stands() {
			return &UnavailableError{firewallStands}
		}
	}
	p.early = !p.system.filtersIngress(p.cfg.Interface, p.system.ask, p.gate.own())
	if p.ring, err = openRing(p.Rule(), p.early); err != nil {
		return err
	}
	if p.early && p.device.kind == unix.ARPHRD_ETHER {
		p.gate, _ = openGate(p.Rule()) // the socket's filter does without
	}
	return nil
}

// Why there are none, at first or later.
const (
	firewallStands = "the system has a firewall, which they would pass by"
	partOfAnother  = "the interface is a part of another"
)

// kernelServes reports whether the kernel is new enough.
func kernelServes() bool {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return false
	}
	major, rest, _ := strings.Cut(unix.ByteSliceToString(u.Release[:]), ".")
	minor := rest[:len(rest)-len(strings.TrimLeft(rest, "0123456789"))]
	m, _ := strconv.Atoi(major) // what is no number is no kernel that is new enough
	n, _ := strconv.Atoi(minor)
	return m > leastMajor || m == leastMajor && n >= leastMinor
}

// Rule is which packets the ring takes.
func (p *Port) Rule() Rule {
	return Rule{Addr: p.cfg.Addr.WithZone(""), Port: p.cfg.Port, Interface: p.cfg.Interface}
}

// Close gives everything back.
func (p *Port) Close() {
	p.gate.close()
	if p.ring != nil {
		p.ring.close()
	}
	if p.wall != nil {
		p.wall.close()
	}
	if p.system != nil {
		p.system.close()
	}
}

// Descriptors are the ring's, which is readable while something is in it, and that of changes, which Tend
// reads.
func (p *Port) Descriptors() (ring, changes int) { return p.ring.fd, p.system.news }

// Stats returns the counters. Frames counts those too that wait in the ring.
func (p *Port) Stats() Stats {
	s := p.stats
	p.ring.waiting(func(b []byte) {
		if d, ok := parse(b, p.cfg.Addr, p.cfg.Port); ok && d.data != nil {
			s.Frames++
		}
	})
	return s
}

// Status says in words whether frames are in use.
func (p *Port) Status() string {
	switch {
	case p.off != "":
		return "no frames any more: " + p.off
	case p.sends():
		return "short packets as frames"
	}
	return "short packets received as frames"
}

// Receive fills in with the short packets in the ring, up to the first mark, and returns their number.
// They are valid until the next call.
func (p *Port) Receive(in []frame.In) int {
	n := 0
	for n < min(len(in), receiveMost) {
		b, segment := p.ring.peek()
		if b == nil {
			return n
		}
		d, ok := parse(b, p.cfg.Addr, p.cfg.Port)
		switch {
		case !ok:
			p.stats.Bad++
			p.next()
		case d.data == nil:
			return n
		default:
			if d.length == 0 {
				p.stats.Frames++
				p.next()
				continue
			}
			p.take(&in[n], &d, segment, n)
			n++
		}
	}
	return n
}

// take makes a packet of a datagram, or of the next part of a burst: a copy, because the ring's slots
// are few.
func (p *Port) take(in *frame.In, d *datagram, segment, n int) {
	end := d.length
	if segment > 0 {
		end = min(p.done+segment, d.length)
	}
	data := p.memory[n*MostPayload : n*MostPayload+copy(p.memory[n*MostPayload:(n+1)*MostPayload], d.data[p.done:end])]
	// The identification is a hint: senders there are that do not choose it, and whose ICRC is
	// made without.
	*in = frame.In{
		Data: data[:len(data):len(data)], Src: d.src, Dst: p.cfg.Addr, SrcPort: d.srcPort,
		TrafficClass: d.trafficClass, HopLimit: d.hopLimit, FlowLabel: d.flowLabel, Segment: d.id + p.index,
	}
	p.stats.Received++
	p.index++
	if p.done = end; end == d.length {
		p.stats.Frames++
		p.next()
	}
}

func (p *Port) next() {
	p.ring.release()
	p.index, p.done = 0, 0
}

// Marks takes up to most marks that are next in the ring, and returns their number: so many messages
// wait at the socket, or will in a moment.
func (p *Port) Marks(most int) int {
	for n := range most {
		b, _ := p.ring.peek()
		if b == nil {
			return n
		}
		d, ok := parse(b, p.cfg.Addr, p.cfg.Port)
		if !ok || d.data != nil {
			return n
		}
		p.ring.release()
	}
	return most
}

// Prepare notes the way of a route that is complete otherwise.
func (p *Port) Prepare(r *frame.Route) {
	r.Hop = 0
	if !p.sends() || r.Dst.IsMulticast() || r.Src != p.cfg.Addr {
		return
	}
	i, known := p.byAddr[r.Dst]
	if !known {
		if len(p.hops) == maxHops {
			return
		}
		i = uint16(len(p.hops))
		p.hops = append(p.hops, hop{dst: r.Dst, srcPort: r.SrcPort, dstPort: r.DstPort, sent: p.ticks})
		p.byAddr[r.Dst] = i
		p.resolve(&p.hops[i])
		if p.redo == int(i) {
			p.redo++
		}
	}
	r.Hop = i + 1
}

// sends reports whether frames are sent. Over the loopback interface they are not: the system
// takes what comes there for forged unless it has sent it itself.
func (p *Port) sends() bool { return p.off == "" && p.device.kind == unix.ARPHRD_ETHER }

// resolve asks for the way to a destination.
func (p *Port) resolve(h *hop) {
	h.usable, h.next = false, netip.Addr{}
	r, ok := p.system.route(p.cfg.Addr.WithZone(""), h.dst.WithZone(""), h.srcPort, h.dstPort, p.cfg.Interface)
	if !ok || !r.unicast || r.out != p.cfg.Interface {
		return
	}
	h.next = h.dst.WithZone("")
	if r.gateway.IsValid() {
		h.next = r.gateway
	}
	if n, ok := p.system.neighbour(h.next, r.out); ok {
		p.meet(h, &n)
	}
}

// meet takes over what the system knows of the next hop.
func (p *Port) meet(h *hop, n *neighbour) {
	copy(h.mac[:6], n.mac[:])
	copy(h.mac[6:], p.device.mac[:])
	h.usable = n.valid && n.mac != [6]byte{} && n.mac[0]&1 == 0
}

// Send sends a packet that leaves alone as a frame. It reports false where that is the socket's
// business: the way is not known, the packet is long, or has a priority, which the system makes of
// its traffic class. From time to time it is, so that the system looks after its neighbour.
func (p *Port) Send(o *frame.Out) bool {
	r := o.Route
	if r.Hop == 0 || int(r.Hop) > len(p.hops) || r.TrafficClass != 0 || o.Len() > MostPayload || p.off != "" {
		return false
	}
	h := &p.hops[r.Hop-1]
	if !h.usable {
		return false
	}
	if p.ticks-h.sent >= refreshTicks {
		h.sent = p.ticks
		return false
	}
	n := build(p.ring.out[virtioLen:], &h.mac, p.cfg.Port, o)
	if p.ring.send(n) != 0 {
		return false
	}
	p.stats.Sent++
	return true
}

// Tend follows changes of the system. It is to be called every few milliseconds while packets are
// sent, and when the second descriptor is readable. It reports true when the Port was switched
// off for good, once: the ring gets nothing more, and the socket is to lose its filter.
func (p *Port) Tend() (off bool) {
	p.ticks++
	p.ring.settle()
	if !p.system.changes(p.changed) {
		p.forget()
	}
	if p.other {
		p.other = false
		if d, ok := p.system.device(p.cfg.Interface); ok {
			p.device = d
		}
		if p.device.enslaved && p.off == "" {
			return p.stop(partOfAnother)
		}
	}
	for range resolveMost {
		if p.redo >= len(p.hops) {
			break
		}
		p.resolve(&p.hops[p.redo])
		p.redo++
	}
	if refresh := p.ticks%refreshTicks == 0; p.off == "" && (refresh || p.late && p.early) {
		p.late = false
		p.followIngress()
	}
	if p.off == "" && p.wall != nil && p.ticks%refreshTicks == 0 && p.wall.stands() {
		return p.stop(firewallStands)
	}
	return false
}

// followIngress has the ring be shown packets early as long as tc has nothing at the interface's entrance.
func (p *Port) followIngress() {
	early := !p.system.filtersIngress(p.cfg.Interface, p.system.ask, p.gate.own())
	if early == p.early {
		return
	}
	p.gate.set(false) // what comes late would not come at all
	if p.ring.bind(p.Rule(), early) == nil {
		p.early = early
	}
	p.setGate()
}

// Sole says that what the ring has whole is to come by it alone, until Pause: it need not come to the socket.
func (p *Port) Sole() {
	p.sole = true
	p.setGate()
}

// setGate has the gate drop what the ring has where nobody else is to have it.
func (p *Port) setGate() { p.gate.set(p.sole && p.early) }

// Dropped is how many frames that are whole in the ring the system dropped before they came to the
// socket and its filter.
func (p *Port) Dropped() uint64 { return p.gate.dropped() }

// stop makes the ring take nothing more.
func (p *Port) stop(why string) bool {
	if !p.Pause() {
		return false
	}
	p.off = why
	return true
}

// Pause makes the ring take nothing until Resume. What is in it stays. Both report whether the system
// did so.
func (p *Port) Pause() bool {
	p.sole = false
	p.setGate()
	return attach(p.ring.fd, []Instruction{{Code: take}}) == nil
}

// Resume makes the ring take what its rule says again, unless it was switched off for good.
func (p *Port) Resume() bool { return p.off == "" && attach(p.ring.fd, p.Rule().Ring()) == nil }

// Empty reports whether nothing is in the ring.
func (p *Port) Empty() bool {
	b, _ := p.ring.peek()
	return b == nil
}

// Discard throws away what is in the ring, where the socket has it all.
func (p *Port) Discard() {
	for range slots {
		if b, _ := p.ring.peek(); b == nil {
			return
		}
		p.next()
	}
}

// Twice is told that a packet was in the ring which the socket did not drop.
func (p *Port) Twice() { p.stats.Frames-- }

// changed is told of a change of the system.
func (p *Port) changed(kind uint16, body []byte) {
	switch kind {
	case unix.RTM_NEWNEIGH, unix.RTM_DELNEIGH:
		n, ok := parseNeighbour(body, kind == unix.RTM_DELNEIGH)
		if !ok || n.out != p.cfg.Interface {
			return
		}
		for i := range p.hops {
			if p.hops[i].next == n.addr {
				p.meet(&p.hops[i], &n)
			}
		}
	case unix.RTM_NEWQDISC, unix.RTM_DELQDISC:
		q, ok := parseQdisc(body)
		p.late = p.late || ok && q.out == p.cfg.Interface
	case unix.RTM_NEWTCLASS, unix.RTM_DELTCLASS, unix.RTM_NEWTFILTER, unix.RTM_DELTFILTER, unix.RTM_NEWACTION, unix.RTM_DELACTION,
		unix.RTM_NEWCHAIN, unix.RTM_DELCHAIN: // of qdiscs that there are
	default:
		p.forget()
	}
}

// forget has everything asked for again.
func (p *Port) forget() {
	for i := range p.hops {
		p.hops[i].usable = false
	}
	p.redo, p.other, p.late = 0, true, true
}
