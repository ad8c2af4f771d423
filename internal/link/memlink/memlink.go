// Package memlink is a network in memory: a Switch joins any number of ports in one process, each a
// link.Link, with bounded queues. It serves tests, and adapters that live in one program.
package memlink

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/wire/eth"
)

const (
	defaultQueue = 1024
	defaultMTU   = 9000
	maxSegments  = 64
	maxBurst     = 65000
	maxErrors    = 64
	ipUDPHeader  = 28
)

// errAddressInUse says that another port of the switch has the address.
var errAddressInUse = errors.New("address is in use on this switch")

// PortConfig describes a port of a Switch.
type PortConfig struct {
	Addr  netip.Addr // of the port: packets to it arrive here
	Queue int        // packets that wait for Receive before more are dropped; 0 means 1024
	MTU   int        // largest IP packet in bytes; 0 means 9000
	// Single says that the port sends packets singly, not in bursts.
	Single bool
	// Raw says that the frames are whole Ethernet frames.
	Raw bool
	// Notify, if any, is called by the sender when packets or errors have arrived and none were waiting.
	// It must not call the link.
	Notify func()
}

// Switch joins ports by address.
type Switch struct {
	mu     sync.RWMutex
	ports  map[netip.Addr]*Port
	groups map[netip.Addr]map[*Port]int
}

// NewSwitch returns a switch without ports.
func NewSwitch() *Switch {
	return &Switch{ports: map[netip.Addr]*Port{}, groups: map[netip.Addr]map[*Port]int{}}
}

// Port plugs a new port into the switch. The error wraps errAddressInUse if the address is taken.
func (s *Switch) Port(cfg PortConfig) (*Port, error) {
	if !cfg.Addr.IsValid() || cfg.Addr.IsMulticast() || cfg.Addr.IsUnspecified() {
		return nil, fmt.Errorf("memory link: Addr %v: want a unicast address", cfg.Addr)
	}
	if cfg.Queue < 0 || cfg.Queue > 1<<20 {
		return nil, fmt.Errorf("memory link: Queue %d: want 0 to %d", cfg.Queue, 1<<20)
	}
	if cfg.MTU != 0 && (cfg.MTU < 576 || cfg.MTU > 65535) {
		return nil, fmt.Errorf("memory link: MTU %d: want 576 to 65535", cfg.MTU)
	}
	if cfg.Queue == 0 {
		cfg.Queue = defaultQueue
	}
	if cfg.MTU == 0 {
		cfg.MTU = defaultMTU
	}
	p := newPort(s, cfg)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ports[cfg.Addr] != nil {
		return nil, fmt.Errorf("memory link: Addr %v: %w", cfg.Addr, errAddressInUse)
	}
	s.ports[cfg.Addr] = p
	return p, nil
}

// Pair returns two ports on a switch of their own.
func Pair(a, b PortConfig) (*Port, *Port, error) {
	s := NewSwitch()
	pa, err := s.Port(a)
	if err != nil {
		return nil, nil, err
	}
	pb, err := s.Port(b)
	if err != nil {
		return nil, nil, err
	}
	return pa, pb, nil
}

// Port is a link.Link and a link.Multicaster.
type Port struct {
	net   *Switch
	cfg   PortConfig
	caps  link.Capabilities
	in    queue
	errs  [maxErrors]link.Unreachable
	nerrs int
	stats link.Stats // counts of the sender and the receiver; the queue has its own
}

var (
	_ link.Link        = (*Port)(nil)
	_ link.Multicaster = (*Port)(nil)
)

func newPort(s *Switch, cfg PortConfig) *Port {
	p := &Port{net: s, cfg: cfg}
	p.caps = link.Capabilities{MaxSegments: maxSegments, MaxBurst: maxBurst, MTU: cfg.MTU, SegmentIDs: true, Raw: cfg.Raw, Multicaster: p}
	if cfg.Single || cfg.Raw {
		p.caps.MaxSegments, p.caps.MaxBurst, p.caps.SegmentIDs = 1, 0, false
	}
	slot := cfg.MTU
	if cfg.Raw {
		slot += 18 // Ethernet header and one VLAN tag
	}
	p.in.init(cfg.Queue, slot, cfg.Notify)
	return p
}

// Capabilities implements link.Link.
func (p *Port) Capabilities() link.Capabilities { return p.caps }

// Prepare implements link.Link.
func (p *Port) Prepare(r *frame.Route) error {
	if !r.Dst.IsValid() {
		return fmt.Errorf("memory link: route without destination address")
	}
	if r.Dst.Is4() != p.cfg.Addr.Is4() {
		return fmt.Errorf("memory link: destination %v is not of the family of %v", r.Dst, p.cfg.Addr)
	}
	if !r.Src.IsValid() {
		r.Src = p.cfg.Addr
	}
	if r.SrcPort == 0 {
		r.SrcPort = eth.PortRoCEv2
	}
	if r.DstPort == 0 {
		r.DstPort = eth.PortRoCEv2
	}
	return nil
}

// Send implements link.Link. It always accepts every frame; if a receiver's queue is full they are
// dropped.
func (p *Port) Send(frames []frame.Out) (int, error) {
	if p.in.isClosed() {
		return 0, net.ErrClosed
	}
	for i := 0; i < len(frames); {
		n := run(frames[i:])
		p.sendRun(frames[i : i+n])
		i += n
	}
	return len(frames), nil
}

// run returns how many frames at the front have the same route.
func run(frames []frame.Out) int {
	n := 1
	for n < len(frames) && frames[n].Route == frames[0].Route {
		n++
	}
	return n
}

func (p *Port) sendRun(frames []frame.Out) {
	r := frames[0].Route
	for i := range frames {
		p.stats.SentPackets++
		p.stats.SentBytes += uint64(frames[i].Len())
		if frames[i].Segment == 0 {
			p.stats.SentBursts++
		}
	}
	p.net.mu.RLock()
	dst := p.net.ports[r.Dst]
	members := p.net.groups[r.Dst]
	for m := range members {
		m.in.push(frames, p)
	}
	p.net.mu.RUnlock()
	switch {
	case dst != nil:
		dst.in.push(frames, p)
	case !r.Dst.IsMulticast():
		p.unreachable(frames)
	}
}

// tooLong reports whether a frame does not fit the MTU.
func (p *Port) tooLong(o *frame.Out) bool {
	if p.cfg.Raw {
		return o.Len() > p.cfg.MTU+18
	}
	header := ipUDPHeader
	if !p.cfg.Addr.Is4() {
		header += 20
	}
	return o.Len()+header > p.cfg.MTU
}

func (p *Port) unreachable(frames []frame.Out) {
	p.stats.SendErrors += uint64(len(frames))
	p.report(quote(link.Unreachable{Dst: frames[0].Route.Dst, Kind: link.HostUnreachable}, &frames[0]))
}

func (p *Port) report(u link.Unreachable) {
	if p.nerrs == len(p.errs) {
		p.stats.ErrorsLost++
		return
	}
	p.errs[p.nerrs] = u
	p.nerrs++
}

// quote adds the frame that it is about to an Unreachable.
func quote(u link.Unreachable, o *frame.Out) link.Unreachable {
	u.Quote(o.Head[frame.HeadRoom:o.HeadEnd], o.Payload)
	return u
}

// Receive implements link.Link.
func (p *Port) Receive(in []frame.In) (int, error) {
	n, err := p.in.pop(in, p.cfg.Addr, p.cfg.Raw)
	for i := range in[:n] {
		p.stats.ReceivedBytes += uint64(len(in[i].Data))
	}
	p.stats.ReceivedPackets += uint64(n)
	return n, err
}

// Errors implements link.Link.
func (p *Port) Errors(out []link.Unreachable) int {
	n := copy(out, p.errs[:p.nerrs])
	p.nerrs = copy(p.errs[:], p.errs[n:p.nerrs])
	return n
}

// Descriptors implements link.Link: there are none, Notify is called instead.
func (p *Port) Descriptors() []int { return nil }

// Stats implements link.Link. ReceiveBuffer is the queue's memory.
func (p *Port) Stats() link.Stats {
	s := p.stats
	s.ReceiveDrops = p.in.dropped()
	s.ReceiveBuffer = len(p.in.memory)
	return s
}

// Join implements link.Multicaster.
func (p *Port) Join(group netip.Addr) error {
	if !group.IsMulticast() || group.Is4() != p.cfg.Addr.Is4() {
		return fmt.Errorf("memory link: group %v: want a multicast address of the family of %v", group, p.cfg.Addr)
	}
	p.net.mu.Lock()
	defer p.net.mu.Unlock()
	if p.net.groups[group] == nil {
		p.net.groups[group] = map[*Port]int{}
	}
	p.net.groups[group][p]++
	return nil
}

// Leave implements link.Multicaster.
func (p *Port) Leave(group netip.Addr) error {
	p.net.mu.Lock()
	defer p.net.mu.Unlock()
	members := p.net.groups[group]
	if members[p] == 0 {
		return fmt.Errorf("memory link: group %v was not joined", group)
	}
	members[p]--
	if members[p] > 0 {
		return nil
	}
	delete(members, p)
	if len(members) == 0 {
		delete(p.net.groups, group)
	}
	return nil
}

// Close unplugs the port.
func (p *Port) Close() error {
	p.net.mu.Lock()
	defer p.net.mu.Unlock()
	if !p.in.close() {
		return nil
	}
	delete(p.net.ports, p.cfg.Addr)
	for g, members := range p.net.groups {
		delete(members, p)
		if len(members) == 0 {
			delete(p.net.groups, g)
		}
	}
	return nil
}
