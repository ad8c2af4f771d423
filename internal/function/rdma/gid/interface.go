package gid

import (
	"net"
	"net/netip"
)

// Interface returns the addresses and MAC of this host's interface that has addr; ok is false if none has
// it. Addresses with a zone are omitted, because a port's sockets have none.
func Interface(addr netip.Addr) (addrs []netip.Addr, mac [6]byte, ok bool) {
	ifs, err := net.Interfaces()
	if err != nil {
		return nil, mac, false
	}
	for _, i := range ifs {
		list, err := i.Addrs()
		if err != nil {
			continue
		}
		var all []netip.Addr
		mine := false
		for _, a := range list {
			n, isNet := a.(*net.IPNet)
			if !isNet {
				continue
			}
			ip, _ := netip.AddrFromSlice(n.IP)
			ip = ip.Unmap()
			loopback := i.Flags&net.FlagLoopback != 0 && n.Contains(addr.AsSlice())
			if ip == addr || loopback {
				mine = true
			}
			if !ip.IsLinkLocalUnicast() && !ip.IsLoopback() {
				all = append(all, ip)
			}
		}
		if !mine {
			continue
		}
		if len(i.HardwareAddr) == 6 {
			mac = [6]byte(i.HardwareAddr)
		}
		return all, mac, true
	}
	return nil, mac, false
}
