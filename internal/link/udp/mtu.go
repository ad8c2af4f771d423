package udp

import (
	"net"
	"net/netip"
)

// roceOverhead is the most bytes that RoCE v2 puts around a full payload: IPv6 and
// UDP headers, BTH, RETH and immediate, ICRC.
const roceOverhead = 40 + 8 + 12 + 16 + 4 + 4

// PathMTU returns the largest InfiniBand MTU (bytes of payload: 256, 512, 1024, 2048
// or 4096) whose packets fit a link MTU in bytes, and 0 where none does.
func PathMTU(linkMTU int) int {
	for mtu := 4096; mtu >= 256; mtu /= 2 {
		if mtu+roceOverhead <= linkMTU {
			return mtu
		}
	}
	return 0
}

// InterfaceOf finds the network interface that holds addr. Every address of
// 127.0.0.0/8 is held by the loopback interface. ok is false where there is none.
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
