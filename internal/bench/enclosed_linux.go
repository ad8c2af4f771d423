package bench

import (
	"errors"
	"fmt"
	"net"

	"github.com/vishvananda/netlink"
)

// enclosedAddrs are the addresses inside Linux's VXLAN, of a network for benchmarks (RFC 2544).
var enclosedAddrs = [2]net.IPNet{
	{IP: net.IPv4(198, 18, 1, 1), Mask: net.CIDRMask(24, 32)},
	{IP: net.IPv4(198, 18, 1, 2), Mask: net.CIDRMask(24, 32)},
}

// enclose gives both namespaces a VXLAN device of Linux over the interfaces between them, with checksums outside as it has by itself.
func (v *veth) enclose() error {
	a, b, err := v.handles()
	if err != nil {
		return err
	}
	defer a.Close()
	defer b.Close()
	for i, h := range []*netlink.Handle{a, b} {
		under, err := h.LinkByName(fmt.Sprint("vpi", i))
		if err != nil {
			return err
		}
		attrs := netlink.NewLinkAttrs()
		attrs.Name = "vx"
		x := &netlink.Vxlan{LinkAttrs: attrs, VxlanId: 5001, VtepDevIndex: under.Attrs().Index, SrcAddr: vethAddrs[i].IP,
			Group: vethAddrs[1-i].IP, Port: 4789, UDPCSum: true}
		if err := errors.Join(h.LinkAdd(x), configure(h, "vx", &enclosedAddrs[i])); err != nil {
			return fmt.Errorf("vxlan: %w", err)
		}
	}
	return nil
}
