// Package tenant is the link of a function in a virtual subnet (internal/overlay): the wire's link, whose neighbours are those of the
// subnet. Routes get their MACs from its records and nothing is asked or answered on the wire, which is the providers'. The function's
// frames leave by the port, which puts them into a tunnel, so that the link takes none itself.
package tenant

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"syscall"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/overlay"
	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/ib"
)

// Link is the link of one function. Its methods belong to the owner of the wire's link, except Resolve.
type Link struct {
	link.Link // of the wire
	subnet    uint32
	overhead  int
	mac       eth.MAC
	addrs     []netip.Addr
	paths     []*path

	mu        sync.Mutex // guards what follows, for Resolve
	directory *overlay.Directory
	news      chan struct{} // closed when there is another directory; nil: nobody waits
}

// New returns the link of a function in a virtual subnet by a wire's link. Follow tells it of the subnet.
func New(wire link.Link, subnet uint32) *Link {
	return &Link{Link: wire, subnet: subnet, directory: &overlay.Directory{}}
}

// Follow gives the link another directory, and says by how much larger packets are in tunnels. Routes go where that says from now on; to
// an address that it does not have they go where they went, and the overlay drops what nobody gets.
func (l *Link) Follow(d *overlay.Directory, overhead int) {
	l.overhead = overhead
	l.mu.Lock()
	l.directory = d
	if l.news != nil {
		close(l.news)
		l.news = nil
	}
	l.mu.Unlock()
	for _, p := range l.paths {
		if mac, known := l.find(p.route.Dst); known {
			p.route.DstMAC = mac
		}
	}
}

// Customers returns the customer addresses that records give the function with a MAC.
func (l *Link) Customers(mac [6]byte) []netip.Addr { return l.directory.Addresses(l.subnet, mac) }

// Capabilities implements link.Link.
func (l *Link) Capabilities() link.Capabilities {
	c := l.Link.Capabilities()
	c.MTU -= l.overhead
	c.Multicaster, c.Resolver = l, l
	c.Stations = stations{l, c.Stations}
	return c
}

// Close implements link.Link. The wire's link stays open: it is others', too.
func (l *Link) Close() error { return nil }

// path is what the link keeps for a route.
type path struct {
	link  *Link
	route *frame.Route
	at    int // of link.paths
}

// Release implements frame.Path.
func (p *path) Release() {
	all := p.link.paths
	if p.at >= len(all) || all[p.at] != p {
		return
	}
	last := len(all) - 1
	all[p.at] = all[last]
	all[p.at].at = p.at
	all[last] = nil
	p.link.paths = all[:last]
}

// FieldError says which field of a route is invalid, and what it may be.
type FieldError struct {
	Field string
	Value any
	Want  string
}

// Error implements error.
func (e *FieldError) Error() string {
	return fmt.Sprintf("virtual subnet: %s %v: want %s", e.Field, e.Value, e.Want)
}

// Prepare implements link.Link.
func (l *Link) Prepare(r *frame.Route) error {
	src, dst := r.Src.Unmap().WithZone(""), r.Dst.Unmap().WithZone("")
	if !dst.IsValid() || dst.IsUnspecified() {
		return &FieldError{"destination", r.Dst, "an address"}
	}
	if i := slices.IndexFunc(l.addrs, func(a netip.Addr) bool { return a.Is4() == dst.Is4() }); !r.Src.IsValid() && i >= 0 {
		src = l.addrs[i]
	}
	if !slices.Contains(l.addrs, src) || src.Is4() != dst.Is4() {
		return &FieldError{"source", r.Src, fmt.Sprintf("an address of the function, of the family of %v", dst)}
	}
	to, known := l.find(dst)
	if !known {
		return fmt.Errorf("virtual subnet %d: no record of %v, and no route: %w", l.subnet, dst, syscall.ENETUNREACH)
	}
	r.Release()
	r.Src, r.Dst, r.SrcMAC, r.DstMAC = src, dst, l.mac, to
	r.VLAN &^= eth.VIDMask
	if r.SrcPort == 0 {
		r.SrcPort = eth.PortRoCEv2
	}
	if r.DstPort == 0 {
		r.DstPort = eth.PortRoCEv2
	}
	p := &path{l, r, len(l.paths)}
	l.paths = append(l.paths, p)
	r.Path = p
	return nil
}

// find returns the MAC to which packets for an address go.
func (l *Link) find(dst netip.Addr) (mac eth.MAC, known bool) {
	if mac, ok := eth.MulticastMAC(dst); ok {
		return mac, true
	}
	if slices.Contains(l.addrs, dst) {
		return l.mac, true
	}
	l.mu.Lock()
	mac, known = l.directory.Find(l.subnet, dst)
	l.mu.Unlock()
	if known {
		return mac, true
	}
	mac, _, known = ib.GIDFromAddr(dst).MAC() // a GID of RoCE v1 tells whose it is (IBA annex A16)
	return mac, known && slices.ContainsFunc(l.addrs, l.ofMAC)
}

// ofMAC reports whether an address is the GID that the function has by its MAC.
func (l *Link) ofMAC(a netip.Addr) bool {
	mac, _, ok := ib.GIDFromAddr(a).MAC()
	return ok && eth.MAC(mac) == l.mac
}

// Resolve implements link.Resolver: it waits until a record or a route says where an address is.
func (l *Link) Resolve(ctx context.Context, dst netip.Addr) error {
	dst = dst.Unmap().WithZone("")
	for {
		l.mu.Lock()
		_, known := l.directory.Find(l.subnet, dst)
		if l.news == nil {
			l.news = make(chan struct{})
		}
		news := l.news
		l.mu.Unlock()
		if _, group := eth.MulticastMAC(dst); known || group {
			return nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return fmt.Errorf("virtual subnet %d: no record of %v, and no route: %w", l.subnet, dst, syscall.ETIMEDOUT)
		}
	}
}

// Join implements link.Multicaster. Every host of a subnet gets what is sent to its groups: there is nobody to tell.
func (l *Link) Join(netip.Addr) error { return nil }

// Leave implements link.Multicaster.
func (l *Link) Leave(netip.Addr) error { return nil }

// stations are those of the wire for everybody but the function itself, which has no place there.
type stations struct {
	link *Link
	link.Stations
}

// SetStation implements link.Stations.
func (s stations) SetStation(n link.Station) error {
	s.link.mac, s.link.addrs = n.MAC, s.link.addrs[:0]
	for _, p := range n.Prefixes {
		s.link.addrs = append(s.link.addrs, p.Addr())
	}
	return nil
}

// RemoveStation implements link.Stations.
func (s stations) RemoveStation([6]byte, uint16) error {
	s.link.addrs = nil
	return nil
}

// Watch implements link.Stations: captures watch the wire's own frames by the wire's link.
func (s stations) Watch(bool) {}

// Watched implements link.Stations.
func (s stations) Watched() ([]link.OwnFrame, uint64) { return nil, 0 }

// Conflicts implements link.Stations.
func (s stations) Conflicts() []link.Conflict { return nil }
