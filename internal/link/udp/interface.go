package udp

import (
	"net"
	"net/netip"
)

// InterfaceOf returns the network interface that has addr. The loopback interface has every address of
// 127.0.0.0/8. ok is false if there is none.
func InterfaceOf(addr netip.Addr) (ifi net.Interface, ok bool) {
	all, err := net.Interfaces()
	if err != nil {
		return net.Interface{}, false
	}
	for _, ifi := range all {
		if holds(&ifi, addr) {
			return ifi, true
		}
	}
	return net.Interface{}, false
}

func holds(ifi *net.Interface, addr netip.Addr) bool {
	addrs, err := ifi.Addrs()
	if err != nil {
		return false
	}
	if zone := addr.Zone(); zone != "" && zone != ifi.Name {
		return false
	}
	for _, a := range addrs {
		prefix, err := netip.ParsePrefix(a.String())
		if err != nil {
			continue
		}
		if prefix.Addr().Unmap().WithZone("") == addr.WithZone("") {
			return true
		}
		if ifi.Flags&net.FlagLoopback != 0 && addr.IsLoopback() && prefix.Contains(addr) {
			return true
		}
	}
	return false
}
