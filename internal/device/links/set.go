package links

import (
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"syscall"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/encap"
	"github.com/softvpi/softvpi/internal/function/rdma/gid"
	"github.com/softvpi/softvpi/internal/function/rdma/ibport"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/link/capture"
	"github.com/softvpi/softvpi/internal/link/impair"
	"github.com/softvpi/softvpi/internal/link/udp"
	"github.com/softvpi/softvpi/internal/port"
)

// Framing is the format of a port's packets.
type Framing struct {
	Mode       encap.Mode
	UDPPort    uint16
	MAC        [6]byte      // of frames; RoCE v1: packets have the GID derived from it
	VLAN       uint16       // of frames on a shared link
	InfiniBand *ibport.Port // nil: an Ethernet port
}

// Config describes the links of a port.
type Config struct {
	Framing
	Addr netip.Addr // the port's own address
	// Given is the port's link; nil: a UDP link at UDPPort is opened for each address, configured by
	// Sockets.
	Given link.Link
	// Shared is the address of another function at the same port, whose link is Given and carries whole frames: this
	// set's packets leave and arrive by it, and it is not this set's to drive or to close.
	Shared *Address
	// Networks are those of addresses on a link with stations, each with the length of the network that is on the link; for
	// other addresses everybody is. Gateways are the routers to other networks, the first of a family for all.
	Networks []netip.Prefix
	Gateways []netip.Addr
	// Probe is that of link.Station.
	Probe bool
	// Limit is what the port's wire takes in bit/s; 0: all that it can.
	Limit   uint64
	Sockets udp.Config
	Now     func() clock.Time // for impairments
	Log     *slog.Logger
}

// Set is the set of addresses of a port, one for each address; the first is the port's own.
type Set struct {
	cfg        Config
	addresses  []*Address
	station    *port.Station // nil before Attach
	settled    []netip.Addr  // what a link with stations serves for this set
	stationed  bool          // it does
	taps       []*capture.Tap
	impairment impair.Impairment
	retired    struct { // counters of closed links
		link                          link.Stats
		encap                         encap.Counters
		receiveFailures, sendFailures uint64
	}
}

// New opens the port's link at its own address. Errors are *command.Error; a given link then stays open.
func New(cfg Config) (*Set, error) {
	p := &Set{cfg: cfg}
	l, own := cfg.Given, false
	if l == nil {
		var err error
		if l, err = p.openUDP(cfg.Addr); err != nil {
			return nil, err
		}
		own = true
	}
	first, err := p.newAddress(cfg.Addr, l, own)
	if err != nil {
		if own {
			_ = l.Close()
		}
		return nil, err
	}
	p.addresses = []*Address{first}
	if err := p.settle([]netip.Addr{cfg.Addr}); err != nil {
		if own {
			_ = l.Close()
		}
		return nil, err
	}
	return p, nil
}

// stations returns what makes a link of whole frames serve this set's end; nil for any other link, which serves what it was
// opened for.
func (p *Set) stations() link.Stations {
	if p.cfg.Given == nil {
		return nil
	}
	return p.cfg.Given.Capabilities().Stations
}

// settle makes a link with stations serve addresses for the set's MAC.
func (p *Set) settle(addrs []netip.Addr) error {
	s := p.stations()
	if s == nil {
		return nil
	}
	end := link.Station{MAC: p.cfg.MAC, VLAN: p.cfg.VLAN, Gateways: p.cfg.Gateways, Probe: p.cfg.Probe}
	p.settled = addrs
	for _, a := range addrs {
		end.Prefixes = append(end.Prefixes, p.cfg.network(a))
	}
	for _, g := range p.ends() {
		if !slices.Contains(addrs, g) { // a GID of RoCE v1
			end.Prefixes = append(end.Prefixes, netip.PrefixFrom(g, 64))
		}
	}
	if err := s.SetStation(end); err != nil {
		return command.Errorf(command.Invalid, "Link: %v", err)
	}
	p.stationed = true
	p.addresses[0].Encap.SetAddrs(p.ends())
	return nil
}

// ends returns the addresses of packets on a link with stations: the GIDs.
func (p *Set) ends() []netip.Addr {
	if p.cfg.Mode == encap.RoCEv1 {
		return p.cfg.addrs(p.cfg.Addr)
	}
	return p.settled
}

// leave makes a link with stations serve the set no longer.
func (p *Set) leave() error {
	if !p.stationed {
		return nil
	}
	p.stationed = false
	return p.stations().RemoveStation(p.cfg.MAC, p.cfg.VLAN)
}

// network returns an address with the length of its network.
func (c *Config) network(a netip.Addr) netip.Prefix {
	for _, n := range c.Networks {
		if n.Addr() == a {
			return n
		}
	}
	return netip.PrefixFrom(a, 0)
}

func (p *Set) openUDP(addr netip.Addr) (link.Link, error) {
	cfg := p.cfg.Sockets
	cfg.Addr, cfg.Port = addr, p.cfg.UDPPort
	l, err := udp.Open(cfg)
	if err == nil {
		return l, nil
	}
	var field *udp.FieldError
	code, advice := command.Internal, ""
	switch {
	case errors.As(err, &field):
		code = command.Invalid
	case errors.Is(err, syscall.EADDRINUSE):
		code = command.InUse
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		code = command.AddrNotAvailable
	case errors.Is(err, fs.ErrPermission):
		code, advice = command.AddrNotAvailable, "; low UDP ports take the right to bind them (on Linux root or CAP_NET_BIND_SERVICE)"
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE), errors.Is(err, syscall.ENOMEM):
		code = command.Exhausted
	}
	return nil, &command.Error{Code: code, Detail: err.Error() + advice}
}

// addrs returns the addresses in packets through the address of addr.
func (f *Framing) addrs(addr netip.Addr) []netip.Addr {
	if f.InfiniBand != nil {
		return f.InfiniBand.GIDs()
	}
	if f.Mode == encap.RoCEv1 {
		return []netip.Addr{gid.FromMAC(f.MAC, f.VLAN)}
	}
	return []netip.Addr{addr}
}

// Close closes all links. The error is their first.
func (p *Set) Close() error {
	var first error
	for _, o := range p.addresses {
		if o.Link == nil || o.shared {
			continue
		}
		if err := o.Link.Close(); err != nil && first == nil {
			first = err
		}
	}
	if err := p.leave(); err != nil && first == nil && !errors.Is(err, net.ErrClosed) {
		first = err
	}
	p.addresses = nil
	return first
}

// All returns the addresses, the port's own first; none after Close.
func (p *Set) All() []*Address { return p.addresses }

// For returns the address of a source address, nil if there is none.
func (p *Set) For(src netip.Addr) *Address {
	if p.cfg.InfiniBand != nil && len(p.addresses) > 0 {
		return p.addresses[0] // carries all LIDs
	}
	for _, o := range p.addresses {
		if o.Addr == src {
			return o
		}
	}
	if len(p.addresses) > 0 && (slices.Contains(p.settled, src) || p.stations() != nil && slices.Contains(p.ends(), src)) {
		return p.addresses[0]
	}
	return nil
}

// Serve opens links for new addresses of the port and closes those of addresses that are gone. It returns
// the addresses that are served, and whether links were closed.
func (p *Set) Serve(want []netip.Addr) (served []netip.Addr, closed bool) {
	if p.stations() != nil {
		if err := p.settle(want); err != nil {
			p.cfg.Log.Warn("the link does not serve the addresses", "addresses", want, "cause", err)
		}
		return p.settled, false
	}
	if p.cfg.Given != nil { // such a link serves its own address only
		if slices.Contains(want, p.cfg.Addr) {
			return []netip.Addr{p.cfg.Addr}, false
		}
		return nil, false
	}
	kept := p.addresses[:1]
	for _, o := range p.addresses[1:] {
		if slices.Contains(want, o.Addr) {
			kept = append(kept, o)
			continue
		}
		p.cfg.Log.Info("address is gone", "address", o.Addr)
		p.unplug(o)
		closed = true
	}
	clear(p.addresses[len(kept):])
	p.addresses = kept
	for _, addr := range want {
		if p.For(addr) == nil {
			l, err := p.openUDP(addr)
			if err != nil {
				p.cfg.Log.Warn("address left out of the GID table", "address", addr, "cause", err)
				continue
			}
			o, err := p.newAddress(addr, l, true)
			if err != nil {
				_ = l.Close()
				continue
			}
			p.addresses = append(p.addresses, o)
		}
		served = append(served, addr)
	}
	return served, closed
}

// Follow adapts the encapsulation to what the subnet manager has set on an InfiniBand port.
func (p *Set) Follow() {
	for _, o := range p.addresses {
		o.Encap.SetPort(p.cfg.InfiniBand.Settings())
		o.Encap.SetAddrs(p.cfg.InfiniBand.GIDs())
	}
}

// Addrs returns the addresses.
func (p *Set) Addrs() (all []netip.Addr) {
	if p.stations() != nil {
		return p.settled
	}
	for _, o := range p.addresses {
		all = append(all, o.Addr)
	}
	return all
}

// By returns the address whose link is a wire, nil if there is none.
func (p *Set) By(w *port.Wire) *Address {
	for _, o := range p.addresses {
		if o.Wire == w && o.Link != nil && !o.shared {
			return o
		}
	}
	return nil
}

// Deadline returns when a link must next be attended to.
func (p *Set) Deadline() clock.Time {
	due := clock.Never
	for _, o := range p.addresses {
		if o.impair != nil {
			due = clock.Min(due, o.impair.Deadline())
		}
	}
	return due
}

// Descriptors appends the descriptors that become readable when packets arrive.
func (p *Set) Descriptors(fds []int) []int {
	for _, o := range p.addresses {
		if o.Link != nil && !o.shared {
			fds = append(fds, o.Link.Descriptors()...)
		}
	}
	return fds
}

// ArmWakeUp tells the links that the loop is about to sleep on their descriptors. ok is false if packets are waiting; told, if no link
// needs to know.
func (p *Set) ArmWakeUp() (told, ok bool) {
	for _, o := range p.addresses {
		if o.Link == nil || o.shared {
			continue
		}
		if s := o.Link.Capabilities().Sleeper; s != nil {
			if told = true; !s.ArmWakeUp() {
				return told, false
			}
		}
	}
	return told, true
}

// Taps returns the active captures.
func (p *Set) Taps() []*capture.Tap { return p.taps }

// SetTaps sets the active captures.
func (p *Set) SetTaps(taps []*capture.Tap) {
	p.taps = taps
	for _, o := range p.addresses {
		if o.shown != nil {
			o.tap(p, taps)
		}
	}
}

// Impairment returns what is done to packets that are sent.
func (p *Set) Impairment() *impair.Impairment { return &p.impairment }

// SetImpairment sets what is done to packets that are sent.
func (p *Set) SetImpairment(set impair.Impairment) {
	p.impairment = set
	for _, o := range p.addresses {
		if o.impair != nil {
			o.impair.Set(p.cfg.limited(set))
			o.shorten()
		}
	}
}

// limited returns an impairment with the rate of the port's wire, unless its own is less.
func (c *Config) limited(set impair.Impairment) impair.Impairment {
	if c.Limit != 0 && (set.Rate == 0 || set.Rate > c.Limit) {
		set.Rate = c.Limit
	}
	return set
}

// Slowed reports whether the wire is impaired or limited, so that packets must go by it.
func (p *Set) Slowed() bool { return p.impairment.Enabled() || p.cfg.Limit != 0 }
