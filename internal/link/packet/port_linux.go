package packet

import (
	"errors"
	"fmt"
	"net/netip"

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
	ring   *ring
	system *system
	wall   *firewall // nil if not checked
	device device
	early  bool   // the ring gets packets before tc and IP
	late   bool   // tc may have changed since early was determined
	gate   *gate  // nil: none
	sole   bool   // what is completely in the ring is wanted nowhere else
	off    string // why it was switched off; "": it was not
	ticks  uint32

	hops   []hop
	byAddr map[netip.Addr]uint16
	redo   int  // hops from here on must be resolved again
	other  bool // the interface may differ from device

	memory [receiveMost * MostPayload]byte // packets handed out by Receive
	index  uint16                          // of the next packet of the burst in the slot
	done   int                             // bytes of it that were handed out
	stats  Stats
}

// Open makes the frames of a link; what arrives from now on is in the ring. The error is an
// *unavailableError.
func Open(cfg Config) (*Port, error) {
	p := &Port{cfg: cfg, byAddr: map[netip.Addr]uint16{}}
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
	case p.device.kind != unix.ARPHRD_ETHER && p.device.kind != unix.ARPHRD_LOOPBACK:
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
	p.early = !p.system.filtersIngress(p.cfg.Interface, p.system.ask, p.gate.own())
	if p.ring, err = openRing(p.Rule(), p.early); err != nil {
		return err
	}
	if p.early && p.device.kind == unix.ARPHRD_ETHER {
		p.gate, _ = openGate(p.Rule()) // without it the socket's filter does the work
	}
	return nil
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

// Descriptors returns the ring's descriptor, which is readable while something is in the ring, and that of
// changes, which Tend reads.
func (p *Port) Descriptors() (ring, changes int) { return p.ring.fd, p.system.news }

// Stats returns the counters. Frames includes those waiting in the ring.
func (p *Port) Stats() Stats {
	s := p.stats
	p.ring.waiting(func(b []byte) {
		if d, ok := parse(b, p.cfg.Addr, p.cfg.Port); ok && d.data != nil {
			s.Frames++
		}
	})
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
