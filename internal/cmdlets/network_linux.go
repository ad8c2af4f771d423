package cmdlets

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"github.com/vishvananda/netlink"
)

// System is the network of this system, over netlink.
type System struct{}

func linkNamed(iface string) (netlink.Link, error) {
	l, err := netlink.LinkByName(iface)
	if err != nil {
		return nil, fmt.Errorf("network interface %s: %w", iface, err)
	}
	return l, nil
}

// explain says who may change interfaces.
func explain(iface string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.EPERM), errors.Is(err, syscall.EACCES):
		return fmt.Errorf("network interface %s: only root and those with CAP_NET_ADMIN may change it", iface)
	case errors.Is(err, syscall.EEXIST):
		return fmt.Errorf("network interface %s: it has that already", iface)
	}
	return fmt.Errorf("network interface %s: %w", iface, err)
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

func prefixOf(n *net.IPNet) (netip.Prefix, bool) {
	a, ok := netip.AddrFromSlice(n.IP)
	if !ok {
		return netip.Prefix{}, false
	}
	bits, _ := n.Mask.Size()
	return netip.PrefixFrom(a.Unmap(), bits), true
}

// Addresses implements Network.
func (System) Addresses(iface string) (out []netip.Prefix, err error) {
	l, err := linkNamed(iface)
	if err != nil {
		return nil, err
	}
	list, err := netlink.AddrList(l, netlink.FAMILY_ALL)
	for _, a := range list {
		if p, ok := prefixOf(a.IPNet); ok {
			out = append(out, p)
		}
	}
	return out, explain(iface, err)
}

// AddAddress implements Network.
func (System) AddAddress(iface string, p netip.Prefix) error {
	l, err := linkNamed(iface)
	if err != nil {
		return err
	}
	return explain(iface, netlink.AddrAdd(l, &netlink.Addr{IPNet: ipNet(p)}))
}

// RemoveAddress implements Network.
func (System) RemoveAddress(iface string, p netip.Prefix) error {
	l, err := linkNamed(iface)
	if err != nil {
		return err
	}
	return explain(iface, netlink.AddrDel(l, &netlink.Addr{IPNet: ipNet(p)}))
}

// Routes implements Network.
func (System) Routes(iface string) (out []Route, err error) {
	l, err := linkNamed(iface)
	if err != nil {
		return nil, err
	}
	list, err := netlink.RouteList(l, netlink.FAMILY_ALL)
	for _, r := range list {
		x := Route{Metric: r.Priority}
		if r.Dst == nil {
			continue
		}
		to, ok := prefixOf(r.Dst)
		if !ok {
			continue
		}
		x.To = to
		if by, ok := netip.AddrFromSlice(r.Gw); ok {
			x.By = by.Unmap()
		}
		out = append(out, x)
	}
	return out, explain(iface, err)
}

func route(l netlink.Link, x Route) *netlink.Route {
	r := &netlink.Route{LinkIndex: l.Attrs().Index, Dst: ipNet(x.To), Priority: x.Metric}
	if x.By.IsValid() {
		r.Gw = x.By.AsSlice()
	}
	return r
}

// AddRoute implements Network.
func (System) AddRoute(iface string, x Route) error {
	l, err := linkNamed(iface)
	if err != nil {
		return err
	}
	return explain(iface, netlink.RouteAdd(route(l, x)))
}

// RemoveRoute implements Network.
func (System) RemoveRoute(iface string, x Route) error {
	l, err := linkNamed(iface)
	if err != nil {
		return err
	}
	return explain(iface, netlink.RouteDel(route(l, x)))
}
