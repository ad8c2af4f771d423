package packet

import (
	"errors"
	"net/netip"

	"golang.org/x/sys/unix"
)

const (
	maxHops      = 1024
	resolveMost  = 16  // maximum number of hops resolved by one Tend
	refreshTicks = 256 // calls of Tend after which a packet is sent through the socket again
)

// Port sends the frames of one link, and has the Intake of its short packets. Only one goroutine at a time may call its
// methods; call Close when no other call is in progress.
type Port struct {
	cfg    Config
	outlet outlet
	system *system
	wall   *firewall // nil if not checked
	device device
	intake *Intake // nil: none
	late   bool    // tc may have changed since it was looked at
	off    string  // why it was switched off; "": it was not
	ticks  uint32

	hops   []hop
	byAddr map[netip.Addr]uint16
	redo   int  // hops from here on must be resolved again
	other  bool // the interface may differ from device
	sent   uint64
}

// Open makes the frames of a link. The error is an *unavailableError.
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
	if err = p.outlet.open(p.cfg.Interface); err != nil {
		return err
	}
	r := Rule{Addr: p.cfg.Addr, Port: p.cfg.Port, Interface: p.cfg.Interface}
	if p.intake, err = openIntake(r, p.device.kind == ethernet); err != nil && !p.sends() {
		return err
	}
	return nil
}

// Start lets the gate take packets, if tc has nothing at the interface's ingress. Call it when the socket is bound: only
// then are the packets this link's.
func (p *Port) Start() {
	p.followIngress()
	p.followIngress() // to open it at once: nothing that came before the socket was bound is on its way to the filter
}

// Intake returns the Port's Intake, nil if it has none: the process may not load BPF programs.
func (p *Port) Intake() *Intake { return p.intake }

// Why frames are unavailable, from the beginning or later.
const (
	firewallStands = "the system has a firewall, which they would pass by"
	partOfAnother  = "the interface is a part of another"
)

// Close releases everything.
func (p *Port) Close() {
	if p.intake != nil {
		p.intake.close()
	}
	p.outlet.close()
	if p.wall != nil {
		p.wall.close()
	}
	if p.system != nil {
		p.system.close()
	}
}

// Changes returns a descriptor that becomes readable when the system has changed, for Tend.
func (p *Port) Changes() int { return p.system.socket() }

// Sent returns how many packets were sent as frames.
func (p *Port) Sent() uint64 { return p.sent }

// Status describes whether frames are in use.
func (p *Port) Status() string {
	switch {
	case p.off != "":
		return "no frames any more: " + p.off
	case p.intake == nil:
		return "short packets sent as frames"
	case p.sends():
		return "short packets as frames"
	}
	return "short packets received as frames"
}
