package packet

import (
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/link/kernel"
)

const (
	maxHops      = 1024
	receiveMost  = 256 // maximum number of packets taken by one Receive
	resolveMost  = 16  // maximum number of hops resolved by one Tend
	refreshTicks = 256 // calls of Tend after which a packet is sent through the socket again
	leastMajor   = 6   // first kernel whose virtio header describes UDP bursts
	leastMinor   = 2
)

// Port sends and receives the frames of one link. Only one goroutine at a time may call its methods; call
// Close when no other call is in progress.
type Port struct {
	cfg    Config
	ring   *ring // receives if the gate does not
	outlet outlet
	system *system
	wall   *firewall // nil if not checked
	device device
	early  bool   // packets are received before tc and IP see them
	late   bool   // tc may have changed since early was determined
	gate   *gate  // nil: none; otherwise it receives while early is set
	from   source // where the next packet is taken from
	to     source // where packets arrive: becomes from when that is empty
	lone   *gate  // the gate, if it is both from and to; otherwise nil
	paused bool   // nothing is received
	sole   bool   // what is received completely is wanted nowhere else
	off    string // why it was switched off; "": it was not
	ticks  uint32

	hops   []hop
	byAddr map[netip.Addr]uint16
	redo   int  // hops from here on must be resolved again
	other  bool // the interface may differ from device

	index uint16 // of the next packet of the burst in the slot
	done  int    // bytes of it that were handed out
	stats Stats

	// Last, so that what precedes it shares pages: packets handed out by Receive.
	memory [receiveMost * MostPayload]byte
}

// Open makes the frames of a link; what arrives from now on is in the ring. The error is an
// *unavailableError.
func Open(cfg Config) (*Port, error) {
	p := &Port{cfg: cfg, byAddr: map[netip.Addr]uint16{}, outlet: outlet{fd: -1, burst: -1}}
	if err := p.open(); err != nil {
		p.Close()
		var u *unavailableError
		if errors.As(err, &u) {
			return nil, u
		}
		if errors.Is(err, unix.EPERM) {
			return nil, &unavailableError{"the process may not open packet sockets (CAP_NET_RAW)"}
		}
		return nil, &unavailableError{err.Error()}
	}
	return p, nil
}

func (p *Port) open() (err error) {
	if !kernel.AtLeast(leastMajor, leastMinor) {
		return &unavailableError{fmt.Sprintf("the kernel is older than %d.%d", leastMajor, leastMinor)}
	}
	if p.system, err = openSystem(); err != nil {
		return err
	}
	var ok bool
	if p.device, ok = p.system.device(p.cfg.Interface); !ok {
		return &unavailableError{"the interface is not known"}
	}
	switch {
	case p.device.kind != ethernet && p.device.kind != loopback:
		return &unavailableError{"the interface is not Ethernet"}
	case p.device.enslaved:
		return &unavailableError{partOfAnother}
	}
	if !p.cfg.Firewall {
		if p.wall, err = openFirewall(p.cfg.Addr); err != nil {
			return err
		}
		if p.wall.stands() {
			return &unavailableError{firewallStands}
		}
	}
	p.early = !p.system.filtersIngress(p.cfg.Interface, p.system.socket(), p.gate.own())
	if p.early && p.device.kind == ethernet {
		p.gate, _ = openGate(p.Rule()) // without one the ring receives
	}
	if p.ring, err = openRing(p.Rule(), p.filter(), p.shown()); err != nil {
		return err
	}
	if err = p.outlet.open(p.Rule()); err != nil {
		return err
	}
	p.to = p.source()
	p.from = p.to
	p.lone = p.only()
	return nil
}

// source holds received packets until they are taken: the memory of a gate, or a ring.
type source interface {
	// peek returns the next frame and, for a burst, the payload length of its packets, otherwise 0; nil if there is
	// none. The frame remains until release.
	peek() (b []byte, segment int)
	release()
	// waiting calls each for the frames not taken yet.
	waiting(each func(b []byte))
}

// source returns the one that receives now.
func (p *Port) source() source {
	if p.gated() {
		return p.gate
	}
	return p.ring
}

// gated reports whether the gate receives, so that the ring only serves to wake.
func (p *Port) gated() bool { return p.early && p.gate != nil && !p.gate.gone }

// shown returns the protocol to which the ring is bound. Bound to IP, the ring gets a packet after the system's IP input,
// for which the system must copy it; bound to all protocols, it gets it early: before IP, and before tc's ingress hooks
// on the interface.
func (p *Port) shown() uint16 {
	switch {
	case p.gated():
		return alarmType
	case p.early:
		return unix.ETH_P_ALL
	}
	return uint16(p.Rule().kind())
}

// filter returns the filter for what the ring is to take now.
func (p *Port) filter() []bpf.Instruction {
	switch {
	case p.paused:
		return []bpf.Instruction{bpf.RetConstant{}}
	case p.gated():
		return p.Rule().alarm(alarmType)
	}
	return p.Rule().ring()
}

// Why frames are unavailable, from the beginning or later.
const (
	firewallStands = "the system has a firewall, which they would pass by"
	partOfAnother  = "the interface is a part of another"
)

// Rule returns the rule for the packets that the ring takes.
func (p *Port) Rule() Rule {
	return Rule{Addr: p.cfg.Addr.WithZone(""), Port: p.cfg.Port, Interface: p.cfg.Interface}
}

// Close releases everything.
func (p *Port) Close() {
	p.gate.close()
	p.outlet.close()
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

// Descriptors returns the ring's descriptor, which becomes readable when something is received after ArmWakeUp, and that of
// changes, which Tend reads.
func (p *Port) Descriptors() (ring, changes int) { return p.ring.fd, p.system.socket() }

// Stats returns the counters. Frames includes those waiting in the ring.
func (p *Port) Stats() Stats {
	s := p.stats
	count := func(b []byte) {
		var d datagram
		if parse(&d, b, p.cfg.Addr, p.cfg.Port) && d.data != nil {
			s.Frames++
		}
	}
	p.from.waiting(count)
	if p.to != p.from {
		p.to.waiting(count)
	}
	return s
}

// Status describes whether frames are in use.
func (p *Port) Status() string {
	switch {
	case p.off != "":
		return "no frames any more: " + p.off
	case p.sends():
		return "short packets as frames"
	}
	return "short packets received as frames"
}
