package udp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Pauses between look-ups in the system's neighbour table, and between the packets that make the system
// ask (it asks three times, a second apart).
const (
	firstLook = time.Millisecond
	lastLook  = 50 * time.Millisecond
	askAgain  = time.Second
	nobody    = 9 // the port of the discard service, RFC 863
)

// known are the states of neighbours with a known link-layer address.
const known = netlink.NUD_REACHABLE | netlink.NUD_STALE | netlink.NUD_DELAY | netlink.NUD_PROBE | netlink.NUD_PERMANENT | netlink.NUD_NOARP

// Resolve waits until the system knows the link-layer address of the next hop to dst, as rdma_resolve_addr
// does before a device may send there. The error is ETIMEDOUT if nobody has answered when ctx ends, and
// the system's error if there is no route. A system that does not tell (no netlink) is assumed to know.
func (l *socketLink) Resolve(ctx context.Context, dst netip.Addr) error {
	hop, err := nextHop(l.cfg.Addr, dst.Unmap())
	if err != nil || hop == nil {
		return err
	}
	asked := time.Time{}
	for pause := firstLook; ; pause = min(2*pause, lastLook) {
		switch there, err := hop.known(); {
		case err != nil, there:
			return nil
		case time.Since(asked) >= askAgain:
			asked = time.Now()
			ask(l.cfg.Addr, dst)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%v does not answer: %w", dst, syscall.ETIMEDOUT)
		case <-time.After(pause):
		}
	}
}

// hop is a neighbour: the destination, or the gateway to it.
type hop struct {
	index int // of the interface
	addr  net.IP
}

// nextHop returns nil if packets need no neighbour: to this host, and over interfaces without link-layer
// addresses.
func nextHop(src, dst netip.Addr) (*hop, error) {
	routes, err := netlink.RouteGetWithOptions(dst.AsSlice(), &netlink.RouteGetOptions{SrcAddr: src.AsSlice()})
	switch {
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		return nil, fmt.Errorf("no route to %v: %w", dst, err)
	case err != nil || len(routes) == 0:
		return nil, nil
	}
	r := routes[0]
	if r.Type != unix.RTN_UNICAST {
		return nil, nil
	}
	i, err := netlink.LinkByIndex(r.LinkIndex)
	if err != nil || i.Attrs().RawFlags&(unix.IFF_LOOPBACK|unix.IFF_POINTOPOINT|unix.IFF_NOARP) != 0 {
		return nil, nil
	}
	if r.Gw != nil {
		return &hop{r.LinkIndex, r.Gw}, nil
	}
	return &hop{r.LinkIndex, dst.AsSlice()}, nil
}

func (h *hop) known() (bool, error) {
	family := unix.AF_INET6
	if h.addr.To4() != nil {
		family = unix.AF_INET
	}
	list, err := netlink.NeighList(h.index, family)
	for _, n := range list {
		if n.IP.Equal(h.addr) {
			return n.State&known != 0, err
		}
	}
	return false, err
}

// ask makes the system look for a neighbour, by sending an empty datagram that is lost if no one answers.
func ask(src, dst netip.Addr) {
	c, err := net.DialUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(src, 0)),
		net.UDPAddrFromAddrPort(netip.AddrPortFrom(dst, nobody)))
	if err != nil {
		return
	}
	_ = c.SetWriteDeadline(time.Now().Add(time.Second))
	if _, err := c.Write(nil); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		_, _ = c.Write(nil) // the first may have returned the error of an earlier one
	}
	_ = c.Close()
}
